"""Log-probabilities of the tokens of a sentence."""

import tensorflow as tf

from elmo_tf.model.encoder import Encoder
from elmo_tf.model.sampled_softmax import SampledSoftmax


def token_log_probs(bilm: Encoder, softmax: SampledSoftmax, char_ids: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
    """Returns the log-probability of each token, given those before it, and given those after it.

    Every sentence starts from the zero state. The values of a token stand at its own position.

    Args:
        char_ids: int32 `(batch, max_length, max_chars_per_token)`, without boundaries, padded with 0.
        token_ids: int32 `(batch, max_length + 2)`, the sentences in the vocabulary: `<S>`, tokens, `</S>`, padding.

    Returns:
        float32 `(batch, 2, max_length + 2)`, natural logarithms, forward first; 0 at padding, for `<S>` forward and for
        `</S>` backward, which are not predicted.
    """
    layers, mask = bilm.embed(char_ids, boundaries=True)
    outputs, inner = tf.split(layers[:, -1], 2, -1), mask[:, 1:]
    # Forward, the output at a position predicts the token after it; backward, the token before it.
    forward = _target_log_probs(softmax, outputs[0][:, :-1], token_ids[:, 1:], inner)
    backward = _target_log_probs(softmax, outputs[1][:, 1:], token_ids[:, :-1], inner)
    return tf.stack([tf.pad(forward, ((0, 0), (1, 0))), tf.pad(backward, ((0, 0), (0, 1)))], 1)


def _target_log_probs(softmax: SampledSoftmax, outputs: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the log-probabilities of targets, float32 shaped like `mask`, 0 where it is False; skips padding."""
    real = tf.where(mask)
    nats = softmax(tf.gather_nd(outputs, real), tf.gather_nd(targets, real))
    return tf.scatter_nd(real, -nats, tf.shape(mask, tf.int64))
