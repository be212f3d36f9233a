"""Copies of pipes."""

import gzip
import logging
import os
import threading

import pytest

from elmo_tf.annotated import columns, numbered_lines
from elmo_tf.errors import InputError
from elmo_tf.files.pipes import copied_if_pipe


@pytest.fixture
def pipe(tmp_path):
    """Makes a pipe that contains some bytes: `pipe("name", b"...")`."""

    def make(name: str, content: bytes):
        os.mkfifo(tmp_path / name)
        threading.Thread(target=(tmp_path / name).write_bytes, args=(content,), daemon=True).start()
        return tmp_path / name

    return make


def test_a_pipe_is_copied_so_that_it_can_be_read_twice(pipe, tmp_path):
    path = pipe("pipe", b"a\nb\n")
    with (
        pytest.raises(InputError, match=f"^{path}, line 2: expected c, found 'b'$"),
        copied_if_pipe(path) as copy,
    ):
        for _ in range(2):
            lines = list(numbered_lines.lines(copy))
            assert [line.text for line in lines] == ["a", "b"]
        raise lines[1].error("c")
    with copied_if_pipe(tmp_path) as same:
        assert same == tmp_path


def test_a_compressed_pipe_is_unpacked_as_a_file_of_its_name_is(pipe):
    with copied_if_pipe(pipe("pipe.gz", gzip.compress(b"a\nb\n"))) as copy:
        assert [line.text for line in numbered_lines.lines(copy)] == ["a", "b"]


def test_messages_about_a_pipe_name_the_pipe(pipe, caplog):
    path = pipe("pipe", b"New\tB-LOC\n\tO\nYork\tI-LOC\n")
    with caplog.at_level(logging.INFO, "elmo_tf"), copied_if_pipe(path) as copy:
        columns.read_columns(copy)
    assert caplog.messages == [
        f"{path}: tokens in column 0, tags in column 1 (counted from 0)",
        f"warning: {path}: 1 odd line: line 2 (an empty token: left out)",
    ]
