"""The step that turns tasks into shards of vectors."""

import collections
import dataclasses
import logging
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from apache_beam.utils.shared import Shared

from elmo_tf import embedder, precision
from elmo_tf.beam import failures
from elmo_tf.beam.embed.model_handler import ElmoModelHandler
from elmo_tf.beam.embed.numbering import LineNumbers
from elmo_tf.beam.progress import TaskProgress
from elmo_tf.corpus import corpora, sentences
from elmo_tf.engines import Words
from elmo_tf.errors import InputError
from elmo_tf.files import stores
from elmo_tf.published import models
from elmo_tf.records import record_folder, vector_files, wire

_GROUP_BYTES = 64 << 20  # of vectors computed, and then written, together
_GROUP_TOKENS = 1 << 17  # the most computed together if a line has one vector
_log = logging.getLogger("elmo_tf")


class Layout(NamedTuple):
    """Shape and type of the vectors of a line."""

    token_shape: tuple[int, ...]  # (layers, dim) or (dim,)
    dtype: str  # float32 or float16
    pool: str | None = None  # one of embedder.POOLS if a line has the vectors of one token

    def shape(self, num_tokens: int) -> tuple[int, ...]:
        """Returns the shape of the vectors of a line."""
        return self.token_shape if self.pool else (*self.token_shape[:-1], num_tokens, self.token_shape[-1])

    def size(self, num_lines: int, num_tokens: int) -> int:
        """Returns the bytes of the vectors of some lines."""
        count = num_lines if self.pool else num_tokens
        return count * int(np.prod(self.token_shape)) * np.dtype(self.dtype).itemsize


class Settings(NamedTuple):
    """How text becomes vectors."""

    text: sentences.Settings
    model: str  # its path or name as workers reach it
    layers: embedder.Layers
    layout: Layout
    batch_tokens: int
    num_processes: int | None  # on one machine; 0: one per core; None: one, with TensorFlow's own settings
    precision: str = "float32"

    def num_threads(self) -> int | None:
        """Returns how many threads a process on this machine computes with: its share of the cores; None: as set."""
        if self.num_processes is None:
            return None
        cores = precision.num_cores()
        return max(1, cores // (self.num_processes or cores))

    def load(self) -> embedder.Embedder:
        """Returns the loaded model.

        Raises `ReadError`, not `InputError`: the model was valid when the job began, so finished shards are kept.
        """
        if stores.is_local(self.model) and not (models.is_name(self.model) or os.path.exists(self.model)):
            raise stores.ReadError(f"cannot load the model {self.model}: {stores.UNSEEN}")
        try:
            settings = self.layers, self.batch_tokens, self.num_threads()
            return ElmoModelHandler(self.model, *settings, precision=self.precision).load_model()
        except InputError as error:
            raise stores.ReadError(f"cannot load the model: {str(error).partition(': ')[2] or error}") from None


@dataclasses.dataclass(eq=False)
class EmbedTask(failures.TaskFn):
    """`corpora.Task` -> its number, and the size of its shard in bytes. Existing intact shards are skipped.

    The threads of a process share a model. The side input is `LineNumbers`.
    """

    settings: Settings
    num_shards: int  # of all tasks
    shared: Shared = dataclasses.field(default_factory=Shared)  # has the model

    def setup(self) -> None:
        self._reader = sentences.Reader(self.settings.text, numbered=True)

    def process_task(self, task: corpora.Task, numbered: LineNumbers) -> Iterator[tuple[int, int]]:
        if not (num_lines := int(numbered.lines[task.number])):
            yield task.number, 0
            return
        path = self.folder.file(record_folder.shard_name(task.number, self.num_shards))
        progress = TaskProgress(self.folder, "embedding")
        if _is_intact(path, num_lines):
            progress.add(task.size)
        else:
            # So that a shard does not depend on the tasks before it.
            model = self.shared.acquire(self.settings.load).without_memory()
            token_bytes = task.size / max(numbered.tokens[task.number], 1)
            line = int(numbered.first_lines[task.number])
            with stores.create(path) as file:
                for identifiers, lines in _groups(self._reader.read(task), self.settings):
                    vectors = self._vectors(model, lines, progress, token_bytes)
                    _write(file, line, identifiers, lines, vectors)
                    line += len(lines)
        progress.write()
        yield task.number, stores.status(path).size

    def _vectors(
        self, model: embedder.Embedder, lines: list[Words], progress: TaskProgress, token_bytes: float
    ) -> list[np.ndarray]:
        """Returns the vectors of each line."""
        layout = self.settings.layout
        vectors = [np.zeros(layout.shape(0), layout.dtype)] * len(lines)

        def count(numbers: list[int]) -> None:
            num_tokens = sum(len(lines[number]) for number in numbers)
            progress.add(round(num_tokens * token_bytes), len(numbers), num_tokens)

        for number, values in model.embed(lines, self.settings.layers, count):
            pooled = getattr(np, layout.pool)(values, axis=-2) if layout.pool else values
            # A copy, so that the memory of the batch can be freed.
            vectors[number] = np.ascontiguousarray(pooled, layout.dtype)
        return vectors


def _is_intact(path: str, num_lines: int) -> bool:
    """Whether a shard exists with all of its lines; warns if it is damaged."""
    if not stores.exists(path):
        return False
    try:
        collections.deque(vector_files.read_shard(path, num_lines), maxlen=0)
    except stores.ReadError as error:
        _log.warning("warning: %s; its lines are embedded again", error)
        return False
    return True


def _groups(batches: Iterator[sentences.Batch], settings: Settings) -> Iterator[tuple[list[bytes], list[Words]]]:
    """Yields identifiers, empty if there are none, and tokens of lines that are computed together."""
    token_bytes = settings.layout.size(1, 1)
    max_tokens = _GROUP_TOKENS if settings.layout.pool else max(1, min(_GROUP_TOKENS, _GROUP_BYTES // token_bytes))
    identifiers: list[bytes] = []
    lines: list[Words] = []
    num_tokens = 0  # and one more per line: lines without tokens take memory, too
    for batch in batches:
        for words in batch.sentences:
            identifiers.append(words.pop(0) if settings.text.has_ids else b"")
            lines.append(words)
            num_tokens += len(words) + 1
            if num_tokens >= max_tokens:
                yield identifiers, lines
                identifiers, lines, num_tokens = [], [], 0
    if lines:
        yield identifiers, lines


def _write(
    file: BinaryIO, first_line: int, identifiers: list[bytes], lines: list[Words], vectors: list[np.ndarray]
) -> None:
    """Writes the records of lines."""
    for line, (identifier, words, values) in enumerate(zip(identifiers, lines, vectors, strict=True), first_line):
        file.write(wire.frame(vector_files.encode(line, words, values, identifier)))
