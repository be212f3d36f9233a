"""The library speaks of parameters, the command line of flags."""

import pickle

import pytest

from elmo_tf import cli
from elmo_tf.cli.flags import in_flags
from elmo_tf.errors import InputError, renamed

FLAGS = {"heldout": "--heldout", "source": "--from", "savedmodel": "DIR", "batch_size": "--batch-size"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("heldout", "a folder", "none: /x"), "--heldout: expected a folder, found none: /x"),
        (InputError("source", "a workdir", "none"), "--from: expected a workdir, found none"),
        (InputError("savedmodel", "a model", "none"), "DIR: expected a model, found none"),
        (InputError("heldout, train.seed", "the same", 3), "--heldout, --set train.seed: expected the same, found 3"),
        (
            InputError("train.patience", "`heldout` with it", "none"),
            "--set train.patience: expected --heldout with",
        ),
        (
            InputError("/data/info.json", "`mask`", "`elmo-tf train`"),
            "/data/info.json: expected `mask`, found `elmo",
        ),
    ],
)
def test_parameters_become_flags_and_all_else_stays(error, message):
    assert in_flags(error, FLAGS).startswith(message)


def test_an_error_survives_another_process_and_its_message_alone():
    error = InputError("data", "a: folder, found none", "one: /x, found")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert InputError.from_message("data: expected a folder, found none: /x").found == "none: /x"
    assert str(InputError.from_message("nothing of the kind")) == "nothing of the kind"


def test_debug_prints_the_traceback_behind_an_error(capsys):
    command = ["evaluate", "--workdir", "/nowhere", "--data", "/nowhere"]
    assert cli.main(command) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert cli.main([*command, "--debug"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("elmo-tf: error: --workdir: expected")


def test_a_caller_s_names_stand_for_the_callee_s():
    with (
        pytest.raises(InputError, match=r"^heldout, other: expected a folder, found none$") as caught,
        renamed(path="heldout"),
    ):
        raise InputError("path, other", "a folder", "none")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
