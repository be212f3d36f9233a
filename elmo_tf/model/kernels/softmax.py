"""The softmax's losses: replaces calls of `bilm.SampledSoftmax`.

Gains in memory. Against all words, without a gradient: the logits of a large vocabulary are computed in pieces. Against
a sample: of the scores, the largest array of a training step, only the array and its gradient are stored; TensorFlow's
gradient also keeps the masked logits and their exponentials.
"""

import tensorflow as tf

from elmo_tf.model.bilm import SampledSoftmax, log_uniform_sample
from elmo_tf.model.kernels.fused import fused
from elmo_tf.model.operations import matmul, summed

# Float32 logits of the full softmax in memory at once. On a CPU, those of a piece of 4 MB are still in its cache when
# they are summed; a GPU wants large products. A gradient needs all of them in memory anyway, and in pieces it would
# take three times as long.
_LOGITS_AT_ONCE, _LOGITS_AT_ONCE_GPU = 2**20, 2**25


def token_losses(
    softmax: SampledSoftmax,
    inputs: tf.Tensor,
    targets: tf.Tensor,
    num_sampled: int,
    seed: tf.Tensor | None,
    training: bool,
    dtype: str,
) -> tf.Tensor:
    """Returns the negative log-likelihoods of targets, float32 `(num_tokens,)`.

    Args:
        softmax: the layer whose weights are used.
        inputs, targets, num_sampled, seed: as for calling it.
        training: whether gradients will be computed: then all logits of the full softmax are kept.
        dtype: of the matrix products against a sample.
    """
    if not softmax.is_full(num_sampled):
        return _sampled(softmax, inputs, targets, num_sampled, seed, dtype)
    return softmax(inputs, targets) if training else full_losses(softmax, inputs, targets)


def full_losses(softmax: SampledSoftmax, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns the losses of all tokens against all words, in pieces of words, so that the kernel is read once."""
    # Read once, not in each piece: every read of a variable that got a sparse update copies it.
    kernel, bias = tf.convert_to_tensor(softmax.kernel), tf.convert_to_tensor(softmax.bias)
    num_tokens = tf.shape(inputs)[0]
    max_logits = _LOGITS_AT_ONCE_GPU if tf.config.list_physical_devices("GPU") else _LOGITS_AT_ONCE
    words = tf.clip_by_value(max_logits // tf.maximum(1, num_tokens), 1, softmax.vocab_size)
    columns = tf.range(num_tokens)

    def add(start, true_logits, running_max, total):
        """Adds exponentials relative to the highest logit so far, so that they stay finite."""
        end = tf.minimum(start + words, softmax.vocab_size)
        logits = tf.matmul(kernel[start:end], inputs, transpose_b=True) + bias[start:end, None]
        # A separate product for the targets would round differently: the loss could be below 0.
        rows = tf.cast(targets, tf.int32) - start
        target_logits = tf.gather_nd(logits, tf.stack([tf.clip_by_value(rows, 0, end - start - 1), columns], 1))
        true_logits = tf.where((rows >= 0) & (rows < end - start), target_logits, true_logits)
        new_max = tf.maximum(running_max, tf.reduce_max(logits, 0))
        total *= tf.cast(tf.exp(running_max - new_max), tf.float64)
        return end, true_logits, new_max, total + summed(tf.exp(logits - new_max))

    zeros = tf.zeros_like(inputs[:, 0])
    start = 0, zeros, zeros + tf.float32.min, tf.cast(zeros, tf.float64)
    # One piece at a time: a piece's products already take all cores.
    _, true_logits, running_max, total = tf.while_loop(
        lambda start, *_: start < softmax.vocab_size, add, start, parallel_iterations=1
    )
    return running_max + tf.cast(tf.math.log(total), tf.float32) - true_logits


def _sampled(softmax, inputs, targets, num_sampled, seed, dtype):
    kernel, bias = _replica_copy(softmax.kernel), _replica_copy(softmax.bias)
    words, target_counts, word_counts = log_uniform_sample(targets, num_sampled, softmax.vocab_size, seed)
    true_logits = tf.reduce_sum(inputs * tf.gather(kernel, targets), -1) + tf.gather(bias, targets)
    true_logits -= tf.math.log(target_counts)
    offsets = tf.gather(bias, words) - tf.math.log(word_counts)
    same = tf.cast(words, targets.dtype), targets
    return sampled_losses(inputs, true_logits, tf.gather(kernel, words), offsets, *same, dtype)


def _replica_copy(variable):
    """Returns the replica's copy of a variable: a lookup in a mirrored variable would read and copy all its rows."""
    replica = tf.distribute.get_replica_context()
    copies = replica.strategy.experimental_local_results(variable.value)
    # A worker has only its own replicas' copies; all workers have the same number.
    return copies[(tf.get_static_value(replica.replica_id_in_sync_group) or 0) % len(copies)]


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
    The graph is separate, because TensorFlow never frees a custom gradient's graph: it must not hold the weights.

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
