"""The nearest uses of words in a text on disk, whose vectors are computed now or were written by `elmo-tf embed`."""

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import h5py
import numpy as np

from elmo_tf import embedder, sources
from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine
from elmo_tf.pipelines.running import task_progress
from elmo_tf.pipelines.text import corpora, sentences
from elmo_tf.pipelines.text.job_config import require
from elmo_tf.savedmodel import neighbors, vector_files

# Of sentences that are sorted by length before they are embedded; the first group is what the mean is taken over.
_GROUP_TOKENS = neighbors.MEAN_TOKENS
MIX = "elmo"  # instead of a layer's number

Line = tuple[int, embedder.Words]  # its number, from 0, and its tokens


class Search(NamedTuple):
    """What to search for, and where."""

    savedmodel: str
    text: str  # a file, folder or glob
    word: str
    sentence: str
    position: int | None = None
    layer: str = MIX  # or a layer's number
    count: int = 10
    same_word: bool = False
    vectors: str | None = None  # HDF5 of the text

    def run(self) -> tuple[neighbors.Query, list[neighbors.Use]]:
        """Returns the query and the nearest uses, best first.

        Raises:
            InputError: if the word is not in the sentence or the text, or a file cannot be used.
        """
        query = neighbors.find_query(self.word, self.sentence, self.position)
        source = sources.find(self.savedmodel)
        layer = self._layer(source)
        file, about = vector_files.open_hdf5(self.vectors) if self.vectors else (None, None)
        corpus = corpora.match([self.text])
        if about:
            _check_vectors(about, source, layer, self.vectors)
        model = embedder.Embedder(source)
        target = next(model.embed([query.sentence], "mix" if layer is None else layer))[1][query.position]
        progress = _Progress(corpus)
        lines = self._lines(corpus, about)
        if self.same_word:
            lines = _with_word(lines, query.word, progress)
        embedded = _embed(lines, layer, model) if file is None else self._read(file, about, lines, layer, model)
        try:
            uses = neighbors.nearest_uses(query, target, progress.along(embedded), self.count, self.same_word)
        finally:
            progress.line.clear()
        wanted = f"a line with the word {self.word!r}" if self.same_word else "a sentence"
        require(self.text, bool(uses), f"{wanted}, other than the one given", "none")
        return query, uses

    def _layer(self, source: sources.Source) -> int | None:
        """Returns the number of the layer; None for the mix."""
        names = [MIX, *map(str, range(source.num_layers))]
        require("layer", self.layer in names, f"one of {', '.join(names)}", self.layer)
        return None if self.layer == MIX else int(self.layer)

    def _lines(self, corpus: list[corpora.TextFile], about: dict[str, Any] | None) -> Iterator[Line]:
        """Yields the numbered sentences of a text, read with the settings of its vectors, if given."""
        about = about or {"tokenizer": "whitespace", "line": sentences.SENTENCE}
        settings = sentences.Settings(about["tokenizer"], about["line"], False, 0, None)
        refused = () if "lines" in about else ("invalid_utf8_lines",)
        reader, first = sentences.Reader(settings, numbered=True, refused=refused), 0
        (task,) = corpora.plan_in_order(corpus, 1)
        for numbered in reader.read(task):
            yield from enumerate(numbered.sentences, first)
            first += len(numbered.sentences)
        if "lines" in about and first != about["lines"]:
            raise InputError(self.text, f"the {about['lines']:,} lines of {self.vectors}", f"{first:,}")

    def _read(
        self, file: h5py.File, about: dict[str, Any], lines: Iterable[Line], layer: int | None, model: embedder.Embedder
    ) -> Iterator[neighbors.Embedded]:
        """Yields the lines with the vectors of a layer that a file holds."""
        num_dims = 3 if about["layers"] == "all" else 2
        for number, words in lines:
            dataset = file.get(str(number)) if number < about["lines"] else None
            num_tokens = dataset.shape[-2] if isinstance(dataset, h5py.Dataset) and dataset.ndim == num_dims else 0
            if num_tokens != len(words):
                found = f"{len(words)} tokens instead of {num_tokens} on line {number:,} (from 0)"
                raise InputError(self.text, f"the text of {self.vectors}", found)
            if words:
                yield number, words, _of_layer(dataset, layer, model) if num_dims == 3 else dataset[...]


def as_json(query: neighbors.Query, uses: list[neighbors.Use]) -> str:
    """Returns the result as one line of JSON."""
    return json.dumps(
        {
            "word": query.word.decode(errors="replace"),
            "sentence": [word.decode(errors="replace") for word in query.sentence],
            "position": query.position,
            "uses": [use._asdict() for use in uses],
        },
        ensure_ascii=False,
    )


def as_table(uses: list[neighbors.Use]) -> str:
    """Returns a line per use: similarity, number of the line in the text, the sentence with the word marked."""
    width, rows = max(len(f"{use.line:,}") for use in uses), []
    for use in uses:
        words = list(use.sentence)
        words[use.position] = f"[{words[use.position]}]"
        rows.append(f"{use.similarity:6.3f}  {use.line:>{width},}  {' '.join(words)}")
    return "\n".join(rows)


class _Progress:
    """The progress line of a search."""

    def __init__(self, corpus: list[corpora.TextFile]):
        self._size = sum(file.text_size for file in corpus)
        self._amount, self._start, self.line = task_progress.Amount(), time.monotonic(), ProgressLine(at_once=False)

    def add(self, words: embedder.Words, skipped: bool = False) -> None:
        """Counts a sentence of the text that is done."""
        size = sum(map(len, words)) + max(1, len(words))  # with white space
        self._amount += task_progress.Amount(*(size,) if skipped else (size, 1, len(words)))
        if self.line.due():
            seconds = time.monotonic() - self._start
            self.line.show(f"searching {task_progress.describe(self._amount, self._size, seconds)}")

    def along(self, lines: Iterable[neighbors.Embedded]) -> Iterator[neighbors.Embedded]:
        """Yields lines and counts them."""
        for line in lines:
            yield line
            self.add(line[1])


def _with_word(lines: Iterable[Line], word: bytes, progress: _Progress) -> Iterator[Line]:
    for number, words in lines:
        if word in words:
            yield number, words
        else:
            progress.add(words, skipped=True)


def _embed(lines: Iterable[Line], layer: int | None, model: embedder.Embedder) -> Iterator[neighbors.Embedded]:
    """Yields the lines with the vectors of a layer, which it computes for many lines at a time."""
    for group in _groups(lines):
        for place, vectors in model.embed([words for _, words in group], "mix" if layer is None else layer):
            yield *group[place], vectors


def _groups(lines: Iterable[Line]) -> Iterator[list[Line]]:
    group, num_tokens = [], 0
    for line in lines:
        group.append(line)
        num_tokens += len(line[1])
        if num_tokens >= _GROUP_TOKENS:
            yield group
            group, num_tokens = [], 0
    yield group


def _check_vectors(about: dict[str, Any], source: sources.Source, layer: int | None, path: str) -> None:
    """Raises `InputError` unless the vectors are those of the model, and include the layer."""
    line = about["line"]
    require(path, line in sentences.LINES, f"line to be {' or '.join(sentences.LINES)}", line)
    same = about["savedmodel_sha256"] == source.sha256()
    require(path, same, f"vectors of the model {source.name}", "those of another")
    require(path, "pool" not in about, "a vector for each token", f"elmo-tf embed --pool {about.get('pool')}")
    require(path, "identifiers" not in about, "vectors by the numbers of lines", "elmo-tf embed --id-column")
    stored, is_top = about["layers"], layer == source.num_layers - 1
    enough = stored in ("all", "mix" if layer is None else layer) or (stored == "top" and is_top)
    wanted = "all layers" if layer is None else f"layer {layer}"
    require(path, enough, wanted, f"elmo-tf embed --layers {stored}")


def _of_layer(layers: h5py.Dataset, layer: int | None, model: embedder.Embedder) -> np.ndarray:
    """Returns the vectors of a layer, or the mix of all, `(tokens, dim)`."""
    if layer is not None:
        return layers[layer]
    return np.tensordot(model.mix_weights(), layers[...].astype(np.float32), 1)
