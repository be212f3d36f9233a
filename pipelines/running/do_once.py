"""A Beam step that does each task once, even if workers are killed and bundles repeated; a pipeline of tasks."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.files.json_file import MapOf, Object, Schema, Whole
from elmo_tf.pipelines.running import journal, runner_options, task_plan, task_progress, watch
from elmo_tf.pipelines.running.task_plan import Numbered
from elmo_tf.pipelines.text import filesystems

# A task's result; the results of a step may have more keys.
FILES = Object({"files": MapOf(Whole())})


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


def run(
    doing: str,
    notes: journal.Journal,
    phase: str,
    tasks: Iterable[Numbered],
    kind: type,
    transform: beam.PTransform,
    beam_options: PipelineOptions,
) -> task_plan.Plan:
    """Runs a pipeline that does the tasks of a phase, and shows its progress.

    Args:
        doing: what to call the phase, such as "counting".
        notes: the journal; the plan of the tasks is written there.
        phase: its name in the journal.
        tasks: numbered from 0.
        kind: their class, a NamedTuple.
        transform: what to do with a collection of tasks.
        beam_options: Beam's.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died.
    """
    plan = task_plan.write(notes, phase, tasks)
    note = journal.shared_path(notes.folder, journal.JOB)
    if runner_options.is_remote(beam_options):
        from elmo_tf.pipelines.cluster import job_service

        job_service.begin_job(beam_options, phase, note)
    pipeline = runner_options.make_pipeline(beam_options)
    _ = pipeline | "Tasks" >> task_plan.ReadTasks(notes, plan, kind) | phase.capitalize() >> transform
    with watch.watched(doing, notes, plan):
        runner_options.execute(pipeline, note)
    return plan


def run_step(
    doing: str,
    notes: journal.Journal,
    step: DoOnce,
    tasks: Iterable[Numbered],
    kind: type,
    beam_options: PipelineOptions,
) -> list[dict[str, Any]]:
    """Runs a pipeline of one step and returns the results of its tasks, in order; see `run`."""
    plan = run(doing, notes, step.phase, tasks, kind, Steps(step, notes), beam_options)
    return task_plan.results(notes, plan, step.schema)


class Steps(beam.PTransform):
    """Tasks -> files of their results."""

    def __init__(self, step: DoOnce, notes: journal.Journal):
        super().__init__()
        self._step, self._notes = step, notes

    @beam.typehints.no_annotations
    def expand(self, tasks: beam.PCollection) -> beam.PCollection:
        return tasks | "Do" >> beam.ParDo(self._step) | "Keep" >> task_plan.KeepResults(self._notes, self._step.phase)


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
    return all(filesystems.size(path) == size for path, size in sizes.items())
