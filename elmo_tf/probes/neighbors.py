"""Nearest uses of words in a text, which show how a model separates a word's senses; and nearest words."""

import bisect
import heapq
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.word_vectors import iterate_word_vectors
from elmo_tf.corpus.sentences import read_lines
from elmo_tf.display import with_count
from elmo_tf.embedder import Embedder, Layers, check_count, check_layers
from elmo_tf.engines import Words
from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine
from elmo_tf.probes.vectors import unit
from elmo_tf.text import case, tokenizers

# Tokens averaged for the mean vector: its error is then 1 % of a component's standard deviation.
MEAN_TOKENS = 16_384
_LINES_AT_ONCE = 256  # lines split together

Line = tuple[int, Words]  # its number in the text, from 1, and its tokens
Embedded = tuple[int, Words, np.ndarray]  # a line, and the vectors of its tokens


class Use(NamedTuple):
    """A word at a position of a sentence of the text."""

    similarity: float  # cosine of its vector and the query's, both minus the mean of the text's vectors, -1 to 1
    line: int  # number of the line in the text, from 1
    sentence: list[str]
    position: int  # of the word in the sentence, from 0


def search(
    model: Embedder,
    text: str | os.PathLike,
    sentence: str | bytes,
    word: str | bytes,
    layers: Layers = "mix",
    count: int = 10,
    same_word: bool = False,
) -> list[Use]:
    """Returns the uses of words in a text that are most similar to the use of a word in a sentence, best first.

    Args:
        text: a file, plain or compressed, with one sentence per line, or FASTA; the model's tokenizer splits them.
        sentence: with `word` in it, once.
        word: a token of the sentence, in upper or lower case.
        layers: as for `encode`, except "all".
        count: the largest number of uses to return.
        same_word: whether to consider only uses of `word`, in upper or lower case.

    Raises:
        InputError: if the word is not in its sentence exactly once, the text has no use, or a file cannot be used.
    """
    source = model.source
    tokens, position = _query(sentence, word, source.tokenizer)
    check_count(count, "count")
    check_layers(layers, source.num_layers)
    if layers == "all":
        raise InputError("layers", "one vector per token: mix, top, average, sum or a layer's number", layers)
    progress = ProgressLine(at_once=False)
    token = tokens[position]
    only = token if same_word else None
    lines = _lines(text, source.tokenizer, only, progress)
    try:
        ((_, vectors),) = model.embed([tokens], layers)
        uses = nearest_uses(tokens, vectors[position], _embed(lines, layers, model), count, only)
    finally:
        progress.clear()
    kind = f"other line with the word {_shown(token)!r}" if same_word else "sentence other than the given one"
    return numbered_lines.require_nonempty(uses, text, kind)


def nearest_uses(
    sentence: Words, target: np.ndarray, embedded: Iterable[Embedded], count: int = 10, only: bytes | None = None
) -> list[Use]:
    """Returns the uses most similar to a target, best first, with a single use per distinct sentence.

    The mean vector of the first `MEAN_TOKENS` tokens is subtracted from all vectors: their common component carries no
    information about a use and makes all cosines nearly equal. Memory does not grow with the text.

    Args:
        sentence: the target's sentence, excluded from the results.
        target: float32 `(dim,)`.
        embedded: the text: each line's number, its tokens and their vectors `(tokens, dim)`; only lines with tokens.
        count: the largest number of uses to return.
        only: the word whose uses are considered, in upper or lower case; None: all words.
    """
    best: list[Use] = []
    seen: set[tuple[bytes, ...]] = {tuple(sentence)}
    embedded = iter(embedded)
    first = list(_next_lines(embedded))
    if not first:
        return []
    mean = np.concatenate([vectors for _, _, vectors in first]).mean(axis=0, dtype=np.float64).astype(np.float32)
    target = target - mean
    for line, words, vectors in itertools.chain(first, embedded):
        if tuple(words) in seen:
            continue
        similarities = _cosines(vectors - mean, target)
        if only is not None:
            similarities[[not _is_same(word, only) for word in words]] = -np.inf
        position = int(similarities.argmax())
        similarity = float(similarities[position])
        if similarity == -np.inf or (len(best) == count and similarity <= best[-1].similarity):
            continue
        use = Use(similarity, line, list(map(_shown, words)), position)
        bisect.insort(best, use, key=lambda other: (-other.similarity, other.line))
        seen.add(tuple(words))
        for dropped in best[count:]:
            seen.discard(tuple(word.encode() for word in dropped.sentence))
        del best[count:]
    return best


def nearest_words(path: str | os.PathLike, word: str, count: int = 10) -> list[tuple[str, float]]:
    """Returns the words whose vectors in a file are nearest to a word's, and their cosines, best first.

    A word vector is the same in each sentence, so its neighbors mix all senses of the word (table 4 of the paper).

    Args:
        path: word vectors as text, such as GloVe's.
        word: if the file lacks it, its lower case is looked up.
        count: the largest number of words to return.

    Raises:
        InputError: naming the file, if it cannot be read or lacks the word.
    """
    vectors = dict(iterate_word_vectors(path, {word, word.lower()}))
    if not vectors:
        raise InputError(str(path), f"it has no vector for {word!r}")
    matched_word = word if word in vectors else word.lower()
    target = vectors[matched_word]
    others = ((name, vector) for name, vector in iterate_word_vectors(path) if name != matched_word)
    cosines = ((name, float(_cosines(vector[None], target)[0])) for name, vector in others)
    return heapq.nlargest(count, cosines, key=lambda pair: pair[1])


def as_table(uses: list[Use]) -> str:
    """Returns a line per use: similarity, number of the line in the text, the sentence with the word marked."""
    width, rows = max(len(f"{use.line:,}") for use in uses), []
    for use in uses:
        words = list(use.sentence)
        words[use.position] = f"[{words[use.position]}]"
        rows.append(f"{use.similarity:6.3f}  {use.line:>{width},}  {' '.join(words)}")
    return "\n".join(rows)


def _shown(word: bytes) -> str:
    return word.decode(errors="replace")


def _is_same(word: bytes, other: bytes) -> bool:
    return case.same(_shown(word), _shown(other))


def _query(sentence: str | bytes, word: str | bytes, tokenizer: str) -> tuple[list[bytes], int]:
    """Returns the tokens of a sentence, and which of them is the word."""
    encoded_sentence, encoded_word = tokenizers.to_bytes(sentence, "sentence"), tokenizers.to_bytes(word, "word")
    (tokens,) = tokenizers.split([encoded_sentence], tokenizer)
    asked = tokenizers.as_token(encoded_word, tokenizer)
    positions = [position for position, token in enumerate(tokens) if asked and _is_same(token, asked)]
    if len(positions) != 1:
        has = f"has the word {_shown(encoded_word)!r} {len(positions)} times; give one that has it once"
        problem = has if positions else f"does not contain the word {_shown(encoded_word)!r}"
        raise InputError("sentence", f"it {problem}: {_shown(b' '.join(tokens))!r}")
    return tokens, positions[0]


def _lines(text: str | os.PathLike, tokenizer: str, word: bytes | None, progress: ProgressLine) -> Iterator[Line]:
    """Yields the lines of a text that have tokens, `word` among them, in upper or lower case, if it is given."""
    numbered = enumerate(read_lines(os.fspath(text), tokenizer), 1)
    while group := list(itertools.islice(numbered, _LINES_AT_ONCE)):
        split = tokenizers.split([line.encode() for _, line in group], tokenizer)
        for (number, _), words in zip(group, split, strict=True):
            if progress.due():
                progress.show(f"searching: {with_count(number, 'line')}")
            if words and (word is None or any(_is_same(other, word) for other in words)):
                yield number, words


def _embed(lines: Iterator[Line], layers: Layers, model: Embedder) -> Iterator[Embedded]:
    """Yields lines with their vectors, which are computed for many lines at a time."""
    while group := list(_next_lines(lines)):
        for number, vectors in model.embed([words for _, words in group], layers):
            yield *group[number], vectors


def _next_lines(lines: Iterator[Any]) -> Iterator[Any]:
    """Yields the next lines until they have `MEAN_TOKENS` tokens together."""
    num_tokens = 0
    for line in lines:
        yield line
        num_tokens += len(line[1])
        if num_tokens >= MEAN_TOKENS:
            return


def _cosines(vectors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns the cosine of each row, float32 `(tokens,)`; 0 for a zero vector."""
    # Rounding may slightly exceed 1.
    return np.clip(unit(vectors) @ unit(target), -1, 1)
