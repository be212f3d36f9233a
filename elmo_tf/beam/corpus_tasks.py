"""The beginning of both jobs' pipelines: the tasks, made by a worker."""

import pickle
import zlib
from collections.abc import Callable
from typing import Any

import apache_beam as beam

from elmo_tf.corpus import corpora


def pack(corpus: list[corpora.TextFile]) -> bytes:
    """Returns the files as bytes. Beam pickles steps several times, which takes 1.5 s longer for 20,000 files."""
    return zlib.compress(pickle.dumps(corpus))


def unpack(packed: bytes) -> list[corpora.TextFile]:
    """Returns the files that `pack` packed."""
    return pickle.loads(zlib.decompress(packed))


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
