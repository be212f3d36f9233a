"""The examples as a user starts them, on a few sentences."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TAGGED = "anna B-PER\nsat O\n\nnew B-LOC\nyork I-LOC\nsleeps O\n\n" * 20
CLASSIFIED = "good\ta fine film\nbad\ta poor film\n" * 40


def start(example: str, *arguments: str | os.PathLike) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, ROOT / "examples" / example, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "text", "result"),
    [("ner_tagger.py", TAGGED, "F1 "), ("sentence_classifier.py", CLASSIFIED, "accuracy ")],
)
def test_an_example_prints_its_score(savedmodel, tmp_path, example, text, result):
    (tmp_path / "data").write_text(text)
    done = start(example, savedmodel.path, tmp_path / "data", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith(result)
    assert 0 <= float(last.removeprefix(result)) <= 100


@pytest.mark.slow
def test_a_wrong_file_is_one_line(savedmodel, tmp_path):
    (tmp_path / "data").write_text("no tab\n")
    done = start("sentence_classifier.py", savedmodel.path, tmp_path / "data", tmp_path / "data")
    assert done.returncode == 1
    message = r"sentence_classifier.py: error: \S+, line 1: expected a label, a tab and a sentence, found 'no tab'$"
    assert re.match(message, done.stderr.splitlines()[-1])
