"""The beginning of both jobs' pipelines: the tasks, made by a worker."""

import pickle
import zlib
from collections.abc import Callable
from typing import Any

import apache_beam as beam

from elmo_tf.corpus import corpora


class PackedCorpus:
    """The files to read, small enough to travel in a pipeline."""

    def __init__(self, files: list[corpora.TextFile]):
        self._packed = zlib.compress(pickle.dumps(files))

    def files(self) -> list[corpora.TextFile]:
        """Returns the files."""
        return pickle.loads(zlib.decompress(self._packed))


@beam.ptransform_fn
def make_tasks(
    pipeline: beam.Pipeline,
    corpus: PackedCorpus,
    make: Callable[[list[corpora.TextFile], int], list[corpora.Task]],
    count: int,
) -> beam.PCollection:
    """A pipeline -> its tasks, `make(files, count)`, spread over the workers. The pipeline does not grow with them."""
    return (
        pipeline
        | "Start" >> beam.Create([None])
        # Flink waits for minutes for a worker whose first step cannot be unpickled, because it lacks this package.
        | "ReachWorkers" >> beam.Reshuffle()
        | "MakeTasks" >> beam.FlatMap(lambda _: make(corpus.files(), count)).with_output_types(Any)
        | "SpreadTasks" >> beam.Reshuffle()
    )
