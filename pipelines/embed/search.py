"""The nearest uses of words in a text, which show how a model separates the senses of a word."""

import bisect
import itertools
import json
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from elmo_tf import embedder, sources
from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine, counted
from elmo_tf.pipelines.running import task_progress
from elmo_tf.pipelines.text import corpora, sentences
from elmo_tf.pipelines.text.job_config import require

# Tokens at the start of the text that the mean is taken over: enough for 1 % of a component's standard deviation.
MEAN_TOKENS = 16_384
MIX = "elmo"  # instead of a layer's number

Line = tuple[int, embedder.Words]  # its number in the text, from 0, and its tokens
Embedded = tuple[int, embedder.Words, np.ndarray]  # with the vectors of the tokens
_log = logging.getLogger("elmo_tf")


class Query(NamedTuple):
    """A word at one place of one sentence."""

    sentence: list[bytes]
    position: int  # of the word in the sentence, from 0

    @property
    def word(self) -> bytes:
        return self.sentence[self.position]


class Use(NamedTuple):
    """A word at one place of one sentence of the text."""

    similarity: float  # cosine of its vector and the query's, both minus the mean of the text's vectors, -1 to 1
    line: int  # number of the line in the text, from 0
    sentence: list[str]
    position: int  # of the word in the sentence, from 0


def search(
    savedmodel: str, text: str, query: Query, layer: str = MIX, count: int = 10, same_word: bool = False
) -> list[Use]:
    """Returns the uses of words in a text that are most similar to the query's, best first.

    Args:
        savedmodel: the model, as for `elmo_tf.load`.
        text: a file, folder or glob; one tokenized sentence per line.
        query: the word to compare with.
        layer: a layer's number, or "elmo".
        count: the largest number of uses to return.
        same_word: whether to consider only uses of the query's word.

    Raises:
        InputError: if there is no use in the text, or a file cannot be used.
    """
    source = sources.find(savedmodel)
    names = [MIX, *map(str, range(source.num_layers))]
    require("layer", layer in names, f"one of {', '.join(names)}", layer)
    layers = "mix" if layer == MIX else int(layer)
    corpus = corpora.match([text])
    model = embedder.Embedder(source)
    ((_, vectors),) = model.embed([query.sentence], layers)
    progress = ProgressLine(at_once=False)
    lines = _read(corpus, progress)
    if same_word:
        lines = (line for line in lines if query.word in line[1])
    try:
        uses = nearest_uses(query, vectors[query.position], _embed(lines, layers, model), count, same_word)
    finally:
        progress.clear()
    wanted = f"a line with the word {query.word.decode(errors='replace')!r}" if same_word else "a sentence"
    require(text, bool(uses), f"{wanted}, other than the one given", "none")
    return uses


def find_query(word: str, sentence: str, position: int | None = None) -> Query:
    """Returns the word in the sentence.

    Args:
        word: compared with case, byte by byte.
        sentence: tokens between white space, `word` among them.
        position: of the word, counted from 0; None: the only one, or the first.

    Raises:
        InputError: if the word is not there.
    """
    wanted, words = word.encode(errors="surrogateescape"), sentence.encode(errors="surrogateescape").split()
    if wanted not in words:
        raise InputError("sentence", f"the word {word!r} in it", repr(sentence))
    places = [place for place, found in enumerate(words) if found == wanted]
    if position is not None and position not in places:
        raise InputError("position", f"one of {places}, the positions of {word!r}", position)
    return Query(words, places[0] if position is None else position)


def nearest_uses(
    query: Query, target: np.ndarray, embedded: Iterable[Embedded], count: int = 10, same_word: bool = False
) -> list[Use]:
    """Returns the uses most similar to the query's, best first, at most one in each distinct sentence.

    The mean vector of the first `MEAN_TOKENS` tokens is subtracted from all vectors: their common component carries no
    information about a use, and makes all cosines nearly equal. Memory does not grow with the text.

    Args:
        query: its own sentence is skipped wherever it occurs.
        target: float32 `(dim,)`, the query's vector.
        embedded: the text: each line's number, its tokens and their vectors `(tokens, dim)`; only lines with tokens.
        count: the largest number of uses to return.
        same_word: whether to consider only uses of the query's word.
    """
    best: list[Use] = []
    known: set[tuple[bytes, ...]] = {tuple(query.sentence)}
    embedded = iter(embedded)
    first = list(_some(embedded))
    if not first:
        return []
    mean = np.concatenate([vectors for _, _, vectors in first]).mean(axis=0, dtype=np.float64).astype(np.float32)
    target = target - mean
    for line, words, vectors in itertools.chain(first, embedded):
        if tuple(words) in known:
            continue
        similarities = _cosines(vectors - mean, target)
        if same_word:
            similarities[[word != query.word for word in words]] = -np.inf
        position = int(similarities.argmax())
        similarity = float(similarities[position])
        if similarity == -np.inf or (len(best) == count and similarity <= best[-1].similarity):
            continue
        use = Use(similarity, line, [word.decode(errors="replace") for word in words], position)
        bisect.insort(best, use, key=lambda one: (-one.similarity, one.line))
        known.add(tuple(words))
        for gone in best[count:]:
            known.discard(tuple(word.encode() for word in gone.sentence))
        del best[count:]
    return best


def as_json(query: Query, uses: list[Use]) -> str:
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


def as_table(uses: list[Use]) -> str:
    """Returns a line per use: similarity, number of the line in the text, the sentence with the word marked."""
    width, rows = max(len(f"{use.line:,}") for use in uses), []
    for use in uses:
        words = list(use.sentence)
        words[use.position] = f"[{words[use.position]}]"
        rows.append(f"{use.similarity:6.3f}  {use.line:>{width},}  {' '.join(words)}")
    return "\n".join(rows)


def _read(corpus: list[corpora.TextFile], progress: ProgressLine) -> Iterator[Line]:
    """Yields the lines of a text that have tokens, and shows how much of it is read."""
    reader = sentences.Reader(sentences.Settings("whitespace", sentences.SENTENCE, strict=False), numbered=True)
    (task,) = corpora.plan_in_order(corpus, 1)
    amount, start, invalid = task_progress.Amount(), time.monotonic(), 0
    for batch in reader.read(task):
        if progress.due():
            progress.show(f"searching {task_progress.describe(amount, task.size, time.monotonic() - start)}")
        for number, words in enumerate(batch.sentences, amount.sentences):
            if words:
                yield number, words
        amount += task_progress.Amount(batch.size, len(batch.sentences), sum(map(len, batch.sentences)))
        invalid += batch.irregular["invalid_utf8_lines"]
    if invalid:
        _log.warning("warning: skipped %s with bytes that are not UTF-8", counted(invalid, "line"))


def _embed(lines: Iterable[Line], layers: embedder.Layers, model: embedder.Embedder) -> Iterator[Embedded]:
    """Yields lines with their vectors, which are computed for many lines at a time."""
    lines = iter(lines)
    while group := list(_some(lines)):
        for place, vectors in model.embed([words for _, words in group], layers):
            yield *group[place], vectors


def _some(lines: Iterator[Any]) -> Iterator[Any]:
    """Yields the next lines, up to the one that completes `MEAN_TOKENS` tokens."""
    num_tokens = 0
    for line in lines:
        yield line
        num_tokens += len(line[1])
        if num_tokens >= MEAN_TOKENS:
            return


def _cosines(vectors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns the cosine of each row, float32 `(tokens,)`; 0 for a vector without length."""
    lengths = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(target)
    # Rounding may give a little more than 1.
    return np.clip(vectors @ target / np.where(lengths == 0, 1, lengths), -1, 1)
