"""A Beam step that does each task once, even if workers are killed and bundles repeated; a pipeline of tasks."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.files.json_file import MapOf, Object, Schema, Whole
from pipelines.running import journal, runner_options, task_progress, watch
from pipelines.text import filesystems

# A task's result; the results of a step may have more keys.
FILES = Object({"files": MapOf(Whole())})


class Numbered(Protocol):
    """What this step needs to know of a task."""

    number: int
    size: int  # bytes to read


class DoOnce(beam.DoFn):
    """Task -> its number, once all that it writes is complete. A task that an earlier run has done is skipped.

    Subclasses name the `phase`, do a task in `do`, and declare what its result has to be in `schema`. The result goes
    into the journal.
    """

    phase: str
    schema: Schema = FILES

    def __init__(self, folder: str):
        self._journal = journal.Journal(folder)

    def do(self, task: Any, progress: task_progress.TaskProgress) -> dict[str, Any]:
        """Does a task and returns its result as JSON; under "files" the size of each file written, by path."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Numbered) -> Iterator[int]:
        result = done(self._journal, self.phase, task, self.schema)
        if result is None:
            progress = task_progress.TaskProgress(self._journal, self.phase, task.number)
            result = self.do(task, progress)
            self._journal.done(self.phase, task.number, result)
            progress.write()
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
    """Runs a pipeline that does the tasks of a phase, and shows its progress.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died.
    """
    pipeline = runner_options.make_pipeline(beam_options)
    _ = pipeline | "Tasks" >> beam.Create(tasks) | phase.capitalize() >> transform
    with watch.watched(doing, notes, phase, sum(task.size for task in tasks)):
        runner_options.execute(pipeline)


def run_step(
    doing: str, notes: journal.Journal, step: DoOnce, tasks: Sequence[Numbered], beam_options: PipelineOptions
) -> list[dict[str, Any]]:
    """Runs a pipeline of one step and returns the results of its tasks, in order; see `run`."""
    run(doing, notes, step.phase, tasks, beam.ParDo(step), beam_options)
    return notes.results(step.phase, (task.number for task in tasks), step.schema)


def done(notes: journal.Journal, phase: str, task: Numbered, schema: Schema = FILES) -> dict[str, Any] | None:
    """Returns the result of a task that an earlier run has done, and writes its progress; None if it is not done.

    A task whose result is damaged, or whose files are not those of its result, counts as not done.
    """
    result = notes.result(phase, task.number, schema)
    if result is None or not result["files"] or not _are_there(result["files"]):
        return None
    progress = task_progress.TaskProgress(notes, phase, task.number)
    progress.add(task.size, 0, 0, task.size)
    progress.write()
    return result


def _are_there(sizes: dict[str, int]) -> bool:
    # Listing a local folder of thousands of files for each task would take long.
    if all(map(filesystems.is_local, sizes)):
        return all(os.path.isfile(path) and os.path.getsize(path) == size for path, size in sizes.items())
    folders = {path.rpartition("/")[0] for path in sizes}
    there = {
        filesystems.join(folder, name): size for folder in folders for name, size in filesystems.sizes(folder).items()
    }
    return all(there.get(path) == size for path, size in sizes.items())
