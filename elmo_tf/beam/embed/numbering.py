"""The first step of `embed`: tasks count their lines and tokens, which gives each the number of its first line."""

import collections
import dataclasses
import hashlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from elmo_tf.beam import failures, report
from elmo_tf.beam.progress import TaskProgress
from elmo_tf.corpus import corpora, sentences
from elmo_tf.errors import InputError
from elmo_tf.text.batches import PIECE_TOKENS

_NOT_IN_HDF5 = {*b"/\0"}


class LineNumbers(NamedTuple):
    """The lines of all tasks."""

    first_lines: np.ndarray  # int64 (tasks,)
    lines: np.ndarray  # int64 (tasks,)
    tokens: np.ndarray  # int64 (tasks,)
    sources: dict[str, int]  # lines of each file, in the order of the text
    irregular: dict[str, dict[str, Any]]  # as in `info.json`


class Counts(NamedTuple):
    """The counts of a task."""

    lines: dict[str, int]  # of each file
    tokens: int
    irregular: report.Irregular
    checksums: bytes  # of the identifiers, eight bytes each, if they must be unique


@dataclasses.dataclass(eq=False)
class CountLines(failures.TaskFn):
    """`corpora.Task` -> its number and `Counts`."""

    settings: sentences.Settings
    ids_name_datasets: bool  # whether identifiers become names of datasets in HDF5

    def setup(self) -> None:
        self._reader = sentences.Reader(self.settings, numbered=True)

    def process_task(self, task: corpora.Task) -> Iterator[tuple[int, Counts]]:
        progress = TaskProgress(self.folder, "reading")
        irregular: report.Irregular = collections.defaultdict(collections.Counter)
        lines = collections.Counter[str]()
        num_tokens, checksums = 0, list[bytes]()
        for batch in self._reader.read(task):
            lengths = [len(words) - self.settings.has_ids for words in batch.sentences]
            if self.ids_name_datasets and self.settings.has_ids:
                checksums += (_checksum(words[0], batch.source) for words in batch.sentences)
            num_tokens += sum(lengths)
            lines[batch.source] += len(lengths)
            num_long = sum(length > PIECE_TOKENS for length in lengths)
            irregular[batch.source].update(batch.irregular, long_sentences=num_long)
            progress.add(batch.size, len(lengths), sum(lengths))
        progress.write()
        yield task.number, Counts(dict(lines), num_tokens, dict(irregular), b"".join(checksums))


@dataclasses.dataclass(eq=False)
class NumberLines(failures.TaskFn):
    """The counts of all tasks -> `LineNumbers`."""

    settings: sentences.Settings

    def process_task(self, counted: list[tuple[int, Counts]]) -> Iterator[LineNumbers]:
        by_task = dict(counted)  # a repeated bundle may deliver a result twice
        in_order = [by_task[number] for number in sorted(by_task)]
        sources = collections.Counter[str]()
        for counts in in_order:
            sources.update(counts.lines)
        irregular = report.irregular((counts.irregular for counts in in_order), rules(self.settings), list(sources))
        lines = np.array([sum(counts.lines.values()) for counts in in_order], np.int64)
        tokens = np.array([counts.tokens for counts in in_order], np.int64)
        _check_different(np.frombuffer(b"".join(counts.checksums for counts in in_order), np.uint64))
        if not tokens.sum():
            applied = report.describe_irregular(irregular, in_lines=False)
            raise InputError("input", f"contains no words; {applied}")
        yield LineNumbers(np.cumsum(lines) - lines, lines, tokens, dict(sources), irregular)


def rules(settings: sentences.Settings) -> dict[str, str]:
    """Returns the treatment of irregular text, by the name of its count."""
    return sentences.rules(settings, numbered=True) | {
        "long_sentences": f"embedded in pieces of {PIECE_TOKENS:,} tokens, each embedded independently"
    }


def inputs(numbered: LineNumbers) -> list[dict[str, Any]]:
    """Returns the first line and the number of lines of each file, as JSON."""
    firsts = itertools.accumulate(numbered.sources.values(), initial=0)
    names = corpora.short_names(list(numbered.sources))
    return [
        {"name": name, "first_line": first, "lines": count}
        for name, count, first in zip(names, numbered.sources.values(), firsts, strict=False)
    ]


def _checksum(name: bytes, source: str) -> bytes:
    """Returns a checksum of an identifier. Raises `InputError` if it cannot be the name of a dataset."""
    if name == b"." or not _NOT_IN_HDF5.isdisjoint(name):
        expected = "identifiers that HDF5 takes as names, without / (other formats take any)"
        raise InputError("input", expected, f"{name.decode(errors='replace')!r} in {source}")
    return hashlib.blake2b(name, digest_size=8).digest()


def _check_different(checksums: np.ndarray) -> None:
    """Raises `InputError` if two identifiers have the same checksum."""
    order = np.argsort(checksums, kind="stable")
    same = np.flatnonzero(checksums[order][1:] == checksums[order][:-1])
    if len(same):
        first, second = min(zip(order[same].tolist(), order[same + 1].tolist(), strict=True))
        repeated = f"the same in lines {first:,} and {second:,} (counted from 0)"
        raise InputError("input", "a different identifier for each line", repeated)
