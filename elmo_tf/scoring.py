"""Log-probabilities of sentences, and words for a gap: `Embedder.score` and `Embedder.fill`."""

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.text.tokenizers import Text, split_texts, to_bytes
from elmo_tf.text.vocabulary import BEGIN_ID, END_ID, SPECIAL_TOKENS, UNKNOWN_ID

if TYPE_CHECKING:
    from elmo_tf.engines import Engine

MASK = "[MASK]"


class Score(NamedTuple):
    """The log-probabilities of a sentence, natural logarithms. A sentence starts from the zero state."""

    tokens: list[str]
    # For each token given those before it, then for the end of the sentence: float32 `(tokens + 1,)`.
    forward_log_probs: np.ndarray
    # For the beginning of the sentence, then for each token given those after it: float32 `(tokens + 1,)`.
    backward_log_probs: np.ndarray
    # Which tokens are not in the vocabulary and scored as `<UNK>`: bool `(tokens,)`.
    unknown: np.ndarray

    @property
    def forward(self) -> float:
        """The forward log-probability of the sentence."""
        return float(self.forward_log_probs.sum(dtype=np.float64))

    @property
    def backward(self) -> float:
        """The backward log-probability of the sentence."""
        return float(self.backward_log_probs.sum(dtype=np.float64))

    @property
    def total(self) -> float:
        """The sum of both directions."""
        return self.forward + self.backward

    @property
    def mean(self) -> float:
        """The mean over both directions and all predictions: `exp(-mean)` is the sentence's perplexity."""
        return self.total / (2 * len(self.forward_log_probs))


class Filled(NamedTuple):
    """A word for a position in a sentence."""

    score: float  # its probability, among the words of the vocabulary
    token: str
    sequence: str  # the sentence with it


def score(engine: "Engine", batch: Sequence[Sequence[bytes]]) -> list[Score]:
    """Returns the scores of sentences, which are computed together; `InputError` if the model has no softmax."""
    vocabulary = engine.softmax().vocabulary
    ids = [[BEGIN_ID, *vocabulary.ids(tokens), END_ID] for tokens in batch]
    return [
        Score(
            [token.decode(errors="replace") for token in tokens],
            forward.copy(),  # so that the batch's memory can be freed
            backward.copy(),
            np.array(numbers[1:-1], np.int32) == UNKNOWN_ID,
        )
        for tokens, numbers, (forward, backward) in zip(batch, ids, engine.token_log_probs(batch, ids), strict=True)
    ]


def masked(text: Text, word: str | None, tokenizer: str) -> tuple[list[bytes], int]:
    """Returns the tokens of a sentence, and which of them is `[MASK]`, or else `word`; see `Embedder.fill`."""
    mask = MASK.encode()
    if word is None and isinstance(text, str | bytes):
        # Counted before the text is split, because a tokenizer may split the mask.
        given = to_bytes(text, "text")
        if (count := given.count(mask)) != 1:
            raise InputError("text", f"the token {MASK} occurs {count} times in the sentence; it must occur once")
        before, after = split_texts(given.split(mask), tokenizer)
        return [*before, mask, *after], len(before)
    wanted = mask if word is None else to_bytes(word, "word")
    (tokens,) = split_texts([text], tokenizer)
    positions = [position for position, token in enumerate(tokens) if token == wanted]
    if len(positions) != 1:
        shown = wanted.decode(errors="replace")
        raise InputError("text", f"the token {shown} occurs {len(positions)} times in the sentence; it must occur once")
    return tokens, positions[0]


def fill(engine: "Engine", tokens: Sequence[bytes], position: int, top: int) -> Iterator[Filled]:
    """Yields the likeliest words for a position in a sentence, the likeliest first.

    The directions are combined as if a word's two sides were independent, given the word: the product of their
    probabilities is divided by the word's own, which both contain. That is estimated by Zipf's law from its rank.
    """
    vocabulary = engine.softmax().vocabulary
    scores = engine.word_log_probs(tokens, position).sum(0, dtype=np.float64)
    scores = (scores - np.log(np.log1p(1 / np.arange(1, len(scores) + 1))))[len(SPECIAL_TOKENS) :]
    scores -= np.logaddexp.reduce(scores)
    words = [token.decode() for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]]
    sentence = [token.decode(errors="replace") for token in tokens]
    for number in heapq.nlargest(top, range(len(words)), scores.__getitem__):
        sentence[position] = words[number]
        yield Filled(float(np.exp(scores[number])), words[number], " ".join(sentence))
