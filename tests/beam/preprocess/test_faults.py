"""Killed runs, full disks, two runs at once: nothing looks finished that is not, and the same command resumes."""

import errno
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from elmo_tf.beam.preprocess import shards
from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError
from tests.beam.common import PROCESSES, contents, interrupted, small_disk, start
from tests.helpers import run_python, slow

SHUFFLED = ["--shuffle", "--shards=6", "--min-count=2"]


def tasks_done(output: pathlib.Path) -> int:
    """Returns the number of finished tasks in the journal of an unfinished run."""
    try:
        return sum(bool(re.fullmatch(r".+-\d{5}\.\w+\.json", name)) for name in os.listdir(output / "_unfinished"))
    except FileNotFoundError:  # not begun, or removed at the end while it is read
        return 0


def test_a_run_killed_at_any_moment_is_resumed(corpus, process, tmp_path):
    lines = [f"word{n % 997} is number{n % 13} of sentence{n}\n".encode() for n in range(60_000)]
    paths = corpus(b"".join(lines))
    whole = process(paths, *SHUFFLED, output="whole")
    output = tmp_path / "killed"
    kills = done = 0
    while True:
        run = start("preprocess", "--input", *paths, "--output", output, *SHUFFLED)
        while run.poll() is None and (tasks_done(output) <= done or kills == 2):
            time.sleep(random.random() / 50)
        run.kill()
        run.communicate()
        if (output / "_SUCCESS").exists():
            break
        assert run.returncode == -signal.SIGKILL
        kills, done = kills + 1, tasks_done(output)
    assert kills
    shutil.rmtree(output / "_unfinished", ignore_errors=True)  # there only if the last one was killed after the marker
    assert contents(output) == contents(whole)


def test_what_is_whole_is_used_again_and_what_is_not_is_not(corpus, process, tmp_path):
    paths = corpus(b"a b c\n" * 1000)
    whole = process(paths, "--shards=5", output="whole")
    with interrupted(shards.WriteTask, "do", after=3) as caught:
        process(paths, "--shards=5")
    assert str(caught.value) == "interrupted; run the same command again to resume"
    output = tmp_path / "output"
    assert not (output / "_SUCCESS").exists()
    written = sorted(output.glob("*.tfrecord"))
    assert len(written) == 3
    written[1].write_bytes(b"cut")  # by somebody else
    (output / "shard-00004-of-00005.tfrecord.tmp-0").write_bytes(b"left by a kill")
    times = [path.stat().st_mtime_ns for path in written]
    process(paths, "--shards=5")
    again = [path.stat().st_mtime_ns for path in written]
    assert (again[0], again[2]) == (times[0], times[2])
    assert again[1] > times[1]
    assert contents(output) == contents(whole)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["text", "option", "no vocabulary", "a shorter vocabulary"])
def test_what_a_change_makes_useless_is_made_again(corpus, process, tmp_path, change):
    (path,) = corpus(b"".join(b"a word%d\n" % number for number in range(1000)))
    with interrupted(shards.WriteTask, "do", after=1):
        process([path], "--shards=3")
    (words,) = (tmp_path / "output" / "_unfinished").glob("vocab*.txt")
    if change == "text":
        pathlib.Path(path).write_bytes(pathlib.Path(path).read_bytes()[::-1])
    elif change == "no vocabulary":
        words.unlink()
    elif change == "a shorter vocabulary":
        words.write_bytes(b"<S>\n</S>\n<UNK>\na\n")
    options = ["--shards=2" if change == "option" else "--shards=3"]
    assert contents(process([path], *options)) == contents(process([path], *options, output="fresh"))


def test_output_in_the_folder_of_the_input_is_not_read_as_text(corpus, process, tmp_path):
    folder = pathlib.Path(corpus(b"".join(b"a b %d\n" % number for number in range(1000)))[0]).parent
    options = ["--shards=3", f"--heldout={folder / 'heldout'}", "--heldout-fraction=0.5"]
    (folder / "b.txt").write_bytes(b"d e\n")
    with interrupted(shards.WriteTask, "do", after=2):
        process([str(folder)], *options, output="corpus/output")
    output = process([str(folder)], *options, output="corpus/output")
    assert [file["name"] for file in json.loads((output / "info.json").read_text())["inputs"]] == ["0.txt", "b.txt"]
    with pytest.raises(InputError, match=r"^input: expected files outside of the output folders"):
        (tmp_path / "left" / "_unfinished").mkdir(parents=True)
        (tmp_path / "left" / "_unfinished" / "plan.json").write_bytes(b"{}")
        process([str(tmp_path / "left")], output="left")
    with pytest.raises(InputError, match=r"left: expected no unfinished folder of elmo-tf embed, found one$"):
        (tmp_path / "left" / "_unfinished").mkdir(parents=True, exist_ok=True)
        (tmp_path / "left" / "_unfinished" / "plan.json").write_bytes(b'{"savedmodel": ""}')
        process([str(folder)], output="left")


@pytest.mark.slow
def test_a_failing_disk_under_the_input_leaves_what_is_done(corpus, process, tmp_path, monkeypatch):
    paths = corpus(b"a b c\n" * 1000, b"d\n")
    opened = filesystems.open_file

    def failing(path: str):
        if path == paths[1]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path)

    expected = r"^cannot read /.*/1.txt: Input/output error; run the same command again to resume$"
    with monkeypatch.context() as patch, pytest.raises(filesystems.ReadError, match=expected):
        patch.setattr(filesystems, "open_file", failing)
        process(paths, "--shards=3")
    assert (tmp_path / "output" / "_unfinished" / "plan.json").exists()
    assert contents(process(paths, "--shards=3")) == contents(process(paths, "--shards=3", output="fresh"))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], PROCESSES])
def test_a_full_disk_is_reported_and_more_room_is_enough_to_resume(corpus, process, tmp_path, workers):
    paths = corpus(b"".join(b"word%d some words in a sentence\n" % (n % 9) for n in range(40_000)))
    with small_disk(tmp_path / "disk", "2m") as disk:
        options = ["--output", disk / "output", "--shards=4", *workers]
        arguments = ["-m", "elmo_tf.cli", "preprocess", "--input", *paths, *options]
        run = run_python(*arguments, check=False, timeout=60)
        assert run.returncode == 1
        hint = "run the same command again to resume"
        last = run.stderr.splitlines()[-1]
        assert re.fullmatch(rf"elmo-tf: error: cannot write /.*: No space left on device; {hint}", last)
        assert not (disk / "output" / "_SUCCESS").exists()
        assert not list((disk / "output").glob("*.tmp-*")) or workers  # the other worker is stopped in the middle
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        run_python(*arguments, timeout=60)
        assert contents(disk / "output") == contents(process(paths, "--shards=4", output="whole"))


@pytest.mark.parametrize("workers", [[], slow(PROCESSES)], ids=["alone", "processes"])
def test_sigint_ends_like_any_command_and_leaves_what_is_done(corpus, tmp_path, workers):
    paths = corpus(b"some words in a sentence\n" * 400_000)
    run = start("preprocess", "--input", *paths, "--output", tmp_path / "output", "--shards=8", *workers)
    while not list((tmp_path / "output" / "_unfinished").glob("write-[0-9]*.json")) and run.poll() is None:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C in a terminal: to workers as well
    err = run.communicate(timeout=60)[1]
    assert err.splitlines()[-1] == "elmo-tf: interrupted; run the same command again to resume"
    assert "Traceback" not in err
    assert run.returncode == 130
    notes = list((tmp_path / "output" / "_unfinished").glob("write-[0-9]*.json"))
    assert notes
    assert all(json.loads(note.read_text())["shards"] for note in notes)
