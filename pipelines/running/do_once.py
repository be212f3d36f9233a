"""A Beam step that does each task once, however often workers are killed and bundles repeated; a pipeline of tasks."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.running import journal, runner_options, watch
from pipelines.text import filesystems


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
        result = done(self._journal, self.phase, task)
        if result is None:
            beat = journal.Beat(self._journal, self.phase, task.number)
            result = self.do(task, beat)
            self._journal.done(self.phase, task.number, result)
            beat.tell()
        for name, count in result.get("irregular", {}).items():
            Metrics.counter("preprocess", name).inc(count)
        yield task.number


def run(
    doing: str,
    notes: journal.Journal,
    phase: str,
    tasks: Sequence[Numbered],
    transform: beam.PTransform,
    beam_options: PipelineOptions,
) -> None:
    """Has a pipeline do the tasks of a phase, and shows how far they are.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died.
    """
    pipeline = runner_options.make_pipeline(beam_options)
    _ = pipeline | "Tasks" >> beam.Create(tasks) | phase.capitalize() >> transform
    with watch.watched(doing, notes, phase, sum(task.size for task in tasks)):
        runner_options.execute(pipeline)


def done(notes: journal.Journal, phase: str, task: Numbered) -> dict[str, Any] | None:
    """Returns the result of a task that an earlier run has done, and tells so; None if it is not done."""
    result = notes.result(phase, task.number)
    if result is None or not _is_there(result["files"]):
        return None
    beat = journal.Beat(notes, phase, task.number)
    beat.add(task.size, 0, 0, task.size)
    beat.tell()
    return result


def _is_there(sizes: dict[str, int]) -> bool:
    if all(
        map(filesystems.is_local, sizes)
    ):  # in a folder of thousands of files, listing it for each task would take long
        return all(os.path.isfile(path) and os.path.getsize(path) == size for path, size in sizes.items())
    folders = {path.rpartition("/")[0] for path in sizes}
    there = {
        filesystems.join(folder, name): size for folder in folders for name, size in filesystems.sizes(folder).items()
    }
    return all(there.get(path) == size for path, size in sizes.items())
