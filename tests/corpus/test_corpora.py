"""Finding a corpus and dividing it: the files that a pattern matches, and every byte in exactly one task."""

import collections
import os
import re

import pytest

from elmo_tf.corpus import corpora
from elmo_tf.corpus.corpora import Slice, TextFile
from elmo_tf.errors import InputError
from elmo_tf.files import stores


def named(tmp_path, *names: str) -> None:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))


def matched(tmp_path, *patterns: str) -> list[str]:
    files = corpora.match(str(tmp_path / pattern) for pattern in patterns)
    return [file.path.removeprefix(f"{tmp_path}/") for file in files]


def test_overlapping_globs_name_a_file_once_and_names_may_hold_brackets_or_be_relative(tmp_path, monkeypatch):
    named(tmp_path, "b.txt", "a[1].txt", "sub/c.txt")
    assert matched(tmp_path, "a[1].txt", "*", "*.txt", "./b.txt", "**/c.txt") == ["a[1].txt", "b.txt", "sub/c.txt"]
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in corpora.match(["sub", "b.*"])] == [f"{tmp_path}/b.txt", f"{tmp_path}/sub/c.txt"]


@pytest.mark.parametrize("pattern", ["", "**", "**/*.txt", "a*/", "**/**/", "**/**/[bcd]*", "a/**.txt", "a/../**/*.t*"])
def test_links_neither_repeat_a_file_nor_loop(tmp_path, pattern):
    named(tmp_path, "in/a/b.txt", "in/a/deep/c.txt", "elsewhere/d.txt")
    links = {"0": "a", "a/loop": "..", "latest": "a", "a/deep/up": "../..", "a/also.txt": "b.txt"}
    for link, target in links.items():
        (tmp_path / "in" / link).symlink_to(target)
    (tmp_path / "in" / "other").symlink_to(tmp_path / "elsewhere")
    expected = ["in/a/b.txt"] if pattern == "a/**.txt" else ["in/a/b.txt", "in/a/deep/c.txt"]
    assert matched(tmp_path, f"in/{pattern}") == expected


def test_a_link_to_a_folder_is_followed_where_a_pattern_matches_it(tmp_path):
    named(tmp_path, "a/x.txt", "elsewhere/y.txt")
    (tmp_path / "a" / "other").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "latest").symlink_to("a")
    assert matched(tmp_path, "a") == ["a/x.txt"]
    assert matched(tmp_path, "a/*") == ["a/other/y.txt", "a/x.txt"]
    assert matched(tmp_path, "latest") == ["latest/x.txt"]
    assert matched(tmp_path, "latest", "a") == ["a/x.txt"]


def test_a_folder_that_exists_is_no_pattern(tmp_path, monkeypatch):
    named(tmp_path, "in [1]/a.txt", "in [1]/deep/b.txt", "in 1/c.txt")
    assert matched(tmp_path, "in [1]/*.txt") == ["in [1]/a.txt"]
    monkeypatch.chdir(tmp_path / "in [1]")
    assert [file.path for file in corpora.match(["**/b.*"])] == [f"{tmp_path}/in [1]/deep/b.txt"]


def test_a_file_is_read_by_its_own_name_rather_than_that_of_a_link(tmp_path):
    named(tmp_path, "in/part-1.txt.gz")
    (tmp_path / "in" / "newest").symlink_to("part-1.txt.gz")
    (tmp_path / "link").symlink_to("in")
    for folder in ("in", "link"):
        assert matched(tmp_path, folder) == [f"{folder}/part-1.txt.gz"]
        assert matched(tmp_path, f"{folder}/new*") == [f"{folder}/newest"]


@pytest.mark.parametrize(
    "pattern", ["in", "in/*", "in/s*", "in/*/*.txt", "in/**/*.txt", "in/s*/b.txt", "in/secret/b.txt"]
)
def test_a_folder_that_may_not_be_read_is_an_error_that_names_it(tmp_path, monkeypatch, pattern):
    named(tmp_path, "in/open/a.txt", "in/secret/b.txt")

    # The superuser may read every folder, so the errors are made.
    secret, scandir, status = str(tmp_path / "in" / "secret"), os.scandir, os.stat

    def deny(path: str, folder: str) -> None:
        if folder == secret:
            raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", lambda path: deny(path, path) or scandir(path))
    monkeypatch.setattr(os, "stat", lambda path, **_: deny(path, os.path.dirname(path)) or status(path, **_))
    with pytest.raises(InputError, match=rf"^{secret}(/b\.txt)?: cannot be read \(Permission denied\)"):
        matched(tmp_path, pattern)
    assert matched(tmp_path, "in/open", "in/op*", "in/open/**") == ["in/open/a.txt"]


@pytest.mark.parametrize("pattern", ["", "*", "**/*.txt", "[ab].txt", "b.txt"])
@pytest.mark.parametrize("target", ["missing/b.txt", "b.txt", "a.txt/c"])
def test_a_link_to_nothing_is_an_error_that_names_it(tmp_path, pattern, target):
    named(tmp_path, "in/a.txt")
    (tmp_path / "in" / "b.txt").symlink_to(target)
    with pytest.raises(InputError, match=rf"^{tmp_path}/in/b\.txt: (a link to nothing|cannot be read \(Too many)"):
        matched(tmp_path, f"in/{pattern}")
    assert matched(tmp_path, "in/a*") == ["in/a.txt"]


def test_a_link_to_nothing_where_a_glob_looks_for_folders_is_an_error_and_a_hidden_one_is_not(tmp_path):
    named(tmp_path, "in/a/a.txt", "in/.hidden/b.txt")
    (tmp_path / "in" / ".#lock").symlink_to("user@host")  # as Emacs makes them
    assert matched(tmp_path, "in/*/*.txt") == matched(tmp_path, "in") == ["in/a/a.txt"]
    (tmp_path / "in" / "disk").symlink_to(tmp_path / "not mounted")
    with pytest.raises(InputError, match=r"/in/disk: a link to nothing"):
        matched(tmp_path, "in/*/*.txt")


def test_what_is_neither_a_file_nor_a_folder_is_refused(tmp_path):
    named(tmp_path, "in/a.txt")
    os.mkfifo(tmp_path / "in" / "pipe")
    for pattern in ("in", "in/*", "in/pipe"):
        with pytest.raises(InputError, match=r"/in/pipe: neither a file nor a folder$"):
            matched(tmp_path, pattern)


def test_a_tar_archive_and_a_pattern_without_a_file_are_refused(tmp_path):
    named(tmp_path, "in/a.tar", "in/b.tgz", "in/c.tar.zst", "in/tar.txt", "in/a.tar.gz.txt", "in/tar.gz")
    (tmp_path / "empty").mkdir()
    assert len(matched(tmp_path, "in/tar*", "in/*.txt")) == 3
    for pattern, problem in (
        *(
            (f"in/{name}", "a tar archive: unpack it and give its text files")
            for name in ("a.tar", "b.tgz", "c.tar.zst")
        ),
        ("missing.txt", "no such file"),
        ("missing/**", "no file matches this glob"),
        ("*.text", "no file matches this glob"),
        ("empty", "the folder has no files"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path / pattern))}: {problem}$"):
            corpora.match([str(tmp_path / pattern)])
    with pytest.raises(InputError, match=r"^-: name a file; standard input is not supported$"):
        corpora.match(["-"])


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/c/2023/index.txt", "/c/2024/index.txt"], ["2023/index.txt", "2024/index.txt"]),
        (["/c/a.txt", "/c/b.txt"], ["a.txt", "b.txt"]),
        (["/c/d/a.txt", "/c/d.txt", "/c/d/e/a.txt"], ["d/a.txt", "d.txt", "d/e/a.txt"]),
        (["/c/a.txt"], ["a.txt"]),
        (["s3://b/x/1.txt", "s3://b/y/1.txt"], ["x/1.txt", "y/1.txt"]),
        ([], []),
    ],
)
def test_files_are_named_by_what_their_paths_do_not_share(paths, names):
    assert corpora.short_names(paths) == names


def test_only_files_of_the_same_bytes_are_copies(tmp_path, store, monkeypatch):
    monkeypatch.setattr(corpora, "_COMPARED_BYTES", 4)
    texts = {"a": b"same 1", "b": b"same 2", "c": b"same 1", "d": b"other!", "e": b"same 11", "f": b"", "g": b""}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    store["memory://corpus/h"] = b"same 2"
    a, b, c = (str(tmp_path / name) for name in "abc")
    files = corpora.match([str(tmp_path), "memory://corpus"])
    assert corpora.originals(files) == {c: a, "memory://corpus/h": b}
    (tmp_path / "c").unlink()
    with pytest.raises(stores.ReadError, match=r"/c: No such file"):
        corpora.originals(files)


def test_of_files_of_different_sizes_or_beginnings_none_is_read_whole(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(corpora, "_checksum", lambda path, is_whole: read.append((path, is_whole)) or path.encode())
    assert corpora.originals([TextFile("a", 1), TextFile("b", 2), TextFile("c", 2)]) == {}
    assert sorted(read) == [("b", False), ("c", False)]


def named_by_number(sizes: list[int], ending: str = "") -> list[TextFile]:
    return [TextFile(f"{number:03d}{ending}", size) for number, size in enumerate(sizes)]


FILES = {
    "one": named_by_number([1000]),
    "even": named_by_number([100] * 10),
    "one large": named_by_number([5, 100_000, 7, 0, 3]),
    "many small": named_by_number(list(range(1, 60))),
    "empty": named_by_number([0, 0]),
    "compressed": named_by_number([10, 400, 7, 90, 0], ".gz"),
    "compressed beside an empty file": [*named_by_number([1000, 1000], ".gz"), TextFile("c.txt", 0)],
}


@pytest.mark.parametrize("num_shards", [1, 2, 7, 40])
@pytest.mark.parametrize("case", FILES)
def test_every_byte_is_in_one_task_divisible_files_cut_at_equal_distances(case, num_shards):
    files = FILES[case]
    tasks = corpora.plan(files, num_shards)
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert sorted(shard for task in tasks for shard in task.shards) == list(range(num_shards))
    read = collections.defaultdict(list)
    for part in (part for task in tasks for part in task.slices):
        read[part.file].append(part)
    assert read.keys() == set(files)
    for parts in read.values():
        if parts[0].parts > 1:
            assert sorted(part.part for part in parts) == list(range(parts[0].parts))
        else:
            assert [0, *(part.end for part in parts)] == [*(part.start for part in parts), None]
    if case.startswith("compressed"):
        assert all(task.shards and task.slices for task in tasks)
    else:
        assert [task.shards for task in tasks] == [(shard,) for shard in range(num_shards)]
        assert list(read) == files  # in their order
        assert max(task.size for task in tasks) <= -(-sum(file.size for file in files) // num_shards) + 1
        assert sum(task.size for task in tasks) == sum(file.size for file in files)


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
