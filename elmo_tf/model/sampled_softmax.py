"""The language model's output layer: loss by sampled or full softmax."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.model.kernels.sampled_losses import sampled_losses
from elmo_tf.model.operations import summed
from elmo_tf.model.variables import float32_policy

# Float32 logits of the full softmax in memory at once. On a CPU, those of a piece of 4 MB are still in its cache when
# they are summed; a GPU wants large products. A gradient needs all of them in memory anyway, and in pieces it would
# take three times as long.
_LOGITS_AT_ONCE, _LOGITS_AT_ONCE_GPU = 2**20, 2**25


@keras.saving.register_keras_serializable("elmo_tf")
class SampledSoftmax(keras.layers.Layer):
    """The softmax over the vocabulary, with its own weights, as negative log-likelihoods.

    Args:
        vocab_size: words.
        product_dtype: dtype of the sampled softmax's matrix products; everything else is float32.

    Call arguments:
        inputs: float32 `(num_tokens, dim)`.
        targets: int32 `(num_tokens,)`.
        num_sampled: negatives, distinct words drawn from the log-uniform distribution, which expects words in
            descending order of their counts; 0, or over three quarters of the vocabulary: the full softmax.
        seed: int32 `(2,)`, of the draw; needed when `num_sampled` is not 0.
        training: whether gradients will be computed: that of the full softmax is then faster, and takes more memory.
            Changes no value.

    Returns:
        float32 `(num_tokens,)`, nats.

    Reference:
        Jean et al. 2014, "On Using Very Large Target Vocabulary for Neural Machine Translation"; bilm-tf,
        `bilm/training.py`, `_build_loss`.
    """

    def __init__(self, vocab_size: int, product_dtype: str = "float32", **kwargs: Any):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.product_dtype = product_dtype
        self.supports_jit = False  # the number of draws varies

    def build(self, input_shape):
        dim = input_shape[-1]
        initial = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.kernel = self.add_weight(name="kernel", shape=(self.vocab_size, dim), initializer=initial)
        self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros")

    def start_log_uniform(self) -> None:
        """Sets small initial weights, and as biases the log-uniform distribution that `num_sampled` draws from.

        So the layer starts as a rough unigram model, and rare words, which are seldom updated, do not start with random
        odds.
        """
        words = tf.range(self.vocab_size, dtype=tf.float32)
        self.bias.assign(tf.math.log(_log_uniform_probability(words, self.vocab_size)))
        self.kernel.assign(self.kernel * 0.1)

    def call(self, inputs, targets, num_sampled=0, seed=None, training=False):
        # Drawing most words without repeats takes longer than scoring them all.
        if num_sampled == 0 or 4 * num_sampled > 3 * self.vocab_size:
            return (self._full_training if training else self._full)(inputs, targets)
        return self._sampled(inputs, targets, num_sampled, seed)

    def _sampled(self, inputs, targets, num_sampled, seed):
        kernel, bias = _replica_copy(self.kernel), _replica_copy(self.bias)
        words, target_counts, word_counts = log_uniform_sample(targets, num_sampled, self.vocab_size, seed)
        true_logits = tf.reduce_sum(inputs * tf.gather(kernel, targets), -1) + tf.gather(bias, targets)
        true_logits -= tf.math.log(target_counts)
        offsets = tf.gather(bias, words) - tf.math.log(word_counts)
        same = tf.cast(words, targets.dtype), targets
        return sampled_losses(inputs, true_logits, tf.gather(kernel, words), offsets, *same, self.product_dtype)

    def _full(self, inputs, targets):
        """Computes the losses for all tokens in pieces of words, so that the kernel is read once."""
        # Read once, not in each piece: every read of a variable that got a sparse update copies it.
        kernel, bias = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)
        num_tokens = tf.shape(inputs)[0]
        max_logits = _LOGITS_AT_ONCE_GPU if tf.config.list_physical_devices("GPU") else _LOGITS_AT_ONCE
        words = tf.clip_by_value(max_logits // tf.maximum(1, num_tokens), 1, self.vocab_size)
        columns = tf.range(num_tokens)

        def add(start, true_logits, running_max, total):
            """Adds exponentials relative to the highest logit so far, so that they stay finite."""
            end = tf.minimum(start + words, self.vocab_size)
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
            lambda start, *_: start < self.vocab_size, add, start, parallel_iterations=1
        )
        return running_max + tf.cast(tf.math.log(total), tf.float32) - true_logits

    def _full_training(self, inputs, targets):
        logits = tf.matmul(inputs, self.kernel, transpose_b=True) + self.bias
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)


def _replica_copy(variable: keras.Variable) -> tf.Variable:
    """Returns the replica's copy of a variable: a lookup in a mirrored variable would read and copy all its rows."""
    replica = tf.distribute.get_replica_context()
    copies = replica.strategy.experimental_local_results(variable.value)
    # A worker has only its own replicas' copies, and as many as every other worker.
    return copies[(tf.get_static_value(replica.replica_id_in_sync_group) or 0) % len(copies)]


@float32_policy()
def new_softmax(kernel: np.ndarray, bias: np.ndarray) -> SampledSoftmax:
    """Returns a softmax with weights `(vocab_size, dim)` and `(vocab_size,)`."""
    softmax = SampledSoftmax(len(kernel))
    softmax.build((None, kernel.shape[1]))
    softmax.kernel.assign(kernel)
    softmax.bias.assign(bias)
    return softmax


def log_uniform_sample(
    targets: tf.Tensor, num_sampled: int, vocab_size: int, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Draws distinct words log-uniformly, determined by the seed.

    The distribution is that of `tf.random.log_uniform_candidate_sampler(unique=True)`, whose generator can be neither
    saved nor set, so that training could not be resumed exactly.

    Args:
        targets: integers `(num_tokens,)`, the true words.
        num_sampled: words to draw, below `vocab_size`.
        vocab_size: number of words.
        seed: int32 `(2,)`.

    Returns:
        the words int64 `(num_sampled,)` in the order drawn; and the expected counts, in as many tries as it took, of
        each target, float32 `(num_tokens,)`, and of each word drawn, float32 `(num_sampled,)`.
    """
    log_range = tf.math.log(tf.cast(vocab_size + 1, tf.float64))

    def draw(attempt, tries, _):
        key = tf.random.experimental.stateless_fold_in(seed, attempt)
        uniform = tf.random.stateless_uniform((2 * num_sampled,), key, dtype=tf.float64)
        words = tf.cast(tf.exp(uniform * log_range), tf.int64) - 1
        tries = tf.concat([tries, tf.minimum(words, vocab_size - 1)], 0)
        return attempt + 1, tries, tf.size(tf.unique(tries)[0])

    _, tries, _ = tf.while_loop(
        lambda _attempt, _tries, num_distinct: num_distinct < num_sampled,
        draw,
        (0, tf.zeros((0,), tf.int64), 0),
        shape_invariants=(tf.TensorShape(()), tf.TensorShape((None,)), tf.TensorShape(())),
    )
    distinct, indices = tf.unique(tries)
    sampled = tf.ensure_shape(distinct[:num_sampled], (num_sampled,))
    # As in TensorFlow's sampler, the draws up to the last new word count.
    num_tries = tf.cast(tf.argmax(indices == num_sampled - 1), tf.float32) + 1.0

    def expected_count(words):
        probability = _log_uniform_probability(tf.cast(words, tf.float32), vocab_size)
        return -tf.math.expm1(num_tries * tf.math.log1p(-probability))

    sampled, num_tries = tf.stop_gradient(sampled), tf.stop_gradient(num_tries)
    return sampled, expected_count(targets), expected_count(sampled)


def _log_uniform_probability(words: tf.Tensor, vocab_size: int) -> tf.Tensor:
    """Returns the probability of words by rank, float32: roughly Zipf's law."""
    return tf.math.log1p(1.0 / (words + 1.0)) / tf.math.log(vocab_size + 1.0)
