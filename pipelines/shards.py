"""Text to shards of TFRecords, as a Beam transform.

A worker writes whole shards itself: what goes through Beam's shuffle or its TFRecord sink stays in memory in the local
runner, and costs several times as long.
"""

import collections
import hashlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics

from elmo_tf.data import char_ids, records, vocabulary
from pipelines import corpora, sentences

ID_COUNTS = "id_counts"  # tag of int64 (len(vocabulary),): how often each id occurs in a task's training split
_MOST_BYTES = char_ids.MAX_CHARS_PER_TOKEN - char_ids.NUM_MARKS  # of a word; what is beyond is cut
COUNTED = ("sentences", "tokens", "characters", "unknown_tokens", "reserved_tokens", "cut_tokens", "bytes")
_RESERVED = (vocabulary.BEGIN_ID, vocabulary.END_ID)


class _Shard:
    """One TFRecord file while it is written, and its statistics."""

    def __init__(self, path: str, words: vocabulary.Vocabulary):
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `close`
        self._vocabulary = words
        self._checksum = hashlib.sha256()
        self._totals = collections.Counter(dict.fromkeys(COUNTED, 0))

    def write(self, block: list[list[bytes]]) -> list[int]:
        """Appends sentences, each a list of words; returns the words' ids."""
        words = list(itertools.chain.from_iterable(block))
        if not words:
            return []
        ids = self._vocabulary.ids(words)
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        cut = int(np.count_nonzero(lengths > _MOST_BYTES))
        text = b"".join([word[:_MOST_BYTES] for word in words] if cut else words)
        lengths = np.minimum(lengths, _MOST_BYTES)
        ends = np.cumsum([len(sentence) for sentence in block])
        content = b"".join(
            records.frame(record)
            for record in _examples(ids, text, lengths, ends.tolist(), np.cumsum(lengths)[ends - 1].tolist())
        )
        self._file.write(content)
        self._checksum.update(content)
        self._totals.update(
            sentences=len(block),
            tokens=len(words),
            characters=len(text),
            unknown_tokens=ids.count(vocabulary.UNKNOWN_ID),
            reserved_tokens=sum(map(ids.count, _RESERVED)),
            cut_tokens=cut,
            bytes=len(content),
        )
        return ids

    def close(self) -> dict[str, Any]:
        """Closes the file and returns its statistics."""
        self._file.close()
        return {**self._totals, "sha256": self._checksum.hexdigest()}


def _examples(ids: list[int], text: bytes, lengths: np.ndarray, ends: list[int], text_ends: list[int]) -> Iterator:
    """Yields the serialized sentences of a block whose words are given end to end."""
    sizes = lengths.astype(np.uint8).tobytes()
    start = text_start = 0
    for end, text_end in zip(ends, text_ends, strict=True):
        token_ids = [vocabulary.BEGIN_ID, *ids[start:end], vocabulary.END_ID]
        yield records.encode_example(token_ids, text[text_start:text_end], sizes[start:end])
        start, text_start = end, text_end


class WriteTask(beam.DoFn):
    """`corpora.Task` -> its shards' files, and one dictionary of statistics; see `WriteShards`."""

    def __init__(self, folders: dict[str, str], num_shards: int, settings: sentences.Settings, count_ids: bool):
        self._folders = folders
        self._num_shards = num_shards
        self._settings = settings
        self._count_ids = count_ids

    def setup(self) -> None:
        path = os.path.join(self._folders[sentences.TRAIN], records.VOCABULARY_FILE)
        with open(path, "rb") as file:
            self._vocabulary = vocabulary.from_bytes(file.read(), path)
        self._tokenize = sentences.make_tokenizer(self._settings.tokenizer)

    @beam.typehints.no_annotations
    def process(self, task: corpora.Task) -> Iterator[dict[str, Any] | beam.pvalue.TaggedOutput]:
        shards = {(split, number): self._open(split, number) for split in self._folders for number in task.shards}
        dropped = collections.Counter(blank_lines=0, byte_order_marks=0)
        ids = collections.Counter()
        problem = None
        blocks = itertools.chain.from_iterable(map(corpora.read_blocks, task.slices))
        try:
            for block, number in zip(blocks, itertools.cycle(task.shards), strict=False):
                found, blank_lines = self._settings.sort(block, self._tokenize)
                dropped.update(blank_lines=blank_lines, byte_order_marks=block.byte_order_marks)
                written = {split: shards[split, number].write(found[split]) for split in self._folders}
                if self._count_ids:
                    ids.update(written[sentences.TRAIN])
        except corpora.CorpusError as error:
            problem = (error.path, error.line, str(error))
        finally:
            done = [{"split": split, "number": number, **shards[split, number].close()} for split, number in shards]
        for reason, count in dropped.items():
            Metrics.counter("preprocess", reason).inc(count)
        for shard in done:
            for reason in ("unknown_tokens", "reserved_tokens", "cut_tokens"):
                Metrics.counter("preprocess", f"{shard['split']}_{reason}").inc(shard[reason])
        yield {"shards": done, "dropped": dict(dropped), "problem": problem}
        if self._count_ids:
            counts = np.zeros(len(self._vocabulary), np.int64)
            counts[list(ids.keys())] = list(ids.values())
            yield beam.pvalue.TaggedOutput(ID_COUNTS, counts)

    def _open(self, split: str, number: int) -> _Shard:
        name = records.shard_name(number, self._num_shards)
        return _Shard(os.path.join(self._folders[split], name), self._vocabulary)


class WriteShards(beam.PTransform):
    """Writes the corpus as shards of `tf.train.Example`s.

    Input: `corpora.Task`s. Output: a dictionary a task, `{"shards": [statistics], "dropped": {reason: count},
    "problem": (path, line, message) or None}`, and the id counts of the training split, one int64 array in all.

    Args:
        folders: where the shards of each split go, by the split's name; that of the training split holds `vocab.txt`.
        num_shards: files a folder, empty ones included.
        settings: what turns text into sentences.
        count_ids: whether to count the ids at all; if not, the second output is empty.
    """

    def __init__(self, folders: dict[str, str], num_shards: int, settings: sentences.Settings, count_ids: bool):
        super().__init__()
        self._arguments = (folders, num_shards, settings, count_ids)

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> tuple[beam.PCollection, beam.PCollection]:
        written = tasks | "WriteTask" >> beam.ParDo(WriteTask(*self._arguments)).with_outputs(ID_COUNTS, main="tasks")
        return written.tasks, written[ID_COUNTS] | "SumIds" >> beam.CombineGlobally(_sum_arrays).without_defaults()


def _sum_arrays(arrays: Any) -> np.ndarray:
    return sum(arrays, start=np.zeros((), np.int64))
