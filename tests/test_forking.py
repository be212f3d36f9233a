"""Other processes: a forked one is refused in words where TensorFlow was used before; models can be pickled."""

import pickle

import numpy as np
import pytest

import elmo_tf
from tests import checks
from tests.helpers import run_python

PROGRAM = """
import multiprocessing, sys
import elmo_tf

model = elmo_tf.load(sys.argv[1])

def embed(texts):
    model.encode(texts)

with multiprocessing.get_context("fork").Pool(1) as pool:
    try:
        pool.apply_async(embed, [["a bank"]]).get(500)
    except elmo_tf.InputError as error:
        print(error)
"""


def test_a_process_forked_after_tensorflow_was_used_is_refused_in_one_line(savedmodel):
    expected = "multiprocessing: TensorFlow was used before this process was forked, and would wait for ever; "
    assert run_python("-c", PROGRAM, savedmodel.path, timeout=600).stdout.startswith(expected)


@pytest.mark.usefixtures("loaded_once")
def test_a_pickled_model_computes_the_same(savedmodel):
    model = elmo_tf.load(savedmodel.path)
    again = pickle.loads(pickle.dumps(model))
    expected, vectors = (elmo.encode(["a bank"], pool="mean") for elmo in (model, again))
    np.testing.assert_allclose(vectors, expected, **checks.TOLERANCE)
    assert repr(again) == repr(model)
