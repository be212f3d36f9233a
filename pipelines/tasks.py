"""A Beam step that does each task once, however often workers are killed and bundles repeated."""

from collections.abc import Iterator
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.metrics import Metrics

from pipelines import files, journal


class Numbered(Protocol):
    """A task, as far as this step is concerned."""

    number: int
    size: int  # bytes to read


class DoOnce(beam.DoFn):
    """Task -> its number, once what it writes is whole. A task that an earlier run has done is passed over.

    Subclasses say what to `do` in which `phase`; the result, with the files' sizes, is kept in the journal.
    """

    phase: str

    def __init__(self, folder: str):
        self._journal = journal.Journal(folder)

    def do(self, task: Any, beat: journal.Beat) -> dict[str, Any]:
        """Does a task and returns its result as JSON; under "files" the size of each file written, by path."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Numbered) -> Iterator[int]:
        beat = journal.Beat(self._journal, self.phase, task.number)
        result = self._journal.result(self.phase, task.number)
        if result is not None and _is_there(result["files"]):
            beat.add(task.size, 0, 0, task.size)
        else:
            result = self.do(task, beat)
            self._journal.done(self.phase, task.number, result)
        beat.tell()
        for name, count in result.get("irregular", {}).items():
            Metrics.counter("preprocess", name).inc(count)
        yield task.number


def _is_there(sizes: dict[str, int]) -> bool:
    folders = {path.rpartition("/")[0] for path in sizes}
    there = {files.join(folder, name): size for folder in folders for name, size in files.sizes(folder).items()}
    return all(there.get(path) == size for path, size in sizes.items())
