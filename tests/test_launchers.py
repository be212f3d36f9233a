"""The scripts of `pipelines/` start the commands of their names."""

import runpy
import sys

import pytest

from elmo_tf import cli
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests.helpers import ROOT
from tests.training import commands

SCRIPTS = sorted(path.stem for path in (ROOT / "pipelines").glob("*.py"))


def run(monkeypatch, name: str, *arguments: object) -> int:
    """Runs a script as `python pipelines/NAME.py` does, in this process; returns its status."""
    script = str(ROOT / "pipelines" / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(script, run_name="__main__")
    return exit_.value.code


def test_there_is_a_script_for_each_long_job():
    assert SCRIPTS == ["embed", "preprocess", "train"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_the_options_of_its_command(name, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    expected = capsys.readouterr().out
    assert run(monkeypatch, name, "--help") == 0
    assert capsys.readouterr().out == expected
    assert run(monkeypatch, name) == 2  # its required options are missing


def test_a_script_trains_and_returns_the_status_of_its_command(records, tmp_path, monkeypatch, untraced_steps):
    _, *options = commands.arguments(records, tmp_path / "w")
    assert run(monkeypatch, "train", *options, "--steps", 2) == 0
    assert checkpoints.steps(open_workdir(tmp_path / "w")) == [2]
    assert run(monkeypatch, "train", *options, "--data", tmp_path / "none") == 1
