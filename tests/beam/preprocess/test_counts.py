"""Counting words bundle by bundle, as runners hand them out and repeat them."""

import collections
import zlib

import pytest

from elmo_tf.beam.preprocess import counts
from elmo_tf.corpus import corpora
from tests.beam.common import SETTINGS


@pytest.fixture
def step(folder) -> counts.CountTask:
    made = counts.CountTask(folder, SETTINGS)
    made.setup()
    return made


@pytest.fixture
def task(tmp_path) -> corpora.Task:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a b a\nc d\n" * 100)
    return corpora.Task(0, (0,), (corpora.Slice(corpora.TextFile(str(path), path.stat().st_size)),))


def bundle(step: counts.CountTask, *tasks: corpora.Task) -> list[tuple[bytes, int]]:
    step.start_bundle()
    elements = [element for task in tasks for element in step.process(task)]
    elements += [windowed.value for windowed in step.finish_bundle()]
    pairs = [line.split() for _, lines in elements for line in lines.splitlines()]
    assert all(part == zlib.crc32(line.split()[0]) % 32 for part, lines in elements for line in lines.splitlines())
    return [(word, int(count)) for word, count in pairs]


def test_a_word_leaves_a_bundle_once_and_a_bundle_that_failed_leaves_no_counts_to_the_next(step, task):
    step.start_bundle()
    assert list(step.process(task)) == []
    assert sorted(bundle(step, task, task)) == [(b"a", 400), (b"b", 200), (b"c", 200), (b"d", 200)]


def test_many_distinct_words_are_passed_on_and_not_kept(step, task, monkeypatch):
    monkeypatch.setattr(counts, "_MAX_DISTINCT", 3)
    monkeypatch.setattr("elmo_tf.corpus.reading.BLOCK_BYTES", 64)
    pairs = bundle(step, task)
    assert len(pairs) > 4 * 5
    totals = collections.Counter()
    for word, count in pairs:
        totals[word] += count
    assert totals == {b"a": 200, b"b": 100, b"c": 100, b"d": 100}
