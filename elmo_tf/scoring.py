"""Log-probabilities of sentences, and words for a gap: `Embedder.score` and `Embedder.fill`."""

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elmo_tf.text.vocabulary import BEGIN_ID, END_ID, SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary

if TYPE_CHECKING:
    from elmo_tf.model.packed_bilm import PackedBiLM
    from elmo_tf.model.sampled_softmax import SampledSoftmax

MASK = "[MASK]"


class LanguageModel(NamedTuple):
    """A network with its softmax and the softmax's words."""

    network: "PackedBiLM"
    softmax: "SampledSoftmax"
    vocabulary: Vocabulary


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
    """A word for a place in a sentence."""

    score: float  # its probability, among the words of the vocabulary
    token: str
    sequence: str  # the sentence with it


class Scorer:
    """A language model in use. Several threads may use it at the same time."""

    def __init__(self, model: LanguageModel):
        import tensorflow as tf  # noqa: PLC0415 - as in `embedder.py`

        from elmo_tf.model import log_probs  # noqa: PLC0415
        from elmo_tf.text import in_graph  # noqa: PLC0415

        network, softmax, self.vocabulary = model
        max_chars = network.config.char_cnn.max_chars_per_token
        strings, counts = tf.TensorSpec((None, None), tf.string), tf.TensorSpec((None,), tf.int32)

        @tf.function(input_signature=[strings, counts, tf.TensorSpec((None, None), tf.int32)], autograph=False)
        def token_log_probs(tokens, lengths, token_ids):
            char_ids = in_graph.encode_tokens(tokens, lengths, max_chars)
            return log_probs.token_log_probs(network, softmax, char_ids, token_ids)

        @tf.function(input_signature=[strings, counts, tf.TensorSpec((), tf.int32)], autograph=False)
        def word_log_probs(tokens, lengths, place):
            char_ids = in_graph.encode_tokens(tokens, lengths, max_chars)
            return log_probs.word_log_probs(network, softmax, char_ids, place)

        self._token_log_probs, self._word_log_probs = token_log_probs, word_log_probs

    def score(self, batch: Sequence[Sequence[bytes]]) -> list[Score]:
        """Returns the scores of sentences, which are computed together."""
        lengths = np.array([len(tokens) for tokens in batch], np.int32)
        padded = np.full((len(batch), lengths.max()), b"", object)
        ids = np.zeros((len(batch), lengths.max() + 2), np.int32)
        for row, tokens in enumerate(batch):
            padded[row, : len(tokens)] = tokens
            ids[row, : len(tokens) + 2] = BEGIN_ID, *self.vocabulary.ids(tokens), END_ID
        found = self._token_log_probs(padded, lengths, ids).numpy()
        return [
            Score(
                [token.decode(errors="replace") for token in tokens],
                forward[1 : len(tokens) + 2].copy(),
                backward[: len(tokens) + 1].copy(),
                row[1 : len(tokens) + 1] == UNKNOWN_ID,
            )
            for tokens, row, (forward, backward) in zip(batch, ids, found, strict=True)
        ]

    def fill(self, tokens: Sequence[bytes], place: int, top: int) -> Iterator[Filled]:
        """Yields the likeliest words for a place in a sentence, the likeliest first.

        The directions are combined as if a word's two sides were independent, given the word: the product of their
        probabilities is divided by the word's own, which both contain. That is estimated by Zipf's law from its rank.
        """
        found = self._word_log_probs([tokens], [len(tokens)], place).numpy().sum(0, dtype=np.float64)
        found = (found - np.log(np.log1p(1 / np.arange(1, len(found) + 1))))[len(SPECIAL_TOKENS) :]
        found -= np.logaddexp.reduce(found)
        words = [token.decode() for token in self.vocabulary.tokens[len(SPECIAL_TOKENS) :]]
        sentence = [token.decode(errors="replace") for token in tokens]
        for number in heapq.nlargest(top, range(len(words)), found.__getitem__):
            sentence[place] = words[number]
            yield Filled(float(np.exp(found[number])), words[number], " ".join(sentence))
