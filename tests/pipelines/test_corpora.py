"""Sharing out a corpus: every line is read by exactly one task, whatever the files and the number of shards."""

import gzip
import itertools

import pytest

from elmo_tf.errors import InputError
from pipelines import corpora

LINES = [b"x" * length for length in (0, 1, 5, 0, 30, 2, 2, 100, 0, 0, 7, 12, 1, 1, 1, 40)] * 3


def lines_of(tasks: list[corpora.Task]) -> list[bytes]:
    blocks = itertools.chain.from_iterable(corpora.read_blocks(part) for task in tasks for part in task.slices)
    return [line for block in blocks for line in block.lines()]


@pytest.mark.parametrize("end", [b"\n", b""], ids=["line feed at the end", "none"])
@pytest.mark.parametrize("num_shards", [1, 2, 3, 10, 200])
def test_byte_ranges_cut_no_line(tmp_path, monkeypatch, num_shards, end):
    monkeypatch.setattr(corpora, "BLOCK_BYTES", 16)
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n".join(LINES) + end)
    tasks = corpora.plan(corpora.match([str(path)]), num_shards)
    assert [task.shards for task in tasks] == [(shard,) for shard in range(num_shards)]
    assert lines_of(tasks) == LINES


@pytest.mark.parametrize("num_shards", [1, 3, 9, 40])
def test_gzip_parts_hold_every_line_once(tmp_path, monkeypatch, num_shards):
    monkeypatch.setattr(corpora, "BLOCK_BYTES", 16)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\n".join(LINES)))
    tasks = corpora.plan(corpora.match([str(path)]), num_shards)
    assert sorted(shard for task in tasks for shard in task.shards) == list(range(num_shards))
    assert len(tasks) <= 8  # each decompresses the whole file
    assert sorted(lines_of(tasks)) == sorted(LINES)


def test_as_many_files_as_shards_stay_whole(tmp_path):
    for name in "abcde":
        (tmp_path / name).write_bytes(name.encode())
    tasks = corpora.plan(corpora.match([str(tmp_path / "*")]), 2)
    assert [[part.path[-1] for part in task.slices] for task in tasks] == [["a", "c", "e"], ["b", "d"]]
    assert all(part == corpora.Slice(part.path) for task in tasks for part in task.slices)


def test_fewer_files_than_shards_are_split_evenly():
    tasks = corpora.plan([corpora.TextFile("a", 100), corpora.TextFile("b", 90)], 5)
    assert {task.shards[0]: task.slices[0][:3] for task in tasks} == {
        0: ("a", 0, 33),
        2: ("a", 33, 66),
        4: ("a", 66, None),
        1: ("b", 0, 45),
        3: ("b", 45, None),
    }


def test_overlapping_globs_name_a_file_once_and_names_may_hold_brackets(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a[1].txt", "sub/c.txt"):
        (tmp_path / name).write_bytes(b"x")
    patterns = [str(tmp_path / name) for name in ("a[1].txt", "*", "*.txt", "./b.txt", "**/c.txt")]
    found = [(file.path.removeprefix(f"{tmp_path}/"), file.size) for file in corpora.match(patterns)]
    assert found == [("a[1].txt", 1), ("b.txt", 1), ("sub/c.txt", 1)]
    with pytest.raises(InputError, match=r"^--input: .*sub"):
        corpora.match([str(tmp_path / "sub")])


def test_only_a_byte_order_mark_at_the_beginning_is_taken_off(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("\ufeffone\n\ufefftwo\n".encode())
    (block,) = corpora.read_blocks(corpora.Slice(str(path)))
    assert block == ("one\n\ufefftwo\n".encode(), 1)
