"""What computes vectors and probabilities: NumPy and TensorFlow agree, and each model gets the one that suits it."""

import concurrent.futures
import itertools
import os
import pickle
import time

import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import embedder, engines, extras, sources
from elmo_tf.engines import numpy as numpy_engine
from elmo_tf.engines import tensorflow as tensorflow_engine
from elmo_tf.errors import InputError
from elmo_tf.model.kernels import lstmp_packed
from tests import checks
from tests.helpers import ONE_LAYER, new_untrained, run_python, slow

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = ["The bank lends money to farmers .", "", "naïve", "so " * 70 + "far", "A bank of the river ."] * 3
# In `english`, a sum of 1,024 products in another order differs by about sqrt(1024) 2**-24 = 2e-6 of its size, which is
# about 1, and later layers carry that on; the clips and gates keep it from growing.
ENGLISH = {"rtol": 0, "atol": 5e-6}


@pytest.mark.parametrize("layers", ["all", "mix"])
def test_vectors_of_numpy_and_tensorflow_agree(layers):
    numpy, tensorflow = (elmo_tf.load("english", engine=engine) for engine in ("numpy", "tensorflow"))
    assert (numpy.engine, tensorflow.engine) == ("numpy", "tensorflow")
    for by_numpy, by_tensorflow in zip(
        numpy.encode(SENTENCES, layers), tensorflow.encode(SENTENCES, layers), strict=True
    ):
        assert (by_numpy.tokens, by_numpy.vectors.dtype) == (by_tensorflow.tokens, np.float32)
        np.testing.assert_allclose(by_numpy.vectors, by_tensorflow.vectors, **ENGLISH)


def test_scores_and_words_of_numpy_and_tensorflow_agree():
    numpy, tensorflow = (elmo_tf.load("english", engine=engine) for engine in ("numpy", "tensorflow"))
    for by_numpy, by_tensorflow in zip(numpy.score(SENTENCES), tensorflow.score(SENTENCES), strict=True):
        # A logit is a sum of 128 products, up to about 20 large; the log-sum-exp has 48,000 terms of one sign.
        np.testing.assert_allclose(by_numpy.forward_log_probs, by_tensorflow.forward_log_probs, rtol=0, atol=1e-4)
        np.testing.assert_allclose(by_numpy.backward_log_probs, by_tensorflow.backward_log_probs, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(by_numpy.unknown, by_tensorflow.unknown)
    filled = [model.fill("She put the [MASK] on the table .", top=5) for model in (numpy, tensorflow)]
    assert [word.token for word in filled[0]] == [word.token for word in filled[1]]
    np.testing.assert_allclose([word.score for word in filled[0]], [word.score for word in filled[1]], rtol=1e-3)


def test_the_checkpoint_of_a_workdir_is_computed_by_either(workdir):
    numpy, tensorflow = (elmo_tf.load(workdir, engine=engine) for engine in ("numpy", None))
    assert [model.engine for model in (numpy, tensorflow)] == ["numpy", "tensorflow"]
    by_both = (model.encode(["the cat sat", "a dog"], "all") for model in (numpy, tensorflow))
    for by_numpy, by_tensorflow in zip(*by_both, strict=True):
        np.testing.assert_allclose(by_numpy.vectors, by_tensorflow.vectors, **checks.TOLERANCE)
    scores = [model.score(["the cat sat"])[0].total for model in (numpy, tensorflow)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


def test_the_engine_stays_and_scoring_much_says_once_that_tensorflow_is_faster(monkeypatch, caplog):
    monkeypatch.setattr(engines, "SCORED_TOKENS", 5)
    model, fixed = elmo_tf.load("english"), elmo_tf.load("english", engine="numpy")
    small, large = ["a b c d e"], ["a b", "c d e f"]
    for call in (model.encode, model.score, fixed.encode, fixed.score):
        call(small)
    fixed.encode(large), fixed.score(large), model.encode(large)
    assert caplog.messages == []
    totals = [score.total for score in model.score(large)]
    message = "NumPy scores 6 tokens; a model loaded with engine='tensorflow' is faster from about 5 tokens on"
    assert caplog.messages == [message]
    assert [score.total for score in model.score(large)] == totals
    assert (model.engine, fixed.engine, caplog.messages) == ("numpy", "numpy", [message])


def test_where_tensorflow_is_not_installed_numpy_computes_everything(monkeypatch, caplog):
    monkeypatch.setattr(engines, "SCORED_TOKENS", 5)
    monkeypatch.setattr(engines, "tensorflow_is_installed", lambda: False)
    model = elmo_tf.load("english")
    assert len(model.score(["a b c d e f"])[0].tokens) == 6
    assert (model.engine, engines.fastest(model.source, 6), caplog.messages) == ("numpy", "numpy", [])


def test_the_fastest_engine_is_that_of_the_size_of_a_text_unless_tensorflow_reads_the_model(workdir):
    english, trained = sources.find("english"), sources.find(workdir)
    assert [engines.fastest(english, number) for number in (0, 25_000, 25_001)] == ["numpy", "numpy", "tensorflow"]
    assert engines.fastest(trained, 0) == "tensorflow"


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("torch", {}, "engine: expected one of numpy, tensorflow, found 'torch'"),
        ("numpy", {"precision": "bfloat16"}, "engine: bfloat16 products need tensorflow"),
    ],
)
def test_an_engine_that_cannot_be_had_is_refused(engine, options, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        elmo_tf.load("english", engine=engine, **options)


def test_a_savedmodel_is_computed_by_either_with_its_mix_as_its_own_graph_does(savedmodel):
    models = [elmo_tf.load(savedmodel.path, engine=engine) for engine in (None, "numpy")]
    assert [model.engine for model in models] == ["tensorflow", "numpy"]
    strings, exported = ["the cat sat", "naïve"], tf.saved_model.load(str(savedmodel.path))
    outputs = exported.default(strings=tf.constant(strings))
    for model, (layers, name) in itertools.product(models, {"all": "layers", "mix": "elmo"}.items()):
        for row, encoded in zip(outputs[name].numpy(), model.encode(strings, layers), strict=True):
            np.testing.assert_allclose(encoded.vectors, row[..., : len(encoded.tokens), :], **checks.TOLERANCE)


def test_threads_for_tensorflow_ask_for_tensorflow(monkeypatch):
    monkeypatch.setattr(tensorflow_engine, "limit_threads", lambda num_threads: None)
    assert embedder.Embedder(sources.find("english"), num_threads=1).engine == "tensorflow"


def test_a_pickled_model_is_read_again():
    model = elmo_tf.load("english", engine="numpy")
    content = pickle.dumps(model)
    assert len(content) < 2000  # the source, not the weights
    copy = pickle.loads(content)
    assert (copy.source, copy.engine, copy._engines._made) == (model.source, "numpy", {})  # not read yet
    assert vars(copy).keys() == vars(model).keys()
    assert repr(copy) == repr(model)
    np.testing.assert_array_equal(copy.encode(["a bank"])[0].vectors, model.encode(["a bank"])[0].vectors)


def test_a_pickle_can_be_opened_where_tensorflow_cannot_compute(monkeypatch):
    content = pickle.dumps(elmo_tf.load("english", engine="tensorflow"))
    monkeypatch.setattr(engines, "make", engines.make.__wrapped__)  # not the one of another test
    monkeypatch.setattr(extras, "_started_in", [os.getpid() + 1])  # as in a forked process
    copy = pickle.loads(content)
    with pytest.raises(InputError, match=r"^multiprocessing: TensorFlow was used before this process was forked"):
        copy.encode(["a bank"])


def test_a_process_forked_after_tensorflow_read_a_source_does_not_wait_for_ever(savedmodel, workdir, monkeypatch):
    monkeypatch.setattr(extras, "_started_in", [os.getpid() + 1])  # as in a forked process
    exported, trained = sources.find(savedmodel.path), sources.find(workdir)
    for read in (exported.weights, exported.mix, trained.weights, trained.softmax):
        with pytest.raises(InputError, match=r"^multiprocessing: TensorFlow was used before this process was"):
            read()


def test_the_first_call_of_a_graph_finishes_before_those_of_other_threads(records, tmp_path, monkeypatch):
    workdir = new_untrained(tmp_path / "workdir", ONE_LAYER, records.vocabulary)
    engine, events = tensorflow_engine.TensorFlowEngine(sources.find(workdir)), []
    pack = lstmp_packed.pack

    def run():
        events.append("begin")
        time.sleep(0.1)
        events.append("end")
        return np.int32(0)

    def pack_slowly(lengths):
        return pack(lengths + tf.ensure_shape(tf.numpy_function(run, [], tf.int32), ()))

    monkeypatch.setattr(lstmp_packed, "pack", pack_slowly)
    sentences = [[b"the", b"cat"]]
    for call in (lambda: engine.vectors(sentences, True), lambda: engine.token_log_probs(sentences, [[0, 3, 4, 1]])):
        events.clear()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            outputs = [future.result() for future in [pool.submit(call) for _ in range(4)]]
        assert events[:2] == ["begin", "end"]
        assert len(events) == 8
        np.testing.assert_allclose(outputs[0][0], outputs[3][0], **checks.TOLERANCE)


def test_the_mix_of_a_single_layer_is_computed_by_numpy():
    layers = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    np.testing.assert_array_equal(numpy_engine.scalar_mix(layers, np.float32([0, 0, 100]), 2.0), 2 * layers[2])


# As spaCy's `nlp.pipe(n_process=2)` and `multiprocessing.Pool` do, after the model was used in the parent.
PROCESSES = """
import multiprocessing, sys
import numpy as np
import elmo_tf

def encode(text):
    return model.encode([text])[0].vectors

def encode_by(model, text):
    return model.encode([text])[0].vectors

if __name__ == "__main__":
    model = elmo_tf.load("english")
    expected = encode("The bank lends money .")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        vectors = pool.map(encode, ["The bank lends money ."] * 8)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        vectors += pool.starmap(encode_by, [(model, "The bank lends money .")])
    print(len(vectors), float(np.abs(np.array(vectors) - expected).max()) < 5e-6)
    print([name for name in ("tensorflow", "keras") if name in sys.modules])
"""


def test_forked_and_spawned_processes_compute_with_a_model_that_was_used_before_them(tmp_path):
    (tmp_path / "program.py").write_text(PROCESSES)
    done = run_python(tmp_path / "program.py", timeout=120)
    assert done.stdout.splitlines() == ["9 True", "[]"], done.stderr


FIRST = """
import sys
import elmo_tf
elmo = elmo_tf.load("english")
print(elmo.encode(["The bank lends money ."])[0].vectors.shape)
elmo.score(["The bank lends money ."]), elmo.fill("The [MASK] lends money .")
packages = {name.partition(".")[0] for name in sys.modules if name[0] != "_"}
files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
print(sorted(package for package in packages if any(f"site-packages/{package}/" in file for file in files)))
print([name for name in ("ssl", "http.client", "multiprocessing", "asyncio") if name in sys.modules])
try:
    elmo_tf.load("english", engine="tensorflow")
except elmo_tf.InputError as error:
    print(error)
"""


def test_a_name_imports_three_packages_and_only_tensorflow_refuses_another_backend():
    done = run_python("-c", FIRST, env={"KERAS_BACKEND": "torch"})
    *imports, backend = done.stdout.splitlines()
    assert imports == ["(5, 256)", "['h5py', 'msgspec', 'numpy']", "[]"], done.stderr
    assert backend == "KERAS_BACKEND: it is torch; set it to tensorflow before Keras is imported"


COMMANDS = """
import sys
from elmo_tf import cli, engines
engines.SCORED_TOKENS = int(sys.argv[1])
text = sys.argv[2]
status = [
    cli.main(["fill", "The [MASK] lends money .", "--model", "english", "--top", "1"]),
    cli.main(["score", "--model", "english", "--input", text]),
    cli.main(["surprisal", "--model", "english", "--input", text, "--output", sys.argv[3]]),
    cli.main(["neighbors", "--model", "english", "--input", text, "--word", "bank", "--sentence", "A bank ."]),
]
print(status, [name for name in ("tensorflow", "keras") if name in sys.modules])
"""


@pytest.mark.parametrize(("tokens", "imported"), [(6, "[]"), slow(4, "['tensorflow', 'keras']")])
def test_commands_import_tensorflow_only_for_a_large_text(tokens, imported, tmp_path):
    (tmp_path / "text").write_text("The bank lends\nmoney again .\n")
    done = run_python("-c", COMMANDS, tokens, tmp_path / "text", tmp_path / "words.tsv")
    assert done.stdout.splitlines()[-1] == f"[0, 0, 0, 0] {imported}"
    assert set(done.stderr.splitlines()) == {"sentences are split by the tokenizer penn"}
