"""The step that turns chunks of text into files of vectors."""

import concurrent.futures
import os
from collections.abc import Iterator
from typing import NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.shared import Shared

from elmo_tf import embedder
from elmo_tf.beam.embed import text_chunks, vector_output
from elmo_tf.beam.embed.model_handler import ElmoModelHandler
from elmo_tf.beam.running import do_once, task_progress
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError
from elmo_tf.files.json_file import Count
from elmo_tf.published import models


class Settings(NamedTuple):
    """How text becomes vectors."""

    savedmodel: str  # where the model comes from: what workers can reach
    layers: embedder.Layers
    layout: vector_output.Layout
    batch_tokens: int
    num_processes: int | None  # on one machine; 0: one per core; None: one, with TensorFlow's own settings
    precision: str = "float32"

    def num_threads(self) -> int | None:
        """Returns how many threads a process on this machine computes with: its share of the cores; None: as set."""
        if self.num_processes is None:
            return None
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return max(1, cores // (self.num_processes or cores))

    def load(self) -> embedder.Embedder:
        """Returns the loaded model.

        Raises:
            filesystems.ReadError: if it cannot be loaded here. Its files were intact when the job began, so what is
                already written stays.
        """
        path = self.savedmodel
        if filesystems.is_local(path) and not (models.is_name(path) or os.path.exists(path)):
            raise filesystems.ReadError(f"cannot load the SavedModel {path}: {filesystems.UNSEEN}")
        try:
            handler = ElmoModelHandler(
                path, self.layers, self.batch_tokens, self.num_threads(), precision=self.precision
            )
            return handler.load_model()
        except InputError as error:
            reason = str(error).partition(": ")[2] or str(error)
            raise filesystems.ReadError(f"cannot load the SavedModel: {reason}") from None


class Embedded(Result):
    """The part of the text that a chunk's vectors belong to."""

    first_line: Count
    lines: Count
    tokens: Count


class EmbedChunk(do_once.DoOnce):
    """`text_chunks.Chunk` -> its vectors in the output.

    The threads of a process share a model. A thread writes the vectors of a chunk while the next is computed.
    """

    phase = "embed"
    kind = Embedded

    def __init__(self, journal: Journal, settings: Settings, output: vector_output.Output):
        super().__init__(journal)
        self._settings, self._output, self._shared = settings, output, Shared()

    def setup(self) -> None:
        self._model = self._shared.acquire(self._settings.load)
        self._thread = concurrent.futures.ThreadPoolExecutor(1)

    def start_bundle(self) -> None:
        self._writing = None

    @beam.typehints.no_annotations
    def process(self, chunk: text_chunks.Chunk) -> Iterator[tuple[int, str]]:
        if self._journal.result(self.phase, chunk.number, self.kind):
            yield from super().process(chunk)
            return
        names, lines = text_chunks.read(self._journal, chunk)
        found = vector_output.ChunkVectors(names, lines, self._vectors(chunk, lines))
        yield from self._written()
        self._writing = self._thread.submit(self._write, chunk, found)

    def finish_bundle(self) -> Iterator:
        yield from map(GlobalWindows.windowed_value, self._written())

    def teardown(self) -> None:
        self._thread.shutdown()

    def _written(self) -> Iterator[tuple[int, str]]:
        """Yields the output of the chunk that is being written, if any, once it is."""
        if self._writing:
            yield self.output(*self._writing.result())

    def _write(self, chunk: text_chunks.Chunk, found: vector_output.ChunkVectors) -> tuple[int, Embedded]:
        files = self._output.write(chunk, found)
        result = Embedded(files=files, first_line=chunk.first_line, lines=chunk.lines, tokens=chunk.tokens)
        self._journal.done(self.phase, chunk.number, result)
        return chunk.number, result

    def _vectors(self, chunk: text_chunks.Chunk, lines: list[embedder.Words]) -> list[np.ndarray]:
        """Returns the vectors of each line."""
        layout = self._settings.layout
        progress = task_progress.TaskProgress(self._journal, self.phase)
        found = [np.zeros(layout.shape(0), layout.dtype)] * len(lines)
        token_bytes = chunk.size / chunk.tokens if chunk.tokens else 0

        def count(places: list[int]) -> None:
            num_tokens = sum(len(lines[place]) for place in places)
            progress.add(round(num_tokens * token_bytes), len(places), num_tokens)

        for place, vectors in self._model.embed(lines, self._settings.layers, count):
            values = getattr(np, layout.pool)(vectors, axis=-2) if layout.pool else vectors
            # A copy, so that the memory of the batch can be freed.
            found[place] = np.ascontiguousarray(values, layout.dtype)
        progress.write()
        return found
