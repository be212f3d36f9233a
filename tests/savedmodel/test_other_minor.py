"""Exports that one minor version of TensorFlow writes and another loads: the installed one, and the one before."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.savedmodel import contract, standalone_checker, verification
from elmo_tf.tasks.trained import Trained
from tests import checks
from tests.helpers import MICRO, require_package_index
from tests.savedmodel.calls import LONGEST, WORDS, embed_tokens
from tests.tasks.small import built

pytestmark = pytest.mark.slow
OTHER = "2.20"
# Packages that this one needs and TensorFlow does not install.
MORE = ("filelock", "google-crc32c", "msgspec")
ABOUT = "import importlib.util as u, tensorflow as tf; print(tf.__version__, u.find_spec('elmo_tf'))"
EXPORT = "import sys, elmo_tf; print(elmo_tf.export(*sys.argv[1:]))"


def run(folder: pathlib.Path, *command: str | os.PathLike, path: str = "") -> subprocess.CompletedProcess:
    """Runs a command that sees no packages but its own and those in `path`."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def install(folder: pathlib.Path, python: str | os.PathLike, *arguments: str | os.PathLike) -> None:
    require_package_index()
    done = run(folder, python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Python of a fresh environment with the other TensorFlow alone; from PyPI, a minute or two."""
    folder = tmp_path_factory.mktemp("other")
    run(folder, sys.executable, "-m", "venv", folder).check_returncode()
    install(folder, folder / "bin" / "python", f"tensorflow-cpu=={OTHER}.*")
    version, package = run(folder, folder / "bin" / "python", "-c", ABOUT).stdout.split()
    assert (version.startswith(f"{OTHER}."), package) == (True, "None")
    assert not tf.__version__.startswith(f"{OTHER}.")
    return folder / "bin" / "python"


@pytest.mark.parametrize("name", ["elmo", "ner", "sentiment"])
def test_the_other_minor_loads_an_export_and_computes_the_same(other, savedmodel, tmp_path, name):
    path = savedmodel.path
    if name != "elmo":
        path = Trained(*built(name, MICRO)[:2]).export(tmp_path / "model")
    samples = dict(np.load(path / contract.SAMPLE_VECTORS_FILE)) | {"tolerance": checks.TOLERANCE["atol"]}
    np.savez(tmp_path / "samples.npz", **samples)
    done = run(tmp_path, other, "-P", standalone_checker.__file__, path, tmp_path / "samples.npz")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_an_export_that_the_other_minor_wrote_computes_the_same_here(other, workdir, tmp_path):
    install(tmp_path, other, "--target", tmp_path / "more", *MORE)
    packages = os.pathsep.join(map(str, (pathlib.Path(elmo_tf.__file__).parents[1], tmp_path / "more")))
    done = run(tmp_path, other, "-c", EXPORT, workdir, tmp_path / "model", path=packages)
    assert done.returncode == 0, done.stderr
    path = pathlib.Path(done.stdout.strip())
    list(verification.verify(path))
    layers = embed_tokens(tf.saved_model.load(path), WORDS, LONGEST)["layers"]
    for row, encoded in zip(layers, elmo_tf.load(workdir).encode(WORDS, "all"), strict=True):
        np.testing.assert_allclose(row[:, : len(encoded.tokens)], encoded.vectors, **checks.TOLERANCE)
