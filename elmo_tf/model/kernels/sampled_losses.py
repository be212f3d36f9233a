"""The losses of the sampled softmax, with a hand-written gradient that stores one large array."""

import tensorflow as tf

from elmo_tf.model.kernels.fused import fused
from elmo_tf.model.operations import matmul, summed


@tf.function(autograph=False)
def sampled_losses(
    inputs: tf.Tensor,
    true_logits: tf.Tensor,
    kernel: tf.Tensor,
    offsets: tf.Tensor,
    words: tf.Tensor,
    targets: tf.Tensor,
    dtype: str,
) -> tf.Tensor:
    """Returns the negative log-likelihoods of targets against sampled words, float32 `(num_tokens,)`.

    The scores `(num_sampled, num_tokens)` are by far a step's largest array: only they and their gradient are stored.
    The graph is its own, because TensorFlow keeps that of a custom gradient for good: it must not hold the weights.

    Args:
        inputs: float32 `(num_tokens, dim)`.
        true_logits: float32 `(num_tokens,)`, of the targets.
        kernel: float32 `(num_sampled, dim)`, of the sampled words.
        offsets: float32 `(num_sampled,)`, added to the sampled words' products.
        words: integers `(num_sampled,)`.
        targets: integers `(num_tokens,)`; among the sampled words, a target does not count.
        dtype: of the matrix products.
    """

    @tf.custom_gradient
    def losses(inputs, true_logits, kernel, offsets):
        narrow_inputs, narrow_kernel = tf.cast(inputs, dtype), tf.cast(kernel, dtype)
        scores = tf.matmul(narrow_kernel, narrow_inputs, transpose_b=True)
        normalizers = _normalizers(scores, offsets, words, targets, true_logits)

        def gradient(upstream):
            d_scores = _scores_gradient(scores, offsets, words, targets, normalizers, upstream)
            d_inputs = matmul(d_scores, narrow_kernel, dtype, transpose_a=True)
            d_kernel = matmul(d_scores, narrow_inputs, dtype)
            d_true_logits = (tf.exp(true_logits - normalizers) - 1.0) * upstream
            return d_inputs, d_true_logits, d_kernel, tf.reduce_sum(tf.cast(d_scores, tf.float32), 1)

        return normalizers - true_logits, gradient

    return losses(inputs, true_logits, kernel, offsets)


@fused
def _normalizers(scores, offsets, words, targets, true_logits):
    """Returns the log of the sum of exponentials over the sampled words and the target, `(num_tokens,)`."""
    logits = _logits(scores, offsets, words, targets)
    highest = tf.maximum(tf.reduce_max(logits, 0), true_logits)
    total = summed(tf.exp(logits - highest)) + tf.cast(tf.exp(true_logits - highest), tf.float64)
    return highest + tf.cast(tf.math.log(total), tf.float32)


@fused
def _scores_gradient(scores, offsets, words, targets, normalizers, upstream):
    """Returns the scores' gradient, of their dtype."""
    logits = _logits(scores, offsets, words, targets)
    return tf.cast(tf.exp(logits - normalizers) * upstream, scores.dtype)


def _logits(scores, offsets, words, targets):
    """Returns float32 logits `(num_sampled, num_tokens)`, without accidental hits."""
    logits = tf.cast(scores, tf.float32) + offsets[:, None]
    return tf.where(words[:, None] == targets, tf.float32.min, logits)
