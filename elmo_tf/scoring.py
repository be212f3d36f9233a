"""Log-probabilities of sentences, surprisal of words, and words for a gap: `Embedder.score`, `surprisal`, `fill`."""

import bisect
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.text import penn, tokenizers
from elmo_tf.text.tokenizers import Text, split_texts, to_bytes
from elmo_tf.text.vocabulary import BEGIN_ID, END_ID, SPECIAL_TOKENS, UNKNOWN_ID

if TYPE_CHECKING:
    from elmo_tf.engines import Engine
    from elmo_tf.engines.numpy import NumpyEngine

MASK = "[MASK]"
# By how many nats rounding may change a log-probability: a logit and the logarithm of a sum, of up to 32 in size, are
# rounded a few times in float32.
ROUNDING = 1e-5
Context = Literal["sentence", "passage"]


class Score(NamedTuple):
    """The log-probabilities of a sentence, natural logarithms. A sentence starts from the zero state."""

    tokens: list[str]  # as the tokenizer split it
    # `log p(token | its left context)` of each token, then `log p(</S> | all tokens)`: float32 `(tokens + 1,)`.
    forward_log_probs: np.ndarray
    # `log p(<S> | all tokens)`, then `log p(token | its right context)` of each token: float32 `(tokens + 1,)`.
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


class Surprisal(NamedTuple):
    """The surprisal of a word in bits. A word of several tokens, such as `barked.`, has the sum of their bits.

    A word without tokens, such as a control character, has NaN in place of bits and rank, and is not known.
    """

    passage: int  # its number in the text, from 1
    sentence: int  # its number in the passage, from 1
    word: str  # as written, between white space
    forward: float  # given what precedes it
    backward: float  # given what follows it in the sentence
    both: float  # the sum of forward and backward
    rank: int | float  # forward, 1 for the likeliest word of the vocabulary; of the first token with a letter or digit
    known: bool  # whether all of its tokens are in the vocabulary; others have the bits and the rank of `<UNK>`


class Filled(NamedTuple):
    """A word for a position in a sentence."""

    score: float  # its probability, among the words of the vocabulary
    token: str  # the word
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
    if word is not None and any(
        mask in to_bytes(part, "text") for part in ([text] if isinstance(text, str | bytes) else text)
    ):
        raise InputError("word", f"the sentence has {MASK}; give either {MASK} or a word to find substitutes for")
    if word is None and isinstance(text, str | bytes):
        # Counted before the text is split, because a tokenizer may split the mask.
        masked_text = to_bytes(text, "text")
        if (count := masked_text.count(mask)) != 1:
            raise InputError("text", f"the token {MASK} occurs {count} times in the sentence; it must occur once")
        before, after = split_texts(masked_text.split(mask), tokenizer)
        return [*before, mask, *after], len(before)
    target = mask if word is None else to_bytes(word, "word")
    (tokens,) = split_texts([text], tokenizer)
    positions = [position for position, token in enumerate(tokens) if token == target]
    if len(positions) != 1:
        shown, among = target.decode(errors="replace"), [token.decode(errors="replace") for token in tokens]
        raise InputError("text", f"the token {shown} must occur once among {among}; it occurs {len(positions)} times")
    return tokens, positions[0]


class Sentence(NamedTuple):
    """A line of a text."""

    passage: int
    number: int  # in the passage
    words: list[bytes]
    tokens: list[bytes]
    word_of: list[int]  # the word that each token is a part of


def check_context(context: Context) -> None:
    """Raises `InputError` unless `context` is one of `Context`."""
    if context not in get_args(Context):
        raise InputError("context", f"one of {', '.join(get_args(Context))}", repr(context))


def numbered(lines: Iterable[Sequence[bytes]], tokenizer: str) -> Iterator[Sentence]:
    """Yields the sentences of a text, given the words of each line; lines without words separate passages."""
    passage, number = 1, 0
    for line in lines:
        if line:
            number += 1
            yield Sentence(passage, number, list(line), *_tokens(line, tokenizer))
        elif number:
            passage, number = passage + 1, 0


def _tokens(words: Sequence[bytes], tokenizer: str) -> tuple[list[bytes], list[int]]:
    """Returns the tokens of words between which there is white space, and the word that each is a part of."""
    spaced = [b" " + word for word in words]  # a byte order mark is white space at the beginning of a text only
    if tokenizer == "penn":  # its tokens, unlike others', depend on neighboring words
        decoded = [word.decode(errors="surrogateescape") for word in spaced]
        tokens = penn.split_with_offsets("".join(decoded))
        ends = list(itertools.accumulate(map(len, decoded)))
        encoded = [token.text.encode(errors="surrogateescape") for token in tokens]
        return encoded, [bisect.bisect_right(ends, token.start) for token in tokens]
    split = tokenizers.split(spaced, tokenizer)
    return list(itertools.chain(*split)), [number for number, tokens in enumerate(split) for _ in tokens]


def surprisal(engine: "NumpyEngine", groups: Sequence[Sequence[Sentence]]) -> list[list[Surprisal]]:
    """Returns the words of groups of sentences, through which states are carried; groups are computed together."""
    vocabulary = engine.softmax().vocabulary
    passages = [[sentence.tokens for sentence in group] for group in groups]
    ids = [[BEGIN_ID, *vocabulary.ids(tokens), END_ID] for passage in passages for tokens in passage]
    values = zip(ids, engine.predictions(passages, ids), strict=True)
    return [[word for sentence in group for word in _words(sentence, *next(values))] for group in groups]


def renumbered(words: Iterable[Surprisal], group: Sequence[Sentence]) -> list[Surprisal]:
    """Returns the words of an equal group of sentences, with the numbers of this group's passage and sentences."""
    sentences = (sentence for sentence in group for _ in sentence.words)
    pairs = zip(words, sentences, strict=True)
    return [word._replace(passage=sentence.passage, sentence=sentence.number) for word, sentence in pairs]


def _words(sentence: Sentence, ids: list[int], predictions: np.ndarray) -> Iterator[Surprisal]:
    bits, ranks = predictions[0] / -math.log(2), predictions[1, 0].astype(int).tolist()
    word_of, size = np.array(sentence.word_of, np.intp), len(sentence.words)
    forward, backward = (np.bincount(word_of, part, size).tolist() for part in (bits[0, :-1], bits[1, 1:]))
    # From the last token to the first, so that the first one counts.
    tokens = list(zip(sentence.word_of, sentence.tokens, ranks, ids[1:], strict=False))[::-1]
    rank_of = {word: rank for word, _, rank, _ in tokens}
    rank_of |= {word: rank for word, token, rank, _ in tokens if any(map(str.isalnum, token.decode(errors="replace")))}
    known = rank_of.keys() - {word for word, _, _, number in tokens if number == UNKNOWN_ID}
    for n, word in enumerate(sentence.words):
        if n in rank_of:
            values = forward[n], backward[n], forward[n] + backward[n], rank_of[n], n in known
        else:
            values = math.nan, math.nan, math.nan, math.nan, False
        yield Surprisal(sentence.passage, sentence.number, word.decode(errors="replace"), *values)


def fill(engine: "NumpyEngine", tokens: Sequence[bytes], position: int, top: int) -> Iterator[Filled]:
    """Yields the likeliest words for a position in a sentence, the likeliest first."""
    vocabulary = engine.softmax().vocabulary
    scores = from_both_sides(engine.word_log_probs(tokens, position))[len(SPECIAL_TOKENS) :]
    scores -= np.logaddexp.reduce(scores)
    words = [token.decode() for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]]
    sentence = [token.decode(errors="replace") for token in tokens]
    for number in heapq.nlargest(top, range(len(words)), scores.__getitem__):
        sentence[position] = words[number]
        yield Filled(float(np.exp(scores[number])), words[number], " ".join(sentence))


def from_both_sides(log_probs: np.ndarray) -> np.ndarray:
    """Returns the logits of each word given both sides of its position, float64 `(..., vocab_size)`.

    As if the two sides were independent, given the word: the product of the directions' probabilities is divided by
    the word's own, which both contain. That is estimated by Zipf's law from its rank.

    Args:
        log_probs: of each direction, `(2, ..., vocab_size)`.
    """
    ranks = np.arange(1, log_probs.shape[-1] + 1)
    return log_probs.sum(0, dtype=np.float64) - np.log(np.log1p(1 / ranks))
