"""Trained systems by name: read from their own weights and the biLM's name, packed from a workdir."""

import dataclasses
import hashlib
import json
import re
import shutil

import numpy as np
import pytest

import elmo_tf
from benchmarks import pack_tagger
from elmo_tf import cli, tasks
from elmo_tf.errors import InputError
from elmo_tf.published import models
from tests import checks
from tests.helpers import ROOT, flip, run_python

NAME = "english-ner"
TOKENS = ["Barack", "Obama", "was", "born", "in", "Hawaii", "and", "worked", "for", "Microsoft", "."]
TAGS = ["B-PER", "I-PER", "O", "O", "O", "B-LOC", "O", "O", "O", "B-ORG", "O"]
FOLDER = ROOT / "elmo_tf" / "published" / NAME


def test_its_files_are_small_because_the_bilm_is_not_in_them(traced_once):
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_000_000
    own = sum(int(np.prod(variable.shape)) for variable in tasks.load(NAME).network.trainable_variables)
    assert own == models.find(NAME).parameters


def test_the_command_evaluate_takes_the_name(tmp_path, capsys, traced_once):
    (tmp_path / "data.conll").write_text("".join(f"{token}\t{tag}\n" for token, tag in zip(TOKENS, TAGS, strict=True)))
    assert cli.main(["task", "ner", "evaluate", "--model", NAME, "--data", str(tmp_path / "data.conll")]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["score"] == 100
    assert scores["by_label"]["PER"] == {"recall": 100, "precision": 100, "f1": 100, "count": 1}
    assert scores["most_frequent"] == {"answer": "O", "f1": 0}
    with pytest.raises(InputError, match=r"^confusion: ner has no classes$"):
        tasks.load(NAME).evaluate(tmp_path / "data.conll", confusion=True)


def test_a_single_token_row_is_tagged_in_its_column_if_columns_are_asked_for(tmp_path, capsys, traced_once):
    (tmp_path / "single.conll").write_text("John NNP O\n")
    predict = ["task", "ner", "predict", "--model", NAME, "--input", str(tmp_path / "single.conll")]
    assert cli.main([*predict, "--format", "conll"]) == 0
    assert capsys.readouterr().out == "John NNP B-PER\n"
    assert cli.main([*predict, "--token-column", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == ["John"]
    assert cli.main(predict) == 0
    assert len(json.loads(capsys.readouterr().out)["tokens"]) == 3


def test_each_line_of_running_text_has_one_answer_and_the_models_own_tokenizer(tmp_path, capsys, traced_once):
    texts = ["Ana lives in Rome.", "\x01", "", "\u4ed6\u4f4f\u5728\u5317\u4eac\u3002", "It's in Paris."]
    tokens = [["Ana", "lives", "in", "Rome", "."], [], [], list(texts[3]), ["It", "'s", "in", "Paris", "."]]
    (tmp_path / "text").write_text("\n".join(texts), "utf-8")
    predict = ["task", "ner", "predict", "--model", NAME, "--input", str(tmp_path / "text")]
    printed = []
    for options in ([], ["--tokenizer", "penn"]):
        assert cli.main([*predict, *options]) == 0
        printed.append(list(map(json.loads, capsys.readouterr().out.splitlines())))
    assert printed[0] == printed[1] == tasks.load(NAME).predict(texts)
    assert [row["tokens"] for row in printed[0]] == tokens
    assert printed[0][0]["offsets"] == [[0, 3], [4, 9], [10, 12], [13, 17], [17, 18]]
    assert [row["tags"][:1] for row in printed[0][:3]] == [["B-PER"], [], []]
    # Sentences of a script without spaces, one per line, are not a column of tokens.
    (tmp_path / "text").write_text(f"{texts[3]}\n{texts[3]}\n", "utf-8")
    assert cli.main(predict) == 0
    assert [json.loads(line)["tokens"] for line in capsys.readouterr().out.splitlines()] == [tokens[3]] * 2


def test_columns_stay_byte_for_byte_but_for_the_tag(tmp_path, capsys, traced_once):
    (tmp_path / "text").write_bytes(b"Obama  NNP   O\r\nwas VBD  O\r\n\r\nRome NNP O")
    predict = ["task", "ner", "predict", "--model", NAME, "--format", "conll", "--input", str(tmp_path / "text")]
    assert cli.main(predict) == 0
    assert capsys.readouterr().out == "Obama  NNP   B-PER\r\nwas VBD  O\r\n\r\nRome NNP B-LOC"


def test_an_unknown_name_is_one_line_with_a_similar_one(capsys):
    assert cli.main(["task", "ner", "predict", "--model", "englsh-ner", "--input", "text.txt"]) == 1
    message = "englsh-ner: no such folder, and no system of this name; did you mean english-ner?"
    assert capsys.readouterr().err == f"elmo-tf: error: {message}\n"


def test_raw_sentences_come_from_standard_input_and_nothing_of_tensorflows_is_printed():
    command = ["-m", "elmo_tf.cli", "task", "ner", "predict", "--model", NAME, "--input", "-"]
    text = "Barack Obama was born in Hawaii and worked for Microsoft.\n\n" * 2
    done = run_python(*command, input=text, env={"TF_CPP_MIN_LOG_LEVEL": None})
    assert [json.loads(line)["tags"] for line in done.stdout.splitlines()] == [TAGS, [], TAGS, []]
    assert not re.search(r"^[IWE]\d{4} ", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize("options", [["--workdir", "run"], ["--output", "out", "--mix", "top"], []])
def test_import_of_a_system_takes_nothing_but_an_output(options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["import", NAME, *options]) == 1
    assert capsys.readouterr().err == f"elmo-tf: error: {NAME}: for a trained system, give only --output\n"


def test_a_system_has_no_vectors_and_belongs_to_one_task():
    with pytest.raises(InputError, match=rf"^{NAME}: a trained system"):
        elmo_tf.load(NAME)
    assert cli.main(["task", "sentiment", "predict", "--model", NAME, "--input", "text.txt"]) == 1


def test_a_damaged_file_is_reported(tmp_path, monkeypatch):
    folder = shutil.copytree(FOLDER, tmp_path / NAME)
    monkeypatch.setattr(models, "_PACKAGED", tmp_path)
    flip(folder / "weights.hdf5")
    with pytest.raises(InputError, match=f"{NAME}: the model is damaged: .*install elmo_tf again"):
        tasks.load(NAME)


@pytest.mark.slow
def test_a_packed_system_tags_like_its_workdir(tmp_path, monkeypatch, capsys):
    data = tmp_path / "data.conll"
    data.write_text("Anna\tB-PER\nsaw\tO\nParis\tB-LOC\n\nAnna\tB-PER\nsaw\tO\nRome\tB-LOC\n\n" * 4)
    train = ["task", "ner", "train", "--train", str(data), "--dev", str(data), "--workdir", str(tmp_path / "run")]
    small = ["recipe=small", "fit.epochs=2", "network.units=4", "network.upper_units=4", "spelling.filters=4"]
    train += ["--model", "english", *(word for setting in small for word in ("--set", setting))]
    assert cli.main(train) == 0
    row = pack_tagger.pack(tmp_path / "run", "english", tmp_path / "mine")
    content = (tmp_path / "mine" / "weights.hdf5").read_bytes()
    assert (row["size"], row["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    (tmp_path / "english").symlink_to(FOLDER.with_name("english"))
    monkeypatch.setattr(models, "_PACKAGED", tmp_path)
    monkeypatch.setattr(
        models, "MODELS", (*models.MODELS, dataclasses.replace(models.find(NAME), name="mine", size=None, sha256=None))
    )
    packed, trained = tasks.load("mine"), tasks.load(tmp_path / "run")
    checks.assert_all_close(
        packed.network.trainable_variables, trained.network.trainable_variables, rtol=2**-11, atol=2**-25
    )
    words = next(layer for layer in packed.network.layers if layer.name == "words").words
    assert words == ["anna", "paris", "rome", "saw"]
