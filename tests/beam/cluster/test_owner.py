"""Remote folders have one writer at a time, without locks and without comparing clocks."""

import concurrent.futures
import contextlib
import json
import signal
import threading
import time

import pytest

from elmo_tf.beam.cluster import owner
from elmo_tf.beam.running import journal
from elmo_tf.errors import InputError
from tests.beam.memory_store import STORE

FOLDER = "memory://owned/out"
NOTE = f"{FOLDER}/_unfinished/owner.json"


@pytest.fixture(autouse=True)
def quick(store, monkeypatch):
    """A heartbeat 100 times as fast."""
    for name in ("_BEAT_SECONDS", "_FIRST_SECONDS", "_WAIT_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(owner, name, getattr(owner, name) / 100)


def another_note(beat: int = 1) -> bytes:
    return json.dumps({"run": "another", "who": "process 7 on elsewhere", "beat": beat}).encode()


@contextlib.contextmanager
def another_run():
    """Another run's heart beats during the block."""
    stop = threading.Event()

    def beat() -> None:
        for count in range(10_000):
            if stop.wait(0.02):
                return
            STORE[NOTE] = another_note(count)

    thread = threading.Thread(target=beat)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_a_note_changes_while_the_folder_is_written_and_is_deleted_after():
    with owner.owned(FOLDER, NOTE):
        first = STORE[NOTE]
        end = time.monotonic() + 10
        while STORE[NOTE] == first and time.monotonic() < end:
            time.sleep(0.01)
        assert STORE[NOTE] != first
    assert STORE == {}


def test_a_folder_whose_note_changes_is_refused():
    STORE[NOTE] = another_note()
    expected = f"^{FOLDER}: expected a folder that no other run writes, found one in use by process 7 on elsewhere$"
    with another_run(), pytest.raises(InputError, match=expected), owner.owned(FOLDER, NOTE):
        pass
    assert b"another" in STORE[NOTE]


@pytest.mark.parametrize("note", [another_note(), b"damaged"], ids=["silent", "damaged"])
def test_the_folder_of_a_run_that_was_killed_is_taken(note):
    STORE[NOTE] = note
    journal.check(FOLDER)
    with owner.owned(FOLDER, NOTE):
        assert b"another" not in STORE[NOTE]
    assert STORE == {}


def test_of_two_runs_that_begin_at_the_same_time_one_stops_and_the_error_names_its_folder():
    """Beam's runner has the main thread wait for a future."""
    refused = pytest.raises(InputError, match=f"^{FOLDER}: .* in use by process 7 on elsewhere")
    with refused, journal.unfinished([FOLDER], {"a": "plan"}):
        STORE[NOTE] = another_note()
        start = time.monotonic()
        concurrent.futures.Future().result(60)
    assert time.monotonic() - start < 50
    assert STORE[NOTE] == another_note()


def test_a_run_in_another_thread_is_stopped_and_the_main_thread_is_not():
    """The program that started it may do something else there."""
    interrupts = []
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))

    def run() -> None:
        with journal.unfinished([FOLDER], {"a": "plan"}):
            STORE[NOTE] = another_note()
            for _ in range(500):  # until the heart interrupts
                time.sleep(0.01)

    expected = f"^{FOLDER}: expected a folder that no other run writes, found one in use by process 7"
    try:
        with concurrent.futures.ThreadPoolExecutor() as pool, pytest.raises(InputError, match=expected):
            pool.submit(run).result()
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupts == []
    assert STORE[NOTE] == another_note()
    assert f"{FOLDER}/_SUCCESS" not in STORE


def test_a_second_command_is_refused_and_the_first_one_keeps_its_files():
    with journal.unfinished([FOLDER], {"a": "plan"}):
        STORE[f"{FOLDER}/vocab.txt.tmp-1"] = b"being written"
        journal.check(FOLDER)
        refused = pytest.raises(InputError, match=rf"^{FOLDER}: .* found one in use by process \d+ on ")
        with refused, journal.unfinished([FOLDER], {"a": "plan"}):
            pass
        assert f"{FOLDER}/vocab.txt.tmp-1" in STORE
    assert list(STORE) == [f"{FOLDER}/_SUCCESS"]
