"""One word for one thing on the command line: options, and the flags that errors name."""

import json
import os
import pickle

import pytest

import elmo_tf
from elmo_tf import cli
from elmo_tf.errors import InputError
from elmo_tf.training import finetuning


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("score --inptu text", "unrecognized arguments: --inptu; did you mean --input?"),
        ("task ner predict --modle=english-ner", "unrecognized arguments: --modle; did you mean --model?"),
        ("import english --zzz", "unrecognized arguments: --zzz"),
        ("neighbors --word --savedmode", "unrecognized arguments: --savedmode"),
        ("neighbors --sentence --no-such=1", "unrecognized arguments: --no-such"),
        ("preprocess --inptu text", "unrecognized arguments: --inptu text; did you mean --input?"),
        ("embed --modle english", "unrecognized arguments: --modle english; did you mean --model?"),
    ],
)
def test_an_unknown_option_is_named_before_a_missing_one(command, message, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(command.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].partition(" error: ")[2] == message


def test_a_value_with_spaces_may_begin_like_an_option(capsys):
    assert cli.main(["fill", "--word", "bank", "--top", "1", "-- a bank of the river"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_score_reads_standard_input_prints_each_sentence_and_says_the_tokenizer(capsys, caplog):
    stdin, (read_end, write_end) = os.dup(0), os.pipe()
    os.write(write_end, b"the cat sat.\n")
    os.close(write_end)
    os.dup2(read_end, 0)
    try:
        assert cli.main(["score", "--model", "english", "--input", "-"]) == 0
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
        os.close(read_end)
    line = json.loads(capsys.readouterr().out)
    assert "sentences are split by the tokenizer penn" in caplog.messages
    assert (line["sentence"], line["num_tokens"]) == ("the cat sat.", 4)


@pytest.mark.usefixtures("loaded_once")
def test_english_is_the_default_and_takes_sentences_as_people_write_them(capsys):
    assert cli.main(["fill", "She put the [MASK] on the table.", "--top", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["sequence"].endswith(" on the table .")
    assert cli.main(["fill", "A [MASK] and a [MASK]."]) == 1
    message = "SENTENCE: the token [MASK] occurs 2 times in the sentence; it must occur once"
    assert capsys.readouterr().err.splitlines()[-1] == f"elmo-tf: error: {message}"
    (sentence,) = elmo_tf.load("english").encode(["The bank lends money."])
    assert sentence.tokens == ["The", "bank", "lends", "money", "."]


FINETUNE = ["finetune", "--from", "old", "--data", "corpus", "--workdir", "workdir"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("heldout", "a folder", "none: /x"), "--heldout: expected a folder, found none: /x"),
        (InputError("source", "a workdir", "none"), "--from: expected a workdir, found none"),
        (InputError("heldout, train.seed", "the same", 3), "--heldout, --seed: expected the same, found 3"),
        (InputError("config", "the model has units=24"), "--set: the model has units=24"),
        (InputError("/data/info.json", "`mask`", "`elmo-tf a`"), "/data/info.json: expected `mask`, found `elmo-tf a`"),
    ],
)
def test_parameters_become_flags_and_paths_stay(error, message, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(finetuning, "finetune", fail)
    assert cli.main(FINETUNE) == 1
    assert capsys.readouterr().err == f"elmo-tf: error: {message}\n"


def test_an_error_survives_another_process():
    error = InputError("data", "a: folder, found none", "one: /x, found")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_debug_prints_the_traceback_behind_an_error(capsys):
    command = ["evaluate", "--workdir", "/nowhere", "--data", "/nowhere"]
    assert cli.main(command) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert cli.main([*command, "--debug"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("elmo-tf: error: ")
