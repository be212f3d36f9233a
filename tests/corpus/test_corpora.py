"""Finding a corpus and dividing it: the files that a pattern matches, and every byte in exactly one task."""

import collections
import logging
import os
import re

import pytest

from elmo_tf.corpus import corpora
from elmo_tf.corpus.corpora import Slice, TextFile
from elmo_tf.errors import InputError


def named(tmp_path, *names: str) -> None:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))


def matched(tmp_path, *patterns: str) -> list[str]:
    files = corpora.match(str(tmp_path / pattern) for pattern in patterns)
    return [file.path.removeprefix(f"{tmp_path}/") for file in files]


def test_overlapping_globs_name_a_file_once_and_names_may_hold_brackets(tmp_path):
    named(tmp_path, "b.txt", "a[1].txt", "sub/c.txt")
    assert matched(tmp_path, "a[1].txt", "*", "*.txt", "./b.txt", "**/c.txt") == ["a[1].txt", "b.txt", "sub/c.txt"]


def test_relative_paths_are_those_of_the_folder_of_the_command(tmp_path, monkeypatch):
    named(tmp_path, "in/a.txt", "b.gz")
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in corpora.match(["in", "*.gz"])] == [f"{tmp_path}/b.gz", f"{tmp_path}/in/a.txt"]


def test_a_folder_stands_for_every_file_in_it_but_hidden_ones(tmp_path):
    named(tmp_path, "in/b.txt", "in/.hidden", "in/deep/er/c.gz", "out.txt")
    for pattern in ("in", "in/", "i*"):
        assert matched(tmp_path, pattern) == ["in/b.txt", "in/deep/er/c.gz"]


@pytest.mark.parametrize("pattern", ["", "**", "**/*.txt", "*", "**/", "[0alo]*", "**/**/[bcd]*"])
def test_links_neither_repeat_a_file_nor_loop(tmp_path, pattern):
    named(tmp_path, "in/a/b.txt", "in/a/deep/c.txt", "elsewhere/d.txt")
    links = {"0": "a", "a/loop": "..", "latest": "a", "a/deep/up": "../..", "a/also.txt": "b.txt", "a/self": "self"}
    for link, target in links.items():
        (tmp_path / "in" / link).symlink_to(target)
    os.link(tmp_path / "in" / "a" / "b.txt", tmp_path / "in" / "a" / "hard.txt")
    (tmp_path / "in" / "other").symlink_to(tmp_path / "elsewhere")
    assert matched(tmp_path, f"in/{pattern}") == ["in/a/b.txt", "in/a/deep/c.txt", "in/other/d.txt"]


def test_the_number_of_paths_that_are_skipped_is_logged(tmp_path, caplog):
    named(tmp_path, "a/x.txt")
    (tmp_path / "latest").symlink_to("a")
    (tmp_path / "loop").symlink_to(".")
    with caplog.at_level(logging.INFO, "elmo_tf"):
        assert matched(tmp_path, "") == ["a/x.txt"]
        assert matched(tmp_path, "latest") == ["latest/x.txt"]  # as the user named it
    assert caplog.messages == ["files and folders skipped, because they are read by another path: 2"]


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.tar.zst"])
def test_a_tar_archive_is_refused(tmp_path, name):
    named(tmp_path, f"in/{name}", "in/tar.txt", "in/a.tar.gz.txt", "in/tar.gz")
    message = f"^{tmp_path}/in/{name}: a tar archive: unpack it and give its text files$"
    with pytest.raises(InputError, match=message):
        corpora.match([str(tmp_path / "in")])
    assert len(matched(tmp_path, "in/tar*", "in/*.txt")) == 3


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [("missing.txt", "no such file"), ("*.text", "no file matches this glob"), ("empty", "the folder has no files")],
)
def test_a_pattern_without_a_file_is_refused(tmp_path, pattern, problem):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path / pattern))}: {problem}$"):
        corpora.match([str(tmp_path / pattern)])


SIZES = {
    "one": [1000],
    "even": [100] * 10,
    "one large": [5, 100_000, 7, 0, 3],
    "many small": list(range(1, 60)),
    "empty": [0, 0],
}


@pytest.mark.parametrize("num_shards", [1, 2, 7, 40])
@pytest.mark.parametrize("case", SIZES)
def test_divisible_files_are_cut_at_equal_distances(case, num_shards):
    files = [TextFile(f"{number:03d}", size) for number, size in enumerate(SIZES[case])]
    tasks = corpora.plan(files, num_shards)
    assert [task.number for task in tasks] == list(range(num_shards))
    assert [task.shards for task in tasks] == [(shard,) for shard in range(num_shards)]
    assert sum(task.size for task in tasks) == sum(SIZES[case])
    assert max(task.size for task in tasks) <= -(-sum(SIZES[case]) // num_shards) + 1
    read = collections.defaultdict(list)
    for part in (part for task in tasks for part in task.slices):
        read[part.file].append((part.start, part.end))
    assert list(read) == files  # in their order, none forgotten
    for ranges in read.values():
        assert [0, *(end for _, end in ranges)] == [*(start for start, _ in ranges), None]


def test_a_large_compressed_file_has_shards_of_its_own_and_few_passes():
    files = [TextFile("a.txt", 300), TextFile("b.gz", 1000), TextFile("c.bz2", 10), TextFile("d.txt", 300)]
    tasks = corpora.plan(files, 40)
    large = [task for task in tasks if task.slices[0].file == files[1]]
    assert len(large) == 8  # each decompresses the whole file
    assert {task.slices for task in large} == {(Slice(files[1], part=n, parts=8),) for n in range(8)}
    assert sorted(shard for task in tasks for shard in task.shards) == list(range(40))
    assert sum(len(task.shards) for task in large) == 32  # 3000 bytes of text, going by the usual ratio, of 3640
    rest = [part.file.path for task in tasks if task not in large for part in task.slices]
    assert list(dict.fromkeys(rest)) == ["a.txt", "c.bz2", "d.txt"]
    assert rest.count("c.bz2") == 1


COMPRESSED = {
    "alone": [TextFile(f"{name}.gz", size) for name, size in zip("abcde", (10, 400, 7, 90, 0), strict=True)],
    "beside an empty file": [TextFile("a.gz", 1000), TextFile("b.gz", 1000), TextFile("c.txt", 0)],
}


@pytest.mark.parametrize("num_shards", [1, 2, 3, 9])
@pytest.mark.parametrize("case", COMPRESSED)
def test_compressed_files_are_read_once_each(case, num_shards):
    tasks = corpora.plan(COMPRESSED[case], num_shards)
    assert sorted(shard for task in tasks for shard in task.shards) == list(range(num_shards))
    assert all(task.shards and task.slices for task in tasks)
    shares = collections.Counter()
    for part in (part for task in tasks for part in task.slices):
        shares[part.file] += 1 / part.parts
    assert shares == {file: pytest.approx(1) for file in COMPRESSED[case]}


@pytest.mark.parametrize("count", [1, 3, 50])
def test_tasks_in_order_read_the_files_in_order_and_decompress_each_a_few_times(count):
    files = [TextFile("a.txt", 300), TextFile("b.gz", 1000), TextFile("c.txt", 7), TextFile("d.gz", 0)]
    tasks = corpora.plan_in_order(files, count)
    assert [task.number for task in tasks] == list(range(count))
    read = collections.defaultdict(list)
    for part in (part for task in tasks for part in task.slices):
        assert part.parts == 1
        read[part.file].append((part.start, part.end))
    assert list(read) == files
    for ranges in read.values():
        assert [0, *(end for _, end in ranges)] == [*(start for start, _ in ranges), None]
    assert len(read[files[0]]) >= min(count, 4) // 4
    assert min(count - 1, 8) <= len(read[files[1]]) <= 8
    assert max(task.size for task in tasks) <= max(3307 // count + 1, 3000 // 8 * 2)
