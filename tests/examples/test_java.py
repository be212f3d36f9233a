"""The example in Java: the same vectors as in Python."""

import shlex
import subprocess

import numpy as np
import pytest

import elmo_tf
from tests.checks import TOLERANCE
from tests.helpers import ROOT

SENTENCES = ["the cat sat", "a dog barked at the café"]


@pytest.mark.java
def test_java_returns_the_vectors_that_python_returns(savedmodel):
    command = ["mvn", "-q", "-B", "-f", str(ROOT / "examples" / "java"), "compile", "exec:java"]
    arguments = f"-Dexec.args={shlex.join([str(savedmodel.path), *SENTENCES])}"
    run = subprocess.run([*command, arguments], check=True, capture_output=True, encoding="utf-8")
    printed = run.stdout.replace("\x1b[0m", "")  # Maven's, with or without -B
    rows = [line.split() for line in printed.splitlines() if line]
    for number, expected in enumerate(elmo_tf.load(savedmodel.path).encode(SENTENCES)):
        vectors = np.array([row[1:] for row in rows if row[0] == str(number)], np.float32)
        np.testing.assert_allclose(vectors.reshape(expected.vectors.shape), expected.vectors, **TOLERANCE)
