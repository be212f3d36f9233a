"""Whole sentences through the biLM, real tokens only: the arithmetic behind `BiLM.call` and the SavedModel."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.layers import lstmp_packed
from elmo_tf.layers.packing import Packing, pack
from elmo_tf.text import char_ids as char_ids_lib

# For each layer of a direction the cell (rows, units) and the recurrent state (rows, projection_dim), float32.
DirectionState = tuple[tuple[tf.Tensor, tf.Tensor], ...]
# Both directions' states, forward first.
States = tuple[DirectionState, ...]


class Stack(NamedTuple):
    """One direction's LSTMs."""

    kernels: tuple[lstmp_packed.Kernels, ...]
    clips: lstmp_packed.Clips
    use_skip_connections: bool


def embed(
    encode: Callable[[tf.Tensor], tf.Tensor],
    stacks: tuple[Stack, ...],
    char_ids: tf.Tensor,
    initial_states: States,
) -> tuple[tf.Tensor, tf.Tensor, States]:
    """Runs both directions over sentences; no padded position takes part in a product.

    Args:
        encode: the token encoder, int32 `(n, max_chars_per_token)` -> float32 `(n, projection_dim)`.
        stacks: forward, backward.
        char_ids: int32 `(batch, max_length, max_chars_per_token)`, sentences without boundaries, padded with 0.
        initial_states: before `<S>`, in the backward direction before `</S>`: a row for each sentence, or one for all.

    Returns:
        layers: float32 `(batch, num_layers + 1, max_length, 2 * projection_dim)`, 0 at padding.
        mask: bool `(batch, max_length)`.
        final_states: `(batch, ...)`, after a sentence's last token, in the backward direction after its first; a
            sentence without tokens leaves them as they were.
    """
    batch_size, max_length, max_chars = tf.unstack(tf.shape(char_ids))
    lengths = tf.reduce_sum(tf.cast(tf.reduce_any(char_ids != char_ids_lib.PADDING, -1), tf.int32), 1)
    packing = pack(lengths)
    positions = packing.rows * max_length + packing.steps
    words = tf.gather(tf.reshape(char_ids, (batch_size * max_length, max_chars)), positions)
    marks = (char_ids_lib.BEGIN_SENTENCE, char_ids_lib.END_SENTENCE)
    marks = np.stack([char_ids_lib.boundary(mark, char_ids.shape[-1]) for mark in marks])
    vectors = encode(tf.concat([marks, words], 0))
    begin, end, words = vectors[:1], vectors[1:2], vectors[2:]

    mirrored = packing.mirrored
    forward, ahead = _run(stacks[0], begin, words, packing, initial_states[0])
    backward, back = _run(stacks[1], end, tf.gather(words, mirrored), packing, initial_states[1])
    layers = [tf.concat([words, words], -1)]
    layers += [tf.concat([one, tf.gather(other, mirrored)], -1) for one, other in zip(forward, backward, strict=True)]
    dense = tf.scatter_nd(
        positions[:, None], tf.stack(layers, 1), (batch_size * max_length, len(layers), layers[0].shape[-1])
    )
    dense = tf.reshape(dense, (batch_size, max_length, len(layers), layers[0].shape[-1]))
    return tf.transpose(dense, (0, 2, 1, 3)), tf.sequence_mask(lengths, max_length), (ahead, back)


def _run(
    stack: Stack, mark: tf.Tensor, values: tf.Tensor, packing: Packing, initial_state: DirectionState
) -> tuple[list[tf.Tensor], DirectionState]:
    """Runs one direction.

    Args:
        stack: its LSTMs.
        mark: float32 `(1, projection_dim)`, the vector of the boundary before its first token.
        values: float32 `(N, projection_dim)`, packed token vectors in the order of this direction.
        packing: where the sentences are.
        initial_state: before the boundary, of each sentence or of all.

    Returns:
        each layer's output, packed, and the final states.
    """
    mark = tf.broadcast_to(mark, (tf.shape(initial_state[0][0])[0], mark.shape[1]))
    outputs, final_states = [], []
    for number, (kernels, initial) in enumerate(zip(stack.kernels, initial_state, strict=True)):
        skips = number > 0 and stack.use_skip_connections
        # The boundary is read once if all sentences start from one state.
        started = lstmp_packed.advance(kernels, stack.clips, mark, tuple(map(tf.transpose, initial)))
        mark = tf.transpose(started[1]) + mark if skips else tf.transpose(started[1])
        started = tuple(_by_rank(part, packing, axis=1) for part in started)
        found, final = lstmp_packed.run(kernels, stack.clips, values, packing, started)
        values = found + values if skips else found
        outputs.append(values)
        final_states.append(_by_row(final, initial, packing))
    return outputs, tuple(final_states)


def _by_rank(state: tf.Tensor, packing: Packing, axis: int) -> tf.Tensor:
    """Returns a state's rows, or its one row for all, in the order of ranks."""
    return tf.gather(state, tf.minimum(packing.order, tf.shape(state)[axis] - 1), axis=axis)


def _by_row(final: lstmp_packed.State, initial: tuple[tf.Tensor, tf.Tensor], packing: Packing):
    """Returns final states in the order of the batch; without tokens, the state before the boundary."""
    has_tokens = (packing.lengths > 0)[:, None]
    pairs = zip(final, initial, strict=True)
    return tuple(
        tf.gather(tf.where(has_tokens, tf.transpose(after), _by_rank(before, packing, axis=0)), packing.places)
        for after, before in pairs
    )
