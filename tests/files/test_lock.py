"""Locks: one run at a time, and none where the file system has no locks."""

import concurrent.futures
import errno
import fcntl
import logging
import os
import subprocess
import sys
import time

import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import lock


def test_a_folder_in_use_is_refused_and_free_again_after_a_kill_or_a_regular_end(tmp_path):
    code = "import sys, time\nfrom elmo_tf.files import lock\nwith lock.locked(sys.argv[1]): print(1); time.sleep(99)"
    command = [sys.executable, "-u", "-c", code, str(tmp_path)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": ":".join(sys.path)})
    assert holder.stdout.readline() == b"1\n"
    with pytest.raises(InputError, match=rf"^{tmp_path}: another run is using this folder$"), lock.locked(tmp_path):
        pass
    holder.kill()
    holder.communicate()
    for _ in range(2):
        with lock.locked(tmp_path):
            pass


def test_who_waits_is_told_so_and_gets_the_folder_when_the_other_run_has_ended(tmp_path, capsys):
    shown = ""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with lock.locked(tmp_path):
            order = []

            def wait():
                with lock.locked(tmp_path, wait=True):
                    order.append("second")

            second = pool.submit(wait)
            until = time.monotonic() + 60
            while not shown and time.monotonic() < until:
                time.sleep(0.01)
                shown = capsys.readouterr().err
            order.append("first")
        second.result()
    assert order == ["first", "second"]
    assert shown == f"waiting for another run, which is using {tmp_path}\n"


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_a_file_system_without_locks_is_used_with_one_warning(tmp_path, monkeypatch, caplog, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with caplog.at_level(logging.WARNING, "elmo_tf"), lock.locked(tmp_path):
        pass
    (record,) = caplog.records
    expected = f"warning: the file system of {tmp_path} has no locks ({os.strerror(number)})"
    assert record.getMessage().startswith(expected)
