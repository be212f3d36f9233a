"""The library speaks of parameters, the command line of flags."""

import pickle

import pytest

from elmo_tf import cli
from elmo_tf.errors import InputError
from elmo_tf.training import finetuning

FINETUNE = ["finetune", "--from", "old", "--data", "corpus", "--workdir", "workdir"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("heldout", "a folder", "none: /x"), "--heldout: expected a folder, found none: /x"),
        (InputError("source", "a workdir", "none"), "--from: expected a workdir, found none"),
        (InputError("heldout, train.seed", "the same", 3), "--heldout, --set train.seed: expected the same, found 3"),
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
