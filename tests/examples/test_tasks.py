"""The examples as a user starts them, on a few sentences."""

import pytest

from tests.helpers import run_python

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
