"""TensorFlow's import: what stands on stderr meanwhile, and what is not imported."""

import os
import subprocess
import sys
import threading

from elmo_tf import loading


def test_threads_at_once_leave_stderr_as_it_was(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    first_is_in, second_starts = threading.Event(), threading.Event()

    def first():
        with loading.tensorflow():
            first_is_in.set()
            second_starts.wait(10)
            os.write(2, b"TensorFlow was here\n")

    def second():
        first_is_in.wait(10)
        second_starts.set()
        with loading.tensorflow():
            pass

    threads = [threading.Thread(target=one) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"an error\n")
    assert capfd.readouterr().err == "an error\n"


def test_kerass_wrappers_are_left_out_and_may_be_imported_later():
    code = (
        "import sys\n"
        "from elmo_tf import loading\n"
        "with loading.tensorflow():\n"
        "    import keras\n"
        "print(*[name in sys.modules for name in ('sklearn', 'matplotlib')])\n"
        "import sklearn, matplotlib\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
