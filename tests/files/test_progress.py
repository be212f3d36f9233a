"""The progress line: on terminals of several widths, and on a stderr that cannot be written."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from elmo_tf.display import table, with_count

SHOWN = """
import os, signal
from elmo_tf.files.progress import ProgressLine
from elmo_tf.training.signals import Interrupt
line = ProgressLine()
line.show("a")
line.leave("b")
with Interrupt() as interrupt:
    os.kill(os.getpid(), signal.SIGINT)
print("goes on", interrupt.requested)
"""


@pytest.mark.parametrize("stderr", ["full", "closed"])
def test_a_log_on_a_full_disk_or_without_a_reader_ends_nothing(stderr):
    if stderr == "full":
        if not pathlib.Path("/dev/full").exists():
            pytest.skip("no /dev/full on this machine")
        redirected = "2>/dev/full"
    else:
        redirected = "2> >(exit)"
    command = f"sleep 0.2; exec {sys.executable} -c '{SHOWN}' {redirected}"
    done = subprocess.run(["bash", "-c", command], check=False, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "goes on True\n")


def on_terminal(code: str, columns: int) -> bytes:
    """Returns what a program writes to stderr, a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 4096):
                written += part
        # Linux raises this when the program has closed the other end.
        except OSError:
            pass
    os.close(ours)
    assert process.returncode == 0
    return written


def screen(written: bytes) -> list[str]:
    """Returns the lines that a wide terminal shows: it knows carriage return, line feed and "erase to the end"."""
    lines, column = [""], 0
    for part in re.findall(r"\r|\n|\033\[K|[^\r\n\033]+", written.decode()):
        if part == "\r":
            column = 0
        elif part == "\n":
            lines.append("")
        elif part == "\033[K":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column] + part + lines[-1][column + len(part) :]
            column += len(part)
    return lines


@pytest.mark.parametrize("columns", [80, 60, 0])
def test_a_line_that_is_redrawn_fits_the_terminal_and_one_that_stays_is_whole(columns, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    items = ["step 123,456/800,000", "10:01:02 left", "perplexity 45.3", "104,123 tokens/s", "epoch 1.23"]
    start = "from elmo_tf.files.progress import ProgressLine; line = ProgressLine()"
    fitting = items[:3] if columns == 60 else items[:4]  # a terminal without a width counts as 80 columns
    text, stays = "  ".join(items), "held-out perplexity " * 6
    assert screen(on_terminal(f"{start}; line.show({text!r})", columns)) == ["  ".join(fitting)]
    code = f"{start}; line.show({text!r}); line.leave({stays!r}); line.show('next')"
    assert screen(on_terminal(code, columns)) == [stays, "next"]
    assert screen(on_terminal(f"{start}; line.show('x' * 99)", columns)) == ["x" * ((columns or 80) - 1)]


def test_a_message_of_the_command_line_replaces_a_progress_line():
    code = """
import logging
from elmo_tf import cli
from elmo_tf.files.progress import ProgressLine
cli.main(["models", "--json"])
line = ProgressLine()
line.show("step 1/2  perplexity 45.3")
logging.getLogger("elmo_tf").info("saved")
line.show("step 2/2  perplexity 44.3")
line.leave()
line.show("evaluating")
line.clear()
"""
    assert screen(on_terminal(code, 80)) == ["saved", "step 2/2  perplexity 44.3", ""]


def test_columns_are_aligned_with_wide_characters_and_combining_marks():
    rows = [["训练", "x"], ["cafe\u0301", "x"], ["\u200fשלום", "x"], ["ｱ", "x"], ["abcde", "x"]]
    columns = [4, 4, 4, 1, 5]
    lines = table(rows)
    assert [line.count(" ") for line in lines] == [2 + 5 - width for width in columns]


def test_numbers_of_things_are_words():
    assert [with_count(number, "stream") for number in (0, 1, 2000)] == ["0 streams", "1 stream", "2,000 streams"]
