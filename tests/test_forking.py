"""Other processes: a forked one is refused in words where TensorFlow was used before, a spawned one works."""

import multiprocessing

import pytest

import elmo_tf
from tests.helpers import run_python

MODELS: list = []


def embed(texts: list[str]) -> None:
    MODELS[0].encode(texts)


@pytest.mark.usefixtures("loaded_once")
def test_a_process_forked_after_tensorflow_was_used_is_refused_in_one_line(savedmodel):
    MODELS[:] = [elmo_tf.load(savedmodel.path)]
    MODELS[0].encode(["a bank"])
    message = "^multiprocessing: TensorFlow was used before this process was forked, and would hang; .*$"
    with (
        multiprocessing.get_context("fork").Pool(1) as pool,
        pytest.raises(elmo_tf.InputError, match=message),
    ):
        pool.apply_async(embed, [["a bank"]]).get(60)


PROGRAM = """
import multiprocessing, sys
import elmo_tf

def embed(texts):
    return elmo_tf.load(sys.argv[1]).encode(texts, pool="mean").shape

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.apply_async(embed, [["a bank"]]).get(500))
"""


@pytest.mark.slow
def test_a_process_forked_before_computes(savedmodel):
    assert run_python("-c", PROGRAM, savedmodel.path, timeout=600).stdout == "(1, 16)\n"
