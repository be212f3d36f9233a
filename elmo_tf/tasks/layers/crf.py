"""A linear-chain conditional random field: scores of whole label sequences."""

import keras
import numpy as np
import tensorflow as tf

# Bool: labels that may begin (labels,), follow each other (from, to), end (labels,).
Allowed = tuple[np.ndarray, np.ndarray, np.ndarray]


@keras.saving.register_keras_serializable("elmo_tf")
class CRF(keras.layers.Layer):
    """Scores label sequences: each token's own scores, transitions between labels, first and last label.

    Called, it returns its inputs: it is the last layer of a tagger and holds the weights. The tagger's loss is
    `-log_likelihood`, its prediction `decode`.

    Args:
        num_labels: labels a token can have.
        boundaries: whether the first and the last label have scores of their own.
        initializer: of the transitions.

    Call arguments:
        scores: float32 `(batch, time, num_labels)`, each token's own, with or without a Keras mask.

    Returns:
        the same.

    Reference:
        Lafferty et al. 2001; Lample et al. 2016, section 2.2, for the use above a BiLSTM.
    """

    def __init__(self, num_labels: int, boundaries: bool = True, initializer: str = "zeros", **kwargs):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.boundaries = boundaries
        self.initializer = initializer
        self.supports_masking = True

    def build(self, _):
        square = (self.num_labels, self.num_labels)
        self.transitions = self.add_weight(name="transitions", shape=square, initializer=self.initializer)  # from, to
        ends = {"shape": (self.num_labels,), "initializer": "zeros", "trainable": self.boundaries}
        self.begin = self.add_weight(name="begin", **ends)
        self.end = self.add_weight(name="end", **ends)

    def call(self, scores):
        return scores

    def get_config(self):
        own = ("num_labels", "boundaries", "initializer")
        return super().get_config() | {name: getattr(self, name) for name in own}

    def log_likelihood(self, scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Returns the log probability of each row's labels.

        Args:
            scores: `(batch, time, num_labels)`.
            labels: integers `(batch, time)`; -1 on the right is padding.

        Returns:
            float32 `(batch,)`; 0 for a row of padding alone.
        """
        # Sums over paths are too long for half precision.
        scores = tf.cast(scores, self.transitions.dtype)
        mask = tf.cast(labels >= 0, scores.dtype)
        return self._path_score(scores, labels, mask) - self._log_sum_of_paths(scores, mask)

    def decode(self, scores: np.ndarray, mask: np.ndarray, allowed: Allowed | None = None) -> list[list[int]]:
        """Returns the best label sequence of each row, as long as the row has tokens, by Viterbi's algorithm.

        Args:
            scores: `(batch, time, num_labels)`.
            mask: bool `(batch, time)`, real tokens, with padding on the right only.
            allowed: which labels may begin, follow each other and end; None: all.
        """
        weights = [np.asarray(one) for one in (self.begin, self.transitions, self.end)]
        if allowed is not None:
            weights = [np.where(may, one, -np.inf) for may, one in zip(allowed, weights, strict=True)]
        return viterbi(scores, mask, *weights)

    def _path_score(self, scores: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        labels = tf.maximum(labels, 0)
        tokens = tf.gather(scores, labels, axis=2, batch_dims=2)
        steps = tf.gather_nd(self.transitions, tf.stack([labels[:, :-1], labels[:, 1:]], -1))
        last = tf.maximum(tf.cast(tf.reduce_sum(mask, 1), tf.int32) - 1, 0)
        ends = tf.gather(self.begin, labels[:, 0]) + tf.gather(self.end, tf.gather(labels, last, batch_dims=1))
        inner = tf.reduce_sum(tokens * mask, 1) + tf.reduce_sum(steps * mask[:, 1:], 1)
        return inner + ends * mask[:, 0]

    def _log_sum_of_paths(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the log of the sum over all paths, by the forward algorithm."""
        first = scores[:, 0] + self.begin

        def step(sums, inputs):
            token, real = inputs
            longer = tf.reduce_logsumexp(sums[:, :, None] + self.transitions, 1) + token
            return tf.where(real[:, None] > 0, longer, sums)

        following = (tf.transpose(scores[:, 1:], (1, 0, 2)), tf.transpose(mask[:, 1:]))
        sums = tf.foldl(step, following, initializer=first)
        return tf.reduce_logsumexp(sums + self.end, 1) * mask[:, 0]


def viterbi(
    scores: np.ndarray, mask: np.ndarray, begin: np.ndarray, transitions: np.ndarray, end: np.ndarray
) -> list[list[int]]:
    """Decodes like `CRF.decode`: `begin` and `end` are `(labels,)`, `transitions` `(from, to)`; -inf forbids."""
    to_label, labels = np.ascontiguousarray(transitions.T), np.arange(len(begin))
    paths = []
    for row, length in zip(np.asarray(scores, np.float64), np.sum(mask, 1), strict=True):
        best, before = row[0] + begin, []
        for token in row[1:length]:
            ways = best + to_label
            before.append(ways.argmax(1))
            best = ways[labels, before[-1]] + token
        path = [int((best + end).argmax())]
        for pointers in reversed(before):
            path.append(int(pointers[path[-1]]))
        paths.append(path[::-1] if length else [])
    return paths
