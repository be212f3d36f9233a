"""What stands on stderr while TensorFlow is loaded."""

import os
import threading

from elmo_tf import progress


def test_threads_at_once_leave_stderr_as_it_was(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    first_is_in, second_starts = threading.Event(), threading.Event()

    def first():
        with progress.quiet_stderr():
            first_is_in.set()
            second_starts.wait(10)
            os.write(2, b"TensorFlow was here\n")

    def second():
        first_is_in.wait(10)
        second_starts.set()
        with progress.quiet_stderr():
            pass

    threads = [threading.Thread(target=one) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"an error\n")
    assert capfd.readouterr().err == "an error\n"
