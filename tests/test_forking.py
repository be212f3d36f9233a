"""Other processes: a forked one is refused in words where TensorFlow was used before, a spawned one works."""

import pickle

import numpy as np
import pytest

import elmo_tf
from tests import checks
from tests.helpers import run_python

PROGRAM = """
import multiprocessing, sys
import elmo_tf

def embed(texts):
    return elmo_tf.load(sys.argv[1]).encode(texts, pool="mean").shape if model is None else model.encode(texts).shape

when, start = sys.argv[2:]
model = elmo_tf.load(sys.argv[1]) if when == "used" else None

if __name__ == "__main__":
    with multiprocessing.get_context(start).Pool(1) as pool:
        try:
            print(pool.apply_async(embed, [["a bank"]]).get(500))
        except elmo_tf.InputError as error:
            print(error)
"""


def run(savedmodel, when: str, start: str) -> str:
    return run_python("-c", PROGRAM, savedmodel.path, when, start, timeout=600).stdout


def test_a_process_forked_after_tensorflow_was_used_is_refused_in_one_line(savedmodel):
    expected = "multiprocessing: TensorFlow was used before this process was forked, and would wait for ever; "
    assert run(savedmodel, "used", "fork").startswith(expected)


@pytest.mark.slow
def test_a_process_forked_before_computes(savedmodel):
    assert run(savedmodel, "fresh", "fork") == "(1, 16)\n"


@pytest.mark.usefixtures("loaded_once")
def test_a_pickled_model_computes_the_same(savedmodel):
    model = elmo_tf.load(savedmodel.path)
    again = pickle.loads(pickle.dumps(model))
    expected, vectors = (elmo.encode(["a bank"], pool="mean") for elmo in (model, again))
    np.testing.assert_allclose(vectors, expected, **checks.TOLERANCE)
    assert repr(again) == repr(model)
