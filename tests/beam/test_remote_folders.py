"""Input and output in a remote store: one that Beam's filesystems reach, without folders and without locks."""

import json
import threading

import pytest

from elmo_tf.cli import jobs
from elmo_tf.corpus import corpora, reading
from elmo_tf.errors import InputError
from tests.beam.common import contents
from tests.beam.memory_store import STORE, MemoryFileSystem
from tests.helpers import slow

TEXT = b"".join(b"word%d is in sentence%d\n" % (number % 7, number) for number in range(300))


@pytest.fixture(autouse=True)
def two_files(store):
    store.update({"memory://corpus/a.txt": TEXT[:3000], "memory://corpus/deep/b.txt": TEXT[3000:]})


def run(*options: str) -> None:
    jobs.run("preprocess", ["--output=memory://out/train", "--shards=3", "--min-count=2", *options])


def written(prefix: str) -> dict[str, bytes]:
    return {path.removeprefix(prefix): content for path, content in STORE.items() if path.startswith(prefix)}


@pytest.mark.parametrize("pattern", ["memory://corpus", slow("memory://corpus/**.txt")])
def test_a_store_gets_the_same_bytes_as_a_folder(process, corpus, tmp_path, pattern):
    heldout = "--heldout-fraction=0.01"  # so few that some tasks and shards have none
    run(f"--input={pattern}", "--heldout=memory://out/heldout", heldout)
    paths = corpus(**{"a.txt": TEXT[:3000], "deep/b.txt": TEXT[3000:]})
    options = ["--shards=3", "--min-count=2", f"--heldout={tmp_path / 'heldout'}", heldout]
    local = process(paths, *options, output="train")
    for folder in (local, tmp_path / "heldout"):
        stored = written(f"memory://out/{folder.name}/")
        assert stored == contents(folder)  # and no notes are left


def test_a_vocabulary_is_read_from_a_store_and_a_slash_at_the_end_of_an_output_makes_no_other_name():
    STORE["memory://corpus/deep/vocab"] = b"<S>\n</S>\n<UNK>\nis\nin\n"
    outputs = ["--output=memory://out/a/", "--heldout=memory://out/b/", "--heldout-fraction=0.5"]
    jobs.run("preprocess", ["--input=memory://corpus/*.txt", *outputs, "--vocab=memory://corpus/deep/vocab"])
    folders = {"memory://corpus", "memory://corpus/deep", "memory://out/a", "memory://out/b"}
    assert {path.rpartition("/")[0] for path in STORE} == folders
    info = json.loads(STORE["memory://out/a/info.json"])
    assert info["vocabulary"]["size"] == 5
    assert info["unknown_tokens"] == info["tokens"] / 2


def test_the_beginnings_of_many_files_are_read_at_once(monkeypatch):
    count = 4
    STORE.update({f"memory://corpus/{number}.txt": b"a b\n" for number in range(count)})
    together, opened = threading.Barrier(count, timeout=60), MemoryFileSystem.open

    def meet(self, *given, **named):
        together.wait()
        return opened(self, *given, **named)

    monkeypatch.setattr(MemoryFileSystem, "open", meet)
    assert len(reading.inspect(corpora.match(["memory://corpus/[0-9].txt"]), "whitespace")) == count


def test_wrong_input_leaves_nothing_in_a_store_and_no_folder_of_another_is_touched():
    STORE["memory://corpus/bad.txt"] = b"PK\x03\x04"
    with pytest.raises(InputError, match=r"^memory://corpus/bad.txt: .* found a zip file$"):
        run("--input=memory://corpus/bad.txt")
    assert written("memory://out") == {}
    STORE["memory://out/train/mine"] = b"mine"
    with pytest.raises(InputError, match=r"^memory://out/train: already exists, and is not an unf"):
        run("--input=memory://corpus")
    assert written("memory://out") == {"/train/mine": b"mine"}
    with pytest.raises(InputError, match=r"^memory://out/\[12\]: the path of a folder in a store cannot have \*"):
        run("--input=memory://corpus", "--output=memory://out/[12]")


HIDDEN = ("a.txt", ".a.txt", "_b.txt", "deep/c.txt", "deep/.c.txt", ".git/d.txt", ".git/.d.txt", "deep/.git/e.txt")
PATTERNS = {
    "": ["_b.txt", "a.txt", "deep/c.txt"],
    "/": ["_b.txt", "a.txt", "deep/c.txt"],
    "/*": ["_b.txt", "a.txt", "deep/c.txt"],
    "/*.txt": ["_b.txt", "a.txt"],
    "/**/*.txt": ["_b.txt", "a.txt", "deep/c.txt"],
    "/.a.txt": [".a.txt"],
    "/.*.txt": [".a.txt"],
    "/.git": [".git/d.txt"],
    "/.git/*": [".git/d.txt"],
    "/.git/.*": [".git/.d.txt"],
    "/**/.git/*": [".git/d.txt", "deep/.git/e.txt"],
    "/deep/.c.txt": ["deep/.c.txt"],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_hidden_files_match_only_where_the_pattern_spells_the_dot_here_and_in_a_store(corpus, tmp_path, pattern):
    corpus(**dict.fromkeys(HIDDEN, b"x"))
    STORE.update({f"memory://hidden/in/{name}": b"x" for name in HIDDEN})
    here, there = (
        [file.path.removeprefix(f"{folder}/") for file in corpora.match([folder + pattern])]
        for folder in (str(tmp_path / "corpus"), "memory://hidden/in")
    )
    assert here == PATTERNS[pattern]
    if pattern == "/*":
        # A local `*` also matches folders; stores have none.
        there.append("deep/c.txt")
    if pattern.startswith("/**/"):
        # Beam's `**/` stands for at least one folder.
        there = sorted({*there, *(name for name in here if name.count("/") < pattern.count("/") - 1)})
    assert there == here
