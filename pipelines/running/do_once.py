"""Steps of a job that do each task once, even if workers are killed and bundles repeated; a pipeline of tasks.

The tasks travel as a file, so that a pipeline does not grow with them:

FOLDER/_unfinished/PHASE-tasks.RUN.json    the tasks, which workers read
                   PHASE-00012.RUN.json    the result of a task; a task that has one is not done again
                   PHASE-results.RUN.json  all results, so that nobody asks a store for each
"""

import json
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.files.json_file import ListOf, MapOf, Object, Schema, Whole
from elmo_tf.pipelines.running import journal, runner_options, task_progress
from elmo_tf.pipelines.text import filesystems

# A task's result; the results of a step may have more keys.
FILES = Object({"files": MapOf(Whole())})


class Numbered(Protocol):
    """What a phase needs to know of a task: a NamedTuple of numbers, texts and such tuples."""

    number: int
    size: int  # bytes to read


class DoOnce(beam.DoFn):
    """Task -> its number and result, once all that it writes is complete. What an earlier run has done is skipped.

    Subclasses name the `phase`, do a task in `do`, and declare what its result has to be in `schema`. The result goes
    into the journal.
    """

    phase: str
    schema: Schema = FILES

    def __init__(self, folder: str):
        self._journal = journal.opened(folder)

    def do(self, task: Any, progress: task_progress.TaskProgress) -> dict[str, Any]:
        """Does a task and returns its result as JSON; under "files" the size of each file written, by path."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Numbered) -> Iterator[tuple[int, str]]:
        result = done(self._journal, self.phase, task, self.schema)
        if result is None:
            progress = task_progress.TaskProgress(self._journal, self.phase, task.number)
            result = self.do(task, progress)
            self._journal.done(self.phase, task.number, result)
            progress.write()
        for name, count in result.get("irregular", {}).items():
            Metrics.counter("irregular", name).inc(count)
        # As ASCII: Beam's coder refuses names that are not UTF-8.
        yield task.number, json.dumps(result)


def done(notes: journal.Journal, phase: str, task: Numbered, schema: Schema = FILES) -> dict[str, Any] | None:
    """Returns the result of a task that an earlier run has done, and writes its progress; None if it is not done.

    A task whose result is damaged, or whose files are not those of its result, counts as not done.
    """
    result = notes.result(phase, task.number, schema)
    if result is None or not result["files"]:
        return None
    if any(filesystems.size(path) != size for path, size in result["files"].items()):
        return None
    progress = task_progress.TaskProgress(notes, phase, task.number)
    progress.add(task.size, 0, 0, task.size)
    progress.write()
    return result


def run(
    doing: str,
    notes: journal.Journal,
    phase: str,
    tasks: Iterable[Numbered],
    transform: beam.PTransform,
    beam_options: PipelineOptions,
) -> int:
    """Runs a pipeline that does the tasks of a phase, and shows its progress; returns the number of tasks.

    Args:
        doing: what to call the phase, such as "counting".
        notes: the journal.
        phase: its name in the journal.
        tasks: of one class, numbered from 0; at least one.
        transform: what to do with a collection of tasks.
        beam_options: Beam's.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died.
    """
    tasks = list(tasks)
    filesystems.write(_tasks_path(notes, phase), json.dumps(tasks).encode())
    note = journal.shared_path(notes.folder, journal.JOB)
    if runner_options.is_remote(beam_options):
        from elmo_tf.pipelines.cluster import job_service

        job_service.begin_job(beam_options, phase, note)
    pipeline = runner_options.make_pipeline(beam_options)
    _ = pipeline | "Tasks" >> ReadTasks(notes, phase, type(tasks[0])) | phase.capitalize() >> transform
    with task_progress.watched(doing, notes, phase, len(tasks), sum(task.size for task in tasks)):
        runner_options.execute(pipeline, note)
    return len(tasks)


def run_step(
    doing: str, notes: journal.Journal, step: DoOnce, tasks: Iterable[Numbered], beam_options: PipelineOptions
) -> list[dict[str, Any]]:
    """Runs a pipeline of one step and returns the results of its tasks, in order; see `run`."""
    num_tasks = run(doing, notes, step.phase, tasks, Step(step, notes), beam_options)
    return results(notes, step.phase, num_tasks, step.schema)


class ReadTasks(beam.PTransform):
    """The tasks of a phase, spread over the workers."""

    def __init__(self, notes: journal.Journal, phase: str, kind: type):
        super().__init__()
        self._notes, self._phase, self._kind = notes, phase, kind

    @beam.typehints.no_annotations
    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            begin
            | "Phase" >> beam.Create([self._phase])
            | "ReadTasks" >> beam.FlatMap(read_tasks, self._notes, self._kind)
            | "SpreadTasks" >> beam.Reshuffle()
        )


class Step(beam.PTransform):
    """Tasks -> the file of their results."""

    def __init__(self, step: DoOnce, notes: journal.Journal):
        super().__init__()
        self._step, self._notes = step, notes

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        return (
            tasks
            | "Do" >> beam.ParDo(self._step)
            | "OneKey" >> beam.WithKeys(self._step.phase)
            | "GroupResults" >> beam.GroupByKey()
            | "WriteResults" >> beam.Map(_write_results, self._notes)
        )


@beam.typehints.no_annotations
def read_tasks(phase: str, notes: journal.Journal, kind: type) -> Iterator[Numbered]:
    """Yields the tasks of a phase, of a class. Raises `ReadError` if this worker cannot read them."""
    path = _tasks_path(notes, phase)
    if not filesystems.exists(path):
        raise filesystems.ReadError(f"cannot read {path}: No such file; {filesystems.UNSEEN}")
    try:
        tasks = [decoded(kind, row) for row in json.loads(filesystems.read(path))]
    except (ValueError, TypeError):
        raise filesystems.ReadError(f"cannot read {path}: the plan of the tasks is damaged") from None
    yield from tasks


def results(notes: journal.Journal, phase: str, num_tasks: int, schema: Schema) -> list[Any]:
    """Returns the results of all tasks of a phase, in order.

    Raises:
        filesystems.ReadError: if one is missing or damaged.
    """
    path = _results_path(notes, phase)
    content = Object({"numbers": ListOf(Whole()), "results": ListOf(schema)})
    found = filesystems.read_json(path, content) if filesystems.exists(path) else None
    if found is None or found["numbers"] != list(range(num_tasks)) or len(found["results"]) != num_tasks:
        raise filesystems.ReadError(f"cannot read {path}: the result of a task is missing or damaged")
    return found["results"]


def decoded(kind: Any, value: Any) -> Any:
    """Returns a value of `kind`, a NamedTuple or a part of one, that was written as JSON."""
    if typing.get_origin(kind) is tuple:
        return tuple(decoded(typing.get_args(kind)[0], one) for one in value)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return None if value is None else decoded(next(one for one in typing.get_args(kind) if one is not None), value)
    if hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind)
        return kind(*(decoded(hints[name], one) for name, one in zip(kind._fields, value, strict=True)))
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"not of type {kind}: {value}")
    return value


@beam.typehints.no_annotations
def _write_results(grouped: tuple[str, Iterable[tuple[int, str]]], notes: journal.Journal) -> None:
    phase, found = grouped
    # A bundle that is repeated may bring a result twice.
    by_number = dict(found)
    numbers = sorted(by_number)
    content = f'{{"numbers": {numbers}, "results": [{", ".join(by_number[number] for number in numbers)}]}}'
    filesystems.write(_results_path(notes, phase), content.encode())


def _tasks_path(notes: journal.Journal, phase: str) -> str:
    return notes.path(f"{phase}-tasks.json")


def _results_path(notes: journal.Journal, phase: str) -> str:
    return notes.path(f"{phase}-results.json")
