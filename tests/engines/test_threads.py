"""The threads of NumPy's engine: one BLAS thread within calls, the old number afterwards, and work that is divided."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest
import threadpoolctl

from elmo_tf.engines import threads


def blas_threads() -> int:
    """What NumPy's library may use; SciPy has one of its own."""
    parts = [part for part in threadpoolctl.threadpool_info() if part["user_api"] == "blas"]
    return min(part["num_threads"] for part in parts)


@pytest.fixture
def two_blas_threads():
    threads.num_threads()  # what the machine has, not what this test sets
    with threadpoolctl.threadpool_limits(2, "blas"):
        yield


def test_products_have_one_thread_until_the_last_of_overlapping_calls_ends(two_blas_threads):
    first_is_in, second_is_out, seen = threading.Event(), threading.Event(), []

    def first() -> None:
        with threads.products_on_one_thread():
            first_is_in.set()
            second_is_out.wait()
            seen.append(blas_threads())

    thread = threading.Thread(target=first)
    thread.start()
    first_is_in.wait()
    with threads.products_on_one_thread():
        seen.append(blas_threads())
    second_is_out.set()
    thread.join()
    assert (seen, blas_threads()) == ([1, 1], 2)


def test_an_error_ends_the_limit(two_blas_threads):
    with pytest.raises(ValueError, match="of the block"), threads.products_on_one_thread():
        raise ValueError("of the block")
    assert blas_threads() == 2


@pytest.mark.parametrize("number", [1, 4])
def test_results_are_in_the_order_of_the_items_and_errors_are_those_of_the_function(number, monkeypatch):
    monkeypatch.setattr(threads, "num_threads", lambda: number)
    assert threads.divided(str, range(20)) == [str(item) for item in range(20)]
    with pytest.raises(ZeroDivisionError):
        threads.divided(lambda item: 1 / (3 - item), range(5))


def test_a_call_has_threads_beside_its_own_and_works_in_a_fork_as_well():
    program = """
        import os, threading
        from elmo_tf.engines import threads

        def names():
            barrier = threading.Barrier(2, timeout=30)  # passed only if two threads compute at the same time
            return threads.divided(lambda item: (barrier.wait(), threading.current_thread().name)[1], [0, 1])

        assert len(set(names())) == 2
        child = os.fork()
        if not child:
            os._exit(len(set(names())) - 2)
        assert os.waitpid(child, 0)[1] == 0
    """
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, check=True, timeout=120)
