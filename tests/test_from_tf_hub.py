"""The programs of docs/from-tf-hub.md, taken from the page and run."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

PAGE = (pathlib.Path(__file__).parents[1] / "docs" / "from-tf-hub.md").read_text()
PROGRAMS = [code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if not code.startswith("# TF Hub")]


def test_the_page_has_a_program_for_each_of_the_old_ones():
    assert len(PROGRAMS) == 4
    assert PAGE.count("# TF Hub\n") == 3


@pytest.mark.parametrize("code", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_runs_as_it_stands(code, savedmodel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "savedmodels" / "elmo").mkdir(parents=True)
    (tmp_path / "savedmodels" / "elmo" / "1").symlink_to(savedmodel.path)
    found: dict = {}
    exec(code, found)
    if "model" in found:
        outputs = found["model"](tf.constant(["the cat", "", "a dog barked"]))
        assert outputs.shape == (3, 2)
        assert np.isfinite(outputs).all()
    else:
        assert found["vectors"].shape[::2] == (2, 16)
