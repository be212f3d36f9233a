"""A biLM's layers with those of `<S>` and `</S>`, which `BiLM` feeds but does not return."""

from collections.abc import Callable

import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.text import char_ids as char_ids_lib


def layers_with_boundaries(
    bilm: BiLM, char_ids: tf.Tensor, encode: Callable[[tf.Tensor], tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what `BiLM` does, two positions longer: `<S>` before each sentence, `</S>` behind its last token.

    Both directions read the whole of `<S> w1 .. wn </S>`, as in bilm-tf and AllenNLP.

    Args:
        bilm: the network.
        char_ids: int32 `(batch, max_length, max_chars_per_token)`, padded with 0.
        encode: token vectors of character ids, such as `bilm.char_cnn`.

    Returns:
        layers: float32 `(batch, num_layers + 1, max_length + 2, 2 * projection_dim)`, 0 at padding.
        mask: bool `(batch, max_length + 2)`; of a sentence without tokens, its two boundaries are real.
    """
    max_chars = char_ids.shape[-1]
    begin, end = (
        char_ids_lib.boundary(mark, max_chars) for mark in (char_ids_lib.BEGIN_SENTENCE, char_ids_lib.END_SENTENCE)
    )
    lengths = 2 + tf.reduce_sum(tf.cast(tf.reduce_any(char_ids != char_ids_lib.PADDING, -1), tf.int32), 1)
    ids = tf.pad(char_ids, ((0, 0), (1, 1), (0, 0)))
    places = tf.range(tf.shape(ids)[1])[None, :, None]
    ids = tf.where(places == 0, begin, tf.where(places == lengths[:, None, None] - 1, end, ids))

    def reverse(values):
        return tf.reverse_sequence(values, lengths, seq_axis=1, batch_axis=0)

    vectors = encode(ids)
    states = bilm.zero_states(tf.shape(ids)[0])
    forward, _ = bilm.run_direction(0, vectors, states[0])
    backward, _ = bilm.run_direction(1, reverse(vectors), states[1])
    layers = [tf.concat([vectors, vectors], -1)]
    layers += [tf.concat([ahead, reverse(back)], -1) for ahead, back in zip(forward, backward, strict=True)]
    mask = tf.sequence_mask(lengths, tf.shape(ids)[1])
    return tf.where(mask[:, None, :, None], tf.stack(layers, 1), 0.0), mask
