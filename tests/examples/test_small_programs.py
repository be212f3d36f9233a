"""The small examples: a dataset with vectors, an HTTP server, two learning rates, and systems on a few sentences."""

import http.client
import http.server
import importlib.util
import json
import re
import socket
import sys
import threading
import time
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from tests import checks
from tests.helpers import ROOT, run_python

pytestmark = pytest.mark.usefixtures("loaded_once")
TEXT = ["the cat sat", "", "a dog barked at the cat"]


def imported(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(savedmodel, sentences: list[list[str]]) -> list[np.ndarray]:
    return [encoded.vectors for encoded in elmo_tf.load(savedmodel.path).encode(sentences)]


@pytest.mark.slow
def test_a_dataset_has_the_tokens_and_vectors_of_each_sentence(savedmodel, tmp_path, capsys, monkeypatch):
    embed_dataset = imported("embed_dataset")
    dataset = embed_dataset.with_vectors(tf.data.Dataset.from_tensor_slices(TEXT), str(savedmodel.path), batch_size=2)
    wanted = expected(savedmodel, [text.split() for text in TEXT])
    for (tokens, vectors), text, vectors_of_text in zip(dataset, TEXT, wanted, strict=True):
        assert tokens.numpy().tolist() == text.encode().split()
        assert isinstance(vectors, tf.Tensor)
        np.testing.assert_allclose(vectors, vectors_of_text, **checks.TOLERANCE)
    (tmp_path / "text").write_text("\n".join(TEXT) + "\n")
    options = ["--model", str(savedmodel.path), "--input", str(tmp_path / "text"), "--count", "1"]
    monkeypatch.setattr(sys, "argv", ["embed_dataset.py", *options])
    embed_dataset.main()
    assert capsys.readouterr().out == "the cat sat (3, 16)\n"


def test_a_beam_pipeline_writes_sentences_and_their_vectors(savedmodel, tmp_path, monkeypatch):
    (tmp_path / "text").write_text("\n".join(TEXT) + "\n")
    options = [f"--model={savedmodel.path}", f"--input={tmp_path / 'text'}", f"--output={tmp_path / 'vectors'}"]
    monkeypatch.setattr(sys, "argv", ["beam_embeddings.py", *options])
    imported("beam_embeddings").main()
    (file,) = tmp_path.glob("vectors*.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(row["text"] for row in rows) == sorted(TEXT)
    for row in rows:
        (wanted,) = elmo_tf.load(savedmodel.path).encode([row["text"]], pool="mean")
        np.testing.assert_allclose(row["vector"], wanted, **checks.TOLERANCE)


def test_a_line_of_reviews_ends_at_a_line_feed_alone(tmp_path):
    (tmp_path / "reviews.tsv").write_text("good\tone\x85two\u2028three\n\nbad\tfour\r\nno tab\n", "utf-8")
    rows = imported("two_learning_rates").read(tmp_path / "reviews.tsv")
    assert rows == [("good", "one\x85two\u2028three"), ("bad", "four")]


@pytest.mark.slow
def test_the_bilm_is_trained_with_a_rate_of_its_own(savedmodel):
    two_learning_rates = imported("two_learning_rates")
    for rate, bilm_rate in ((0.1, 0.0), (0.0, 0.1)):
        model = two_learning_rates.build(str(savedmodel.path), 2, rate, bilm_rate)
        optimizers = (keras.optimizers.SGD(rate), keras.optimizers.SGD(bilm_rate))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(*optimizers, loss=loss, metrics=["accuracy"], run_eagerly=True)
        assert len(model._fast) == 4  # the mix and the dense layer
        before = [[np.array(variable) for variable in part] for part in (model._fast, model._slow)]
        logs = model.fit(tf.constant(TEXT), np.array([0, 1, 1]), batch_size=3, verbose=0)
        assert {"loss", "accuracy"} <= logs.history.keys()
        for part, old, changes in zip((model._fast, model._slow), before, (rate > 0, bilm_rate > 0), strict=True):
            assert {not np.array_equal(new, array) for new, array in zip(part, old, strict=True)} == {changes}
            assert all(np.isfinite(variable).all() for variable in part)


@pytest.fixture
def http_server(savedmodel):
    server = imported("http_server").server(str(savedmodel.path), port=0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def posted(server, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request("POST", "/", body)
    response = connection.getresponse()
    return response.status, response.read()


def test_the_server_listens_on_loopback_and_answers_lists_of_sentences_alone(savedmodel, http_server):
    status, body = posted(http_server, json.dumps(TEXT).encode())
    assert status == 200
    wanted = expected(savedmodel, [text.split() for text in TEXT])
    for answer, text, vectors in zip(json.loads(body), TEXT, wanted, strict=True):
        assert answer["tokens"] == text.split()
        np.testing.assert_allclose(np.reshape(answer["vectors"], vectors.shape), vectors, **checks.TOLERANCE)
    assert posted(http_server, b"[]") == (200, b"[]")
    assert http_server.socket.getsockname()[0] == "127.0.0.1"
    for body in (b"", b"{", b"[1, 2]", b'"a"', b'{"a": 1}', b"[[1]]", b"\xff"):
        status, answer = posted(http_server, body)
        assert status == 400 and b"expected a list of sentences" in answer, body


def sent(server, request: bytes) -> bytes:
    """Sends bytes that may be no whole request; returns what the server answers until it closes the connection."""
    with socket.create_connection(server.server_address, timeout=60) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


HEAD = b"POST / HTTP/1.0\r\nContent-Length: "


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (HEAD + b"100000\r\n\r\n", 413),
        (HEAD + b"10000\r\n\r\n" + b"[" * 10_000, 400),
        (HEAD + b"%d\r\n\r\n" % 10**15, 413),
        (HEAD + b"9" * 5000 + b"\r\n\r\n", 413),
        (HEAD + b"-1\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\n\r\n", 400),
        (HEAD + b"2\r\nOrigin: https://example.org\r\n\r\n[]", 403),
        (HEAD + b"2\r\nOrigin: null\r\n\r\n[]", 403),
    ],
)
def test_the_server_refuses_what_would_cost_memory_or_comes_from_a_page(http_server, request_bytes, status):
    assert sent(http_server, request_bytes).startswith(b"HTTP/1.0 %d " % status)


def test_a_page_of_the_server_itself_is_answered(http_server):
    for host in ("127.0.0.1", "localhost"):
        origin = f"Origin: http://{host}:{http_server.server_port}\r\n".encode()
        assert sent(http_server, HEAD + b"2\r\n" + origin + b"\r\n[]").startswith(b"HTTP/1.0 200 ")


def test_slow_clients_are_ended_and_take_a_bounded_number_of_threads(savedmodel, monkeypatch, capsys):
    module = imported("http_server")
    monkeypatch.setattr(module, "SECONDS", 0.5)
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    server = module.server(str(savedmodel.path), port=0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    requests = [b"", b"POST / HT", HEAD + b"2\r\n", HEAD + b"2\r\n\r\n["] * 2
    connections = [socket.create_connection(server.server_address, timeout=60) for _ in requests]
    for connection, request in zip(connections, requests, strict=True):
        connection.sendall(request)
    time.sleep(0.3)  # until the server has accepted all that it will
    serving = [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]
    assert len(serving) <= 4  # two, and those that are about to end
    for connection in connections:
        assert connection.recv(100).startswith(b"HTTP/1.0 408 ")
        connection.close()
    assert posted(server, b"[]") == (200, b"[]")
    server.shutdown()
    thread.join()
    server.server_close()
    assert "Traceback" not in capsys.readouterr().err


def test_the_servers_command_takes_a_model_and_a_port_and_prints_its_address(savedmodel, monkeypatch, capsys):
    module = imported("http_server")
    monkeypatch.setattr(http.server.ThreadingHTTPServer, "serve_forever", lambda server: server.server_close())
    monkeypatch.setattr(sys, "argv", ["http_server.py", str(savedmodel.path), "0"])
    module.main()
    assert re.fullmatch(r"listening on http://127\.0\.0\.1:[1-9]\d*\n", capsys.readouterr().out)


QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
TAGGED = "anna B-PER\nsat O\n\nnew B-LOC\nyork I-LOC\nsleeps O\n\n" * 20
CLASSIFIED = "good\ta fine film\nbad\ta poor film\n" * 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "text", "result"),
    [("ner_tagger.py", TAGGED, "F1 "), ("sentence_classifier.py", CLASSIFIED, "accuracy ")],
)
def test_an_example_prints_its_score(savedmodel, tmp_path, example, text, result):
    (tmp_path / "data").write_text(text)
    data = tmp_path / "data"
    done = run_python(f"examples/{example}", savedmodel.path, data, data, env=QUIET, check=False)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith(result)
    assert 0 <= float(last.removeprefix(result)) <= 100
