"""`elmo-tf corpus lm1b` and what is under it, on a small archive of the same layout."""

import hashlib
import io
import json
import os
import pathlib
import random
import re
import shlex
import signal
import tarfile
import threading
import time

import pytest

from elmo_tf import cli
from elmo_tf.corpus import lm1b
from elmo_tf.errors import InputError
from elmo_tf.files import lock
from tests.beam.common import files, interrupted
from tests.files.file_server import serve

TRAINING, HELDOUT = lm1b.FOLDERS


def text(number: int) -> bytes:
    draw = random.Random(number)
    return b"".join(b"%d words of %s\n" % (number, draw.randbytes(20).hex().encode()) for _ in range(500))


FILES = {f"{TRAINING}/news.en-{number:05d}-of-00100": text(number) for number in range(1, 6)} | {
    f"{HELDOUT}/news.en.heldout-{number:05d}-of-00050": text(100 + number) for number in range(3)
}


def pack() -> bytes:
    """Returns the archive: `FILES` in another order than theirs, among members that are not to be taken."""
    root = lm1b.ROOT
    news = f"{root}/{TRAINING}"
    others = [f"{root}/README", f"{news}/._news.en-00001-of-00100", f"{news}/deeper/news.en", f"{news}/../evil"]
    others += [f"{root}/other/news.en", f"other/{TRAINING}/news.en", f"/{news}/news.en", f"{TRAINING}/news.en"]
    content = dict.fromkeys(others, b"not for us\n") | {f"{root}/{name}": FILES[name] for name in reversed(FILES)}
    kinds = dict.fromkeys([root, *(f"{root}/{folder}" for folder in lm1b.FOLDERS)], tarfile.DIRTYPE)
    kinds |= {f"{news}/news.en-symbolic": tarfile.SYMTYPE, f"{news}/news.en-hard": tarfile.LNKTYPE}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, kind in (kinds | dict.fromkeys(content, tarfile.REGTYPE)).items():
            member, data = tarfile.TarInfo(name), content.get(name, b"")
            member.type, member.size, member.linkname = kind, len(data), "/etc/hosts"
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


PACKED = pack()


@pytest.fixture(autouse=True)
def server(monkeypatch):
    """A server of the small archive, which takes the place of the published one."""
    with serve(PACKED) as running:
        monkeypatch.setattr(lm1b, "URL", running.url)
        monkeypatch.setattr(lm1b, "SIZE", len(PACKED))
        monkeypatch.setattr(lm1b, "SHA256", hashlib.sha256(PACKED).hexdigest())
        yield running


def command(*arguments: object) -> int:
    """Runs `elmo-tf corpus lm1b` in this process; returns its exit status."""
    return cli.main(["corpus", "lm1b", *map(str, arguments)])


@pytest.fixture
def output(tmp_path) -> pathlib.Path:
    return tmp_path / "new" / "corpus"


def assert_complete(output: pathlib.Path) -> None:
    """Asserts that the corpus is complete, and that nothing else is in its folder or beside it."""
    assert files(output) == FILES
    assert os.listdir(output.parent) == [output.name]


def test_the_command_fetches_unpacks_and_names_the_next_one_which_works(output, capsys, caplog, monkeypatch):
    assert command("--output", output) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert_complete(output)
    (message,) = caplog.messages
    ready, next_command = message.splitlines()
    assert ready == f"ready in {output}: 5 files in {TRAINING} and 3 files in {HELDOUT}; now, for example:"
    monkeypatch.chdir(output.parent)
    name, *arguments = shlex.split(next_command)
    assert name == "elmo-tf"
    assert cli.main(arguments) == 0
    info = json.loads((output.parent / "data" / "lm1b" / "info.json").read_text())
    assert [file["name"] for file in info["inputs"]] == [pathlib.Path(file).name for file in FILES if TRAINING in file]
    assert info["vocabulary"]["min_count"] == 3


def test_an_archive_whose_unpacking_was_interrupted_is_checked_and_not_downloaded_again(server, output):
    with interrupted(os, "fsync", after=3):
        lm1b.fetch(output)
    assert os.listdir(output.parent) == ["corpus.download"]
    lm1b.fetch(output)
    assert server.ranges == [None]
    assert_complete(output)


def test_a_damaged_archive_of_an_earlier_run_is_removed_and_the_same_command_downloads_it(server, output):
    packed = output.with_name("corpus.download")
    packed.parent.mkdir(exist_ok=True)
    packed.write_bytes(bytes(lm1b.SIZE))
    with pytest.raises(InputError, match="the file was removed"):
        lm1b.fetch(output)
    assert not packed.exists()
    lm1b.fetch(output)
    assert_complete(output)


def test_ctrl_c_ends_with_130_and_the_same_command_resumes(server, output, capsys):
    part, over = output.with_name("corpus.download.part"), threading.Event()

    def interrupt():
        while not (part.exists() and part.stat().st_size):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(60)

    server.cuts, server.before_cut = [len(PACKED) - 1], interrupt
    assert command("--output", output) == 130
    over.set()
    kept = part.stat().st_size
    assert files(output.parent) == {part.name: PACKED[:kept]}
    assert "interrupted; run the same command again" in capsys.readouterr().err
    assert command("--output", output) == 0
    assert server.ranges == [None, f"bytes={kept}-"]
    assert_complete(output)
    assert capsys.readouterr().out == f"{output}\n"


def test_an_archive_already_there_is_checked_unpacked_and_kept(server, output, tmp_path):
    archive = tmp_path / "mine.tgz"
    archive.write_bytes(PACKED)
    assert command("--output", output, "--archive", archive) == 0
    assert_complete(output)
    assert archive.read_bytes() == PACKED
    assert server.ranges == []


ARCHIVES = {"cut.tgz": PACKED[:-9], "bad.tgz": bytes(len(PACKED))}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--archive missing.tgz", "missing.tgz: no such file"),
        ("--archive cut.tgz", f"cut.tgz: it has {len(PACKED) - 9:,} bytes, but should have {len(PACKED):,}"),
        ("--archive bad.tgz", "bad.tgz: its SHA-256 is [0-9a-f]{64}, but should be [0-9a-f]{64}"),
        ("--output cut.tgz", "cut.tgz: a file of this name exists; name a new folder"),
        ("--output cut.tgz/new", r"cut.tgz/new: the folder cannot be made \(File exists\)"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing_behind(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name, content in ARCHIVES.items():
        pathlib.Path(name).write_bytes(content)
    assert command("--output", "new/corpus", *arguments.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(f"^elmo-tf: error: {message}$", err, re.MULTILINE), err
    assert err.endswith("\n")
    assert sorted(os.listdir(tmp_path)) == sorted(ARCHIVES)


def test_two_runs_do_not_work_in_one_folder(server, output):
    output.parent.mkdir()
    other = os.open(output.parent, os.O_RDONLY)
    assert lock.acquire(other, output.parent)
    with pytest.raises(InputError, match=f"^{output.parent}: another run is using this folder$"):
        lm1b.fetch(output)
    assert server.ranges == []
    os.close(other)
    lm1b.fetch(output)
    assert_complete(output)
