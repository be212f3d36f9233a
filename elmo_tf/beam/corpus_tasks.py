"""The beginning of both jobs' pipelines: the tasks, made by a worker."""

import pickle
import zlib
from collections.abc import Callable
from typing import Any

import apache_beam as beam

from elmo_tf.corpus import corpora


class PackedCorpus:
    """The files to read. Beam pickles steps several times, which takes 1.5 s longer for a list of 20,000 files."""

    def __init__(self, files: list[corpora.TextFile]):
        self._packed = zlib.compress(pickle.dumps(files))

    def files(self) -> list[corpora.TextFile]:
        """Returns the files."""
        return pickle.loads(zlib.decompress(self._packed))


@beam.ptransform_fn
def make_tasks(pipeline: beam.Pipeline, plan: Callable[[], list[corpora.Task]]) -> beam.PCollection:
    """A pipeline -> the tasks that `plan` returns on a worker, spread over the workers."""
    return (
        pipeline
        | "Start" >> beam.Create([None])
        # Flink waits for minutes for a worker whose first step cannot be unpickled, because it lacks this package.
        | "ReachWorkers" >> beam.Reshuffle()
        | "MakeTasks" >> beam.FlatMap(lambda _: plan()).with_output_types(Any)
        | "SpreadTasks" >> beam.Reshuffle()
    )
