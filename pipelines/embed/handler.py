"""Chunks of text to files of vectors, as Beam transforms around RunInference with a ModelHandler."""

import concurrent.futures
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics
from apache_beam.ml.inference.base import PredictionResult, RunInference

from elmo_tf import embedder
from elmo_tf.errors import InputError
from elmo_tf.pipelines.embed import model_handler, text_chunks, vector_output
from elmo_tf.pipelines.running import do_once, journal, task_progress
from elmo_tf.pipelines.text import filesystems
from elmo_tf.published import models

PHASE = "embed"


class Settings(NamedTuple):
    """How text becomes vectors."""

    savedmodel: str  # where the model comes from: what workers can reach
    layers: str  # one of contract.LAYERS
    layout: vector_output.Layout
    batch_tokens: int
    num_processes: int | None  # that compute on one machine; 0: one per core; None: one, with TensorFlow's own settings

    def num_threads(self) -> int | None:
        """Returns how many threads a process on this machine computes with: its share of the cores; None: as set."""
        if self.num_processes is None:
            return None
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return max(1, cores // (self.num_processes or cores))


class ChunkText(NamedTuple):
    """A chunk with its text: the input of inference."""

    chunk: text_chunks.Chunk
    lines: list[embedder.Words]


class Handler(model_handler.ElmoModelHandler):
    """Runs a SavedModel on chunks instead of sentences, with progress. Beam loads it once per process."""

    def __init__(self, folder: str, settings: Settings):
        # One chunk makes many batches of the model, and its vectors take all the memory planned for them.
        super().__init__(
            settings.savedmodel,
            settings.layers,
            settings.batch_tokens,
            min_batch_size=1,
            max_batch_size=1,
        )
        self._journal = journal.opened(folder)
        self._settings = settings

    def load_model(self) -> embedder.Embedder:
        """Returns the loaded model.

        Raises:
            filesystems.ReadError: if it cannot be loaded here. Its files were intact when the job began, so what is
                already written stays.
        """
        # On the worker: the machine that started the job may have other cores.
        self._num_threads = self._settings.num_threads()
        savedmodel = self._settings.savedmodel
        if filesystems.is_local(savedmodel) and not (models.is_name(savedmodel) or os.path.exists(savedmodel)):
            raise filesystems.ReadError(f"cannot load the SavedModel {savedmodel}: {filesystems.UNSEEN}")
        try:
            return super().load_model()
        except InputError as error:
            reason = str(error).partition(": ")[2] or str(error)
            raise filesystems.ReadError(f"cannot load the SavedModel: {reason}") from None

    def run_inference(
        self,
        batch: Sequence[ChunkText],
        model: embedder.Embedder,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterable[PredictionResult]:
        """Yields the vectors of each line of a chunk, in the order of the lines."""
        del inference_args
        for text in batch:
            yield PredictionResult(text, self._vectors(text, model))

    def get_num_bytes(self, batch: Sequence[ChunkText]) -> int:
        """Returns the size of the text, for Beam's metrics."""
        return sum(text.chunk.size for text in batch)

    def _vectors(self, text: ChunkText, model: embedder.Embedder) -> list[np.ndarray]:
        layers, layout = self._settings.layers, self._settings.layout
        progress = task_progress.TaskProgress(self._journal, PHASE, text.chunk.number)
        found = [np.zeros(layout.shape(0), layout.dtype)] * len(text.lines)
        token_bytes = text.chunk.size / text.chunk.tokens if text.chunk.tokens else 0

        def count(places: list[int]) -> None:
            num_tokens = sum(len(text.lines[place]) for place in places)
            progress.add(round(num_tokens * token_bytes), len(places), num_tokens)

        for place, vectors in model.embed(text.lines, layers, count):
            # A copy, so that the memory of the batch can be freed.
            found[place] = np.ascontiguousarray(vectors, layout.dtype)
        progress.write()
        return found


class ReadChunk(beam.DoFn):
    """`text_chunks.Chunk` -> `ChunkText`, or nothing if an earlier run has written the vectors of the chunk."""

    def __init__(self, folder: str):
        self._journal = journal.opened(folder)

    @beam.typehints.no_annotations
    def process(self, chunk: text_chunks.Chunk) -> Iterator[ChunkText]:
        if do_once.done(self._journal, PHASE, chunk) is None:
            yield ChunkText(chunk, text_chunks.read(self._journal, chunk))


class WriteChunk(beam.DoFn):
    """`PredictionResult` -> the number of its chunk. The vectors are written when the bundle is finished.

    A thread writes them while the model computes the next chunk.
    """

    def __init__(self, folder: str, output: vector_output.Shards | vector_output.Hdf5):
        self._journal = journal.opened(folder)
        self._output = output

    def setup(self) -> None:
        self._thread = concurrent.futures.ThreadPoolExecutor(1)

    def start_bundle(self) -> None:
        self._writing = None

    @beam.typehints.no_annotations
    def process(self, prediction: PredictionResult) -> Iterator[int]:
        text, found = prediction.example, prediction.inference
        self._wait()
        self._writing = self._thread.submit(self._write, text, found)
        Metrics.counter(PHASE, "chunks").inc()
        yield text.chunk.number

    def finish_bundle(self) -> None:
        self._wait()

    def teardown(self) -> None:
        self._thread.shutdown()

    def _wait(self) -> None:
        if self._writing:
            # Raises the error of writing, if any.
            self._writing.result()

    def _write(self, text: ChunkText, found: list[np.ndarray]) -> None:
        sizes = self._output.write(text.chunk, text.lines, found)
        self._journal.done(PHASE, text.chunk.number, {"files": sizes})


class EmbedChunks(beam.PTransform):
    """`text_chunks.Chunk`s -> their numbers, when their vectors are in the output."""

    def __init__(self, folder: str, settings: Settings, output: vector_output.Shards | vector_output.Hdf5):
        super().__init__()
        self._folder, self._settings, self._output = folder, settings, output

    @beam.typehints.no_annotations
    def expand(self, chunks: beam.PCollection) -> beam.PCollection:
        return (
            chunks
            | "ReadChunks" >> beam.ParDo(ReadChunk(self._folder))
            | "RunInference" >> RunInference(Handler(self._folder, self._settings))
            | "WriteChunks" >> beam.ParDo(WriteChunk(self._folder, self._output))
        )
