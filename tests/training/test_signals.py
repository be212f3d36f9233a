"""SIGINT and SIGTERM during training and while waiting."""

import os
import signal
import threading

import pytest

from elmo_tf.training import signals


def test_the_first_signal_is_a_request_and_the_second_one_interrupts(capfd):
    with signals.Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    said = "Ctrl-C: finishing this step, then saving. Press again to stop at once."
    assert capfd.readouterr().err == f"\n{said}\n"


@pytest.mark.parametrize(("block", "count"), [(signals.Interrupt, 2), (signals.terminable, 1)])
def test_the_second_sigterm_interrupts_training_and_the_first_one_a_wait(block, count):
    with pytest.raises(KeyboardInterrupt), block():
        for _ in range(count):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_handler_of_sigterm_stays():
    with signals.Interrupt() as interrupt, signals.terminable():
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.requested


def test_a_block_outside_the_main_thread_runs_too():
    ran = []

    def block():
        with signals.terminable():
            ran.append(True)

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert ran == [True]
