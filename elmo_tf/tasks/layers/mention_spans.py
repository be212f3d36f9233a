"""Candidate mentions, spans of a text: their vectors and scores, and the selection of the best."""

import functools
import itertools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.model.operations import real_positions
from elmo_tf.model.variables import Tracked
from elmo_tf.tasks.layers.feedforward import ScoreWeights, add_score_weights, dropout, next_seeds, score


@keras.saving.register_keras_serializable("elmo_tf")
class MentionSpans(Tracked, keras.layers.Layer):
    """Scores all spans inside sentences, up to a width, and selects the best that do not cross each other.

    A span's vector is `[x_first; x_last; width; head]`: the LSTM's outputs at its first and last word, a learned vector
    of its width, and the mean of its words' vectors, weighted by a softmax of scores of the LSTM's outputs. Only
    selected spans get a vector: the first layer of the scoring network is a sum of products that are computed once per
    word.

    Args:
        max_width: words of the longest span.
        ratio: selected spans for each word of a document.
        feature_dim: of a width's vector.
        units: of the two hidden layers of the scoring network.
        dropout_rate: of the hidden layers and the widths' vectors.

    Call arguments:
        inputs: a dict; rows are sentences, grouped by document.
            `hidden`: float32 `(sentences, time, hidden_dim)`, the LSTM's outputs, with or without a Keras mask.
            `vectors`: float32 `(sentences, time, dim)`, the words' vectors.
            `documents`: int32 `(sentences,)`, ascending: the document of each sentence.

    Returns:
        a dict, in the order of the text.
            `vectors`: float32 `(spans, 2 * hidden_dim + feature_dim + dim)`.
            `scores`: float32 `(spans,)`.
            `spans`: int32 `(spans, 2)`, first word and word after the last, counted through all sentences.
            `positions`: int32 `(spans, 2)`, the first word's sentence and its position there.

    Reference:
        Lee et al. 2017, sections 4 and 5.
    """

    collections = ("_score_weights",)

    def __init__(
        self,
        max_width: int,
        ratio: float,
        feature_dim: int = 20,
        units: int = 150,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.max_width = max_width
        self.ratio = ratio
        self.feature_dim = feature_dim
        self.units = units
        self.dropout_rate = dropout_rate
        self.supports_jit = False  # spans are chosen in Python
        self._seeds = keras.random.SeedGenerator()

    def build(self, input_shape):
        hidden_dim, dim = input_shape["hidden"][-1], input_shape["vectors"][-1]
        self.widths = self.add_weight(name="widths", shape=(self.max_width, self.feature_dim))
        # A bias would be the same for all words of a span and have no effect.
        self.head_kernel = self.add_weight(name="head_kernel", shape=(hidden_dim, 1))
        self._parts = (hidden_dim, hidden_dim, self.feature_dim, dim)
        self._score_weights = add_score_weights(self, sum(self._parts), self.units)

    def call(self, inputs, mask=None, training=False):
        hidden, vectors, positions = self._words(inputs, mask)
        documents = tf.gather(inputs["documents"], positions[:, 0])
        # For the span of each width that begins with each word: its last word, and whether it exists.
        last = tf.range(tf.shape(hidden)[0])[:, None] + tf.range(self.max_width)
        inside = last < tf.shape(hidden)[0]
        last = tf.where(inside, last, 0)
        inside &= tf.gather(positions[:, 0], last) == positions[:, :1]
        heads = self._head_weights(hidden, last, inside)
        seeds = next_seeds(self._seeds, self.dropout_rate, training)
        widths = tf.tile(self.widths[None], (tf.shape(hidden)[0], 1, 1))
        widths = dropout(widths, self.dropout_rate, seeds[0])
        # The scores of all spans, float32 (words, widths).
        weights = ScoreWeights(*self._score_weights)
        of_first, of_last, of_width, of_head = tf.split(tf.convert_to_tensor(weights.first), self._parts)
        head_products = tf.gather(tf.matmul(vectors, of_head), last)
        hidden_layer = tf.einsum("wkt,wtu->wku", heads, head_products) + tf.tensordot(widths, of_width, 1)
        hidden_layer += tf.matmul(hidden, of_first)[:, None] + tf.gather(tf.matmul(hidden, of_last), last)
        scores = score(hidden_layer, weights, self.dropout_rate, seeds[1])
        choose = functools.partial(best_spans, ratio=self.ratio)
        spans = [tf.where(inside, scores, -np.inf), documents]
        chosen = tf.numpy_function(choose, spans, tf.int32, stateful=False)
        chosen = tf.ensure_shape(chosen, (None,))
        first, width = chosen // self.max_width, chosen % self.max_width
        first_and_width = tf.stack([first, width], 1)
        head = tf.einsum("nt,ntd->nd", tf.gather_nd(heads, first_and_width), tf.gather(vectors, tf.gather(last, first)))
        ends = tf.gather(hidden, first), tf.gather(hidden, first + width)
        return {
            "vectors": tf.concat([*ends, tf.gather_nd(widths, first_and_width), head], 1),
            "scores": tf.gather_nd(scores, first_and_width),
            "spans": tf.stack([first, first + width + 1], 1),
            "positions": tf.gather(positions, first),
        }

    def compute_mask(self, inputs, mask=None):
        return dict.fromkeys(("vectors", "scores", "spans", "positions"))

    def compute_output_spec(self, inputs, mask=None, training=False):
        dim = 2 * inputs["hidden"].shape[-1] + self.feature_dim + inputs["vectors"].shape[-1]
        return {
            "vectors": keras.KerasTensor((None, dim), self.compute_dtype),
            "scores": keras.KerasTensor((None,), self.compute_dtype),
            "spans": keras.KerasTensor((None, 2), "int32"),
            "positions": keras.KerasTensor((None, 2), "int32"),
        }

    def _words(self, inputs: dict, mask: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns both vectors of the real words, `(words, dim)`, and their positions, int32 `(words, 2)`."""
        hidden, vectors = inputs["hidden"], inputs["vectors"]
        real = mask["hidden"] if isinstance(mask, dict) else None
        positions = tf.cast(tf.where(real_positions(hidden, real)), tf.int32)
        return tf.gather_nd(hidden, positions), tf.gather_nd(vectors, positions), positions

    def _head_weights(self, hidden: tf.Tensor, last: tf.Tensor, inside: tf.Tensor) -> tf.Tensor:
        """Returns the weights of the words in each span's head, float32 `(words, widths, max_width)`."""
        scores = tf.gather(tf.matmul(hidden, self.head_kernel)[:, 0], last)
        within = tf.range(self.max_width)[None, :] <= tf.range(self.max_width)[:, None]
        return tf.nn.softmax(tf.where(within & inside[:, None], scores[:, None], scores.dtype.min))


def best_spans(scores: np.ndarray, documents: np.ndarray, ratio: float) -> np.ndarray:
    """Returns the selected spans as `word * max_width + width - 1`, int32 `(spans,)`, in the order of the text.

    Spans are selected by descending score until a document has `floor(ratio * words)`, at least 1. A span that crosses
    a selected span is skipped: they overlap, but neither is inside the other. `scores`, float `(words, max_width)`, are
    those of the span of each width from each word on, -inf if there is no such span; `documents`, integers `(words,)`,
    ascend.

    Reference:
        Lee et al. 2017, section 5; `extract_spans` of its code.
    """
    max_width = scores.shape[1]
    borders = np.flatnonzero(np.diff(documents, prepend=-1, append=-1))
    spans = []
    for begin, end in itertools.pairwise(borders):
        max_spans = max(1, int(ratio * (end - begin)))
        spans.append(_best_of_document(scores[begin:end], max_spans) + begin * max_width)
    return np.concatenate(spans or [np.zeros(0)]).astype(np.int32)


def _best_of_document(scores: np.ndarray, max_spans: int) -> np.ndarray:
    words, max_width = scores.shape
    flat = scores.ravel()
    order = np.argsort(-flat, kind="stable")[: np.count_nonzero(flat > -np.inf)]
    # For each word: the farthest end of a selected span that starts at it, and the earliest start of one that ends at
    # it.
    last_from, first_to = [-1] * words, list(range(words))
    spans: list[int] = []
    for span in order.tolist():
        first, width = divmod(span, max_width)
        last = first + width
        if any(last_from[word] > last for word in range(first + 1, last + 1)):
            continue
        if any(first_to[word] < first for word in range(first, last)):
            continue
        last_from[first], first_to[last] = max(last_from[first], last), min(first_to[last], first)
        spans.append(span)
        if len(spans) == max_spans:
            break
    return np.sort(np.array(spans, np.int64))
