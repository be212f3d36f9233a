"""Steps of a job that do each task once, even if workers are killed and bundles repeated; a pipeline of tasks.

A worker makes the tasks, Beam distributes them, and all results end in one file. So neither the pipeline nor the number
of the driver's requests to a store grows with the tasks.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.beam.running import runner_options, task_progress
from elmo_tf.beam.running.journal import JOB, Journal, Result, shared_path
from elmo_tf.beam.text import filesystems


class Tasks(NamedTuple):
    """The tasks of a phase. Each has a `number`, from 0, and a `size`, the bytes to read."""

    make: Callable[[], Iterable[Any]]  # called on a worker
    count: int
    size: int  # bytes that all of them read


class DoOnce(beam.DoFn):
    """Task -> its number and result, once all that it writes is complete. What an earlier run has done is skipped.

    Subclasses name the `phase`, do a task in `do`, and name the class of their results. A result goes into the journal.
    """

    phase: str
    kind: type[Result] = Result

    def __init__(self, journal: Journal):
        self._journal = journal

    def do(self, task: Any, progress: task_progress.TaskProgress) -> Result:
        """Does a task."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Any) -> Iterator[tuple[int, str]]:
        progress = task_progress.TaskProgress(self._journal, self.phase)
        result = self._journal.result(self.phase, task.number, self.kind)
        if result:
            progress.add(task.size, 0, 0, task.size)
        else:
            result = self.do(task, progress)
            self._journal.done(self.phase, task.number, result)
        progress.write()
        yield self.output(task.number, result)

    def output(self, number: int, result: Result) -> tuple[int, str]:
        """Returns a task's result as an element of the pipeline, and counts irregular text."""
        for name, count in result.irregular.items():
            Metrics.counter("irregular", name).inc(count)
        # As ASCII: Beam's coder refuses names that are not UTF-8.
        return number, json.dumps(msgspec.to_builtins(result))


@beam.ptransform_fn
def _do_all(tasks: beam.PCollection, step: DoOnce, path: str) -> beam.PCollection:
    """Tasks -> the file of their results."""
    return (
        tasks
        | "DoTasks" >> beam.ParDo(step)
        | "ListResults" >> beam.combiners.ToList()
        | "WriteResults" >> beam.Map(_write_results, path)
    )


def run_step(doing: str, step: DoOnce, tasks: Tasks, beam_options: PipelineOptions) -> list[Any]:
    """Runs a pipeline of one step and returns the results of its tasks, in order; see `run`."""
    journal = step._journal
    run(doing, journal, step.phase, tasks, _do_all(step, journal.results_path(step.phase)), beam_options)
    return journal.results(step.phase, tasks.count, step.kind)


def run(
    doing: str, journal: Journal, phase: str, tasks: Tasks, transform: beam.PTransform, beam_options: PipelineOptions
) -> None:
    """Runs a pipeline that does the tasks of a phase, and shows its progress with the words `doing`.

    Raises:
        InputError, ReadError, WriteError: what a step raised.
        ChildProcessError: if a worker process died.
    """
    note = shared_path(journal.folder, JOB)
    if runner_options.is_remote(beam_options):
        from elmo_tf.beam.cluster import job_service

        job_service.begin_job(beam_options, phase, note)
    pipeline = runner_options.make_pipeline(beam_options)
    spread = (
        pipeline
        | "Start" >> beam.Create([None])
        | "MakeTasks" >> beam.FlatMap(lambda _: tasks.make()).with_output_types(Any)
        | "SpreadTasks" >> beam.Reshuffle()
    )
    _ = spread | phase.capitalize() >> transform
    with task_progress.watched(doing, journal, phase, tasks.count, tasks.size):
        runner_options.execute(pipeline, note)


@beam.typehints.no_annotations
def _write_results(results: list[tuple[int, str]], path: str) -> None:
    # A bundle that is repeated may bring a result twice.
    by_number = dict(results)
    filesystems.write(path, f"[{', '.join(by_number[number] for number in sorted(by_number))}]".encode())
