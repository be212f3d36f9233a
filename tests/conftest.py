"""What all tests share: two logical CPUs, because two replicas need two devices; one thread per operation; random
numbers that are the same in every run; fixtures."""

import functools
import gc
import os
import pathlib
import random
import shutil
import signal
import sys
import zlib
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # two test processes share two cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import engines, precision
from elmo_tf.model.fast import BiLM
from elmo_tf.published import models
from elmo_tf.training import loop
from elmo_tf.training.step import StepResult, Trainer
from elmo_tf.workdir.folder import open_workdir
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG, write_records

# A shell starts background jobs with SIGINT ignored, and the commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

SENTENCES = [
    "the cat sat on the mat",
    "a dog barked",
    "the dog sat",
    "on a mat a cat slept and the dog barked at the cat",
    "cats sleep",
] * 4


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """A small folder of records, for tests that only read it."""
    return write_records(tmp_path_factory.mktemp("records") / "data", SENTENCES)


@pytest.fixture(scope="session")
def workdir(records, tmp_path_factory):
    """A workdir trained for a few steps, for tests that only read it."""
    return loop.train(MICRO_CONFIG, records.path, tmp_path_factory.mktemp("trained") / "workdir", steps=3)


@pytest.fixture
def copy(workdir, tmp_path):
    """A workdir of three steps, for a test that changes it."""
    return open_workdir(shutil.copytree(workdir.path, tmp_path / "copy"))


class Exported(NamedTuple):
    """A SavedModel and what it was made of."""

    path: pathlib.Path  # the version's folder
    bilm: BiLM
    scalar_parameters: list[float]
    gamma: float


@pytest.fixture(scope="session")
def savedmodel(tmp_path_factory):
    """A model of random weights, exported with a mix that is not uniform, for tests that only read it."""
    bilm, mix, gamma = checks.randomize(BiLM(MICRO), scale=0.4), [0.3, -0.5, 1.0], 1.7
    provenance = {"vocabulary": {"size": 3}}
    folder = tmp_path_factory.mktemp("exported") / "micro"
    path = checks.export_unverified(bilm, MICRO_CONFIG, folder, mix, gamma, provenance)
    return Exported(path, bilm, mix, gamma)


_engine = functools.cache(engines.make)


@functools.wraps(engines.make)
def _make_once(source, name, num_threads=None):
    return _engine(source, name)


@pytest.fixture
def loaded_once(monkeypatch):
    """Reads and traces each model once for all tests of a process that ask for this: it takes longer than most do."""
    monkeypatch.setattr(engines, "make", _make_once)


@pytest.fixture
def untraced_steps(monkeypatch) -> None:
    """Training steps that only add 1 to every weight: tracing a real one takes longer than what surrounds it."""

    def step(trainer: Trainer, *_) -> StepResult:
        for variable in trainer.variables:
            variable.assign_add(tf.ones_like(variable))
        return StepResult(*tf.ones(3))

    monkeypatch.setattr(Trainer, "step", step)


@pytest.fixture
def bfloat16_cpu(monkeypatch, tmp_path) -> pathlib.Path:
    """A CPU that claims to multiply bfloat16 matrices: its description, to be changed."""
    description = tmp_path / "cpuinfo"
    description.write_text("flags : avx2 avx512_bf16\n")
    monkeypatch.setattr(precision, "_CPU", description)
    for name in precision._MAX_ISA:
        monkeypatch.delenv(name, raising=False)
    return description


@pytest.fixture
def home(tmp_path, monkeypatch) -> pathlib.Path:
    """An empty folder for fetched models."""
    monkeypatch.setenv(models.HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def dtype_policy():
    """Sets Keras's dtype policy for the rest of the test: `dtype_policy("mixed_bfloat16")`."""
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy("float32")


def seed_by(name: str) -> None:
    """A test that fails fails again: its random weights depend neither on the run nor on the tests before it.

    Keras draws its seeds from Python's generator. No test depends on TensorFlow's own seed, and setting it would drop
    all graphs that are ready to run: each takes a second to get ready again.
    """
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    np.random.seed(seed)


def pytest_fixture_setup(fixturedef) -> None:
    seed_by(f"{fixturedef.baseid}::{fixturedef.argname}")


def pytest_runtest_call(item: pytest.Item) -> None:
    seed_by(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    """Skips what needs tensorflow-text where it is not installed, as beside a TensorFlow that has none yet."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if "tensorflow_text" in sys.modules or error.name != "tensorflow_text":
            raise
        return pytest.skip("needs tensorflow-text")


def pytest_collection_finish() -> None:
    """Saves a fifth of the time: without it, the garbage collector often walks all of TensorFlow and Keras."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts with the longest file: at the end, the other process would wait for it."""
    items.sort(key=lambda item: item.path.name != "test_whole_way.py")
