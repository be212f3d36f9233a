"""The shuffle on disk: every sentence once, in an order that the seed decides, whatever fits into memory at a time."""

import itertools
import json
import os
import pathlib

import numpy as np
import pytest

from elmo_tf.beam.preprocess import shuffle
from elmo_tf.files import stores
from elmo_tf.records import record_folder
from tests import helpers

COUNT = 900


def numbers(folder: pathlib.Path) -> list[list[int]]:
    records = record_folder.open_folder(folder)
    values = iter([int(b"".join(words).decode().removeprefix("number")) for _, words in helpers.sentences_of(records)])
    return [list(itertools.islice(values, shard.sentences)) for shard in records.info.shards]


@pytest.fixture
def text(corpus) -> list[str]:
    lines = [b"number %d\n" % number for number in range(COUNT)]
    return corpus(b"".join(lines[:100]), b"".join(lines[100:]))


def test_every_sentence_is_somewhere_in_random_order(text, process, monkeypatch):
    # Many runs, and several buckets for each shard.
    monkeypatch.setattr(shuffle, "_RUN_BYTES", 2000)
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 1500)
    monkeypatch.setattr("elmo_tf.corpus.reading.BLOCK_BYTES", 400)
    folder = process(text, "--shuffle", "--shards=3", "--seed=5")
    shards = numbers(folder)
    order = np.array([number for shard in shards for number in shard])
    assert sorted(order) == list(range(COUNT))
    assert abs(np.corrcoef(order, np.arange(COUNT))[0, 1]) < 0.1
    for shard in shards:  # each shard has sentences of the whole text, in random order
        assert len(shard) == pytest.approx(COUNT / 3, abs=60)
        assert np.mean(shard) == pytest.approx(COUNT / 2, abs=60)
        assert abs(np.corrcoef(shard, np.arange(len(shard)))[0, 1]) < 0.2
    info = json.loads((folder / "info.json").read_text())
    assert (info["shuffled"], info["sentences"], info["tokens"]) == (True, COUNT, 2 * COUNT)
    assert [shard["sentences"] for shard in info["shards"]] == [len(shard) for shard in shards]
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


def test_a_file_of_records_that_is_cut_is_an_error(text, process, monkeypatch):
    bucket = shuffle.Gather._bucket

    def cut(self, split: str, number: int, row_bytes: list[int]):
        for path in pathlib.Path(self.folder.path).glob(".*.run"):
            path.write_bytes(path.read_bytes()[:-20])
        return bucket(self, split, number, row_bytes)

    monkeypatch.setattr(shuffle.Gather, "_bucket", cut)
    with pytest.raises(stores.ReadError, match=r"^cannot read .*\.run: expected \d+ bytes from byte \d+ on, "):
        process(text, "--shuffle", "--shards=1")


def test_what_tasks_read_at_the_same_place_goes_to_different_shards(corpus, process):
    folder = process(corpus(b"".join(b"number %03d\n" % number for number in range(COUNT))), "--shuffle", "--shards=3")
    shard = {number: index for index, sentences in enumerate(numbers(folder)) for number in sentences}
    same = sum(shard[number] == shard[number + COUNT // 3] for number in range(COUNT // 3))  # of the first two tasks
    assert same == pytest.approx(COUNT / 9, abs=40)


def test_statistics_are_those_of_the_text_in_order(corpus, process):
    paths = corpus(b"a b <S> unknown\n" * 50 + (b"x" * 60 + b" a b\n") * 20 + b"\n\r\n")
    infos = []
    for order in ([], ["--shuffle"]):
        folder = process(paths, *order, "--min-count=20", "--shards=2", output=f"o{len(order)}")
        infos.append(json.loads((folder / "info.json").read_text()))
        del infos[-1]["shards"], infos[-1]["shuffled"]
    assert infos[0] == infos[1]
    assert infos[0]["cut_tokens"] == 20
    assert infos[0]["reserved_tokens"] == 50


def test_both_splits_are_shuffled_by_the_seed_and_stay_apart(text, process, tmp_path):
    options = ["--shuffle", f"--heldout={tmp_path / 'heldout'}", "--heldout-fraction=0.3"]
    (kept,), (held,) = numbers(process(text, *options)), numbers(tmp_path / "heldout")
    assert sorted(kept + held) == list(range(COUNT))
    assert kept != sorted(kept)
    assert held != sorted(held)
    first, second = (numbers(process(text, "--shuffle", f"--seed={seed}", output=f"{seed}")) for seed in (1, 2))
    assert first != second
    assert sorted(first[0]) == sorted(second[0])


def test_buckets_are_small_enough_for_memory(text, process, monkeypatch):
    seen, frames = [], shuffle._frames
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 3000)
    monkeypatch.setattr(shuffle, "_frames", lambda segment: seen.append(len(segment)) or frames(segment))
    process(text, "--shuffle", "--shards=1")
    size = sum(pathlib.Path(path).stat().st_size for path in text)
    assert len(seen) >= size // 3000
    assert max(seen) < 3 * 3000 * 8  # records of such short sentences are eight times the text
