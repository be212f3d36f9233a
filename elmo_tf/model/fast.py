"""The network in use: a fast `bilm.PlainBiLM`, whose methods it replaces by the algorithms in `kernels/`."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.model.bilm import LSTMP, PlainBiLM, SampledSoftmax, State, boundary_ids, num_tokens, with_boundaries
from elmo_tf.model.kernels import char_cnn, lstmp_packed, lstmp_training, softmax
from elmo_tf.model.variables import float32_policy


@keras.saving.register_keras_serializable("elmo_tf")
class BiLM(PlainBiLM):
    """A forward and a backward language model over the same character-based token encoder and softmax.

    It is built when constructed and ignores Keras's global dtype policy. LSTM states are arguments and results; the
    network stores none. It computes what `elmo_tf.model.bilm.PlainBiLM` does, which is easier to read.

    Args:
        config: the network's sizes.
        vocab_size: words of the softmax; None: no softmax, which embedding does not need.
        product_dtype: dtype of the matrix products, `"float32"` or `"bfloat16"`; everything else is float32.

    Call arguments:
        char_ids: int32 `(batch, max_length, max_chars_per_token)`, sentences without boundaries, padded with 0.
        boundaries: whether to return `<S>` and `</S>`, which are always fed, as well: two more positions.

    Returns:
        layers: float32 `(batch, num_layers + 1, max_length, 2 * projection_dim)`, 0 at padding. Layer 0 is the token
            vector twice, the others are each biLSTM layer's forward and backward output, from zero states.
        mask: bool `(batch, max_length)`, the real tokens. With `boundaries`, both have `max_length + 2` positions.

    Examples:
        >>> from elmo_tf.text import char_ids
        >>> bilm = elmo_tf.BiLM(elmo_tf.preset("tiny").model)  # random weights
        >>> layers, mask = bilm(char_ids.encode_tokens([b"A", b"bank"])[None])
        >>> layers.shape
        TensorShape([1, 3, 2, 256])

    Reference:
        Peters et al. 2018, section 3; bilm-tf, `bilm/model.py` and `bilm/training.py`.
    """

    def __init__(
        self,
        config: config_lib.ModelConfig,
        vocab_size: int | None = None,
        product_dtype: str = "float32",
        **kwargs: Any,
    ):
        super().__init__(config, vocab_size, **kwargs)
        self.product_dtype = product_dtype

    def get_config(self):
        return super().get_config() | {"product_dtype": self.product_dtype}

    @property
    def hidden_matrices(self) -> list[keras.Variable]:
        """The weight matrices of highway layers, projections and LSTM gates."""
        layers = [*self.char_cnn.highways, self.char_cnn.projection, *self.lstms[0], *self.lstms[1]]
        weights = [weight for layer in layers if layer is not None for weight in layer.trainable_variables]
        return [weight for weight in weights if len(weight.shape) == 2]

    def token_vectors(self, char_ids: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        return char_cnn.token_vectors(self.char_cnn, char_ids, words, self.product_dtype)

    def run_lstm(self, lstm: LSTMP, inputs: tf.Tensor, state: State, training: bool) -> tuple[tf.Tensor, State]:
        if training:  # a faster kernel that needs more memory; outputs are identical
            return lstmp_training.run(lstm, inputs, state, self.product_dtype)
        batch_size, num_steps, dim = tf.unstack(tf.shape(inputs))
        packed = tf.reshape(tf.transpose(inputs, (1, 0, 2)), (num_steps * batch_size, dim))
        packing = lstmp_packed.pack(tf.fill((batch_size,), num_steps))
        packed, final = lstmp_packed.run(lstm, packed, state, packing, self.product_dtype)
        outputs = tf.reshape(packed, (num_steps, batch_size, self.config.lstm.projection_dim))
        return tf.transpose(outputs, (1, 0, 2)), final

    def token_losses(self, inputs: tf.Tensor, targets: tf.Tensor, num_sampled: int, seed: Any, training: bool) -> Any:
        return softmax.token_losses(self.softmax, inputs, targets, num_sampled, seed, training, self.product_dtype)

    def embed(self, char_ids: tf.Tensor, boundaries: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        if boundaries:
            char_ids = with_boundaries(char_ids)
        lengths, max_length = num_tokens(char_ids), tf.shape(char_ids)[1]
        real = tf.where(tf.sequence_mask(lengths, max_length))
        ids = tf.concat([boundary_ids(char_ids.shape[-1]), tf.gather_nd(char_ids, real)], 0)
        encoded = char_cnn.token_vectors(self.char_cnn, ids, None, self.product_dtype)
        shape = tf.stack([tf.size(lengths), max_length, encoded.shape[-1]])
        vectors = tf.scatter_nd(real, encoded[2:], tf.cast(shape, real.dtype))
        return self.embed_vectors(vectors, lengths, None if boundaries else encoded[:2])

    def embed_vectors(
        self, vectors: tf.Tensor, lengths: tf.Tensor, marks: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Like `embed`, given the vectors of the tokens.

        Args:
            vectors: float32 `(batch, max_length, projection_dim)`.
            lengths: int32 `(batch,)`, tokens of each sentence; the rest of its row is padding.
            marks: the vectors of `<S>` and `</S>`, `(2, projection_dim)`, which each direction reads first; None: they
                are among the tokens.
        """
        batch_size, max_length = tf.unstack(tf.shape(vectors)[:2])
        packing = lstmp_packed.pack(lengths)
        positions = packing.rows * max_length + packing.steps
        packed = tf.gather(tf.reshape(vectors, (batch_size * max_length, vectors.shape[-1])), positions)
        # All sentences start alike: each direction reads its mark only once.
        states = self.zero_states(1)
        if marks is not None:
            _, states = self.run_directions(tf.split(marks, 2), states, _single_step)

        def run_packed(lstm, x, state):
            return lstmp_packed.run(lstm, x, state, packing, self.product_dtype)

        (forward, backward), _ = self.run_directions([packed, tf.gather(packed, packing.mirrored)], states, run_packed)
        layers = [tf.concat([packed, packed], -1)]
        for h_forward, h_backward in zip(forward, backward, strict=True):
            layers.append(tf.concat([h_forward, tf.gather(h_backward, packing.mirrored)], -1))
        dense_shape = (batch_size * max_length, len(layers), layers[0].shape[-1])
        dense = tf.scatter_nd(positions[:, None], tf.stack(layers, 1), dense_shape)
        dense = tf.reshape(dense, (batch_size, max_length, *dense_shape[1:]))
        return tf.transpose(dense, (0, 2, 1, 3)), tf.sequence_mask(lengths, max_length)


def _single_step(lstm: LSTMP, x: tf.Tensor, state: State) -> tuple[tf.Tensor, State]:
    """Returns the output and the state after a time step of `x`, `(batch, dim)`."""
    cell, output = lstm.step(x, state)
    return output, (cell, output)


@float32_policy()
def new_softmax(kernel: np.ndarray, bias: np.ndarray) -> SampledSoftmax:
    """Returns a softmax with weights `(vocab_size, dim)` and `(vocab_size,)`."""
    layer = SampledSoftmax(len(kernel))
    layer.build((None, kernel.shape[1]))
    layer.kernel.assign(kernel)
    layer.bias.assign(bias)
    return layer


def token_log_probs(bilm: BiLM, layer: SampledSoftmax, char_ids: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
    """Returns the log-probability of each token, given those before it, and given those after it.

    Every sentence starts from the zero state. A token's values are at its own position.

    Args:
        bilm: the network.
        layer: the softmax.
        char_ids: int32 `(batch, max_length, max_chars_per_token)`, without boundaries, padded with 0.
        token_ids: int32 `(batch, max_length + 2)`, the sentences in the vocabulary: `<S>`, tokens, `</S>`, padding.

    Returns:
        float32 `(batch, 2, max_length + 2)`, natural logarithms, forward first; 0 at padding, for `<S>` forward and for
        `</S>` backward, which are not predicted.
    """
    layers, mask = bilm.embed(char_ids, boundaries=True)
    outputs, inner = tf.split(layers[:, -1], 2, -1), mask[:, 1:]
    # Forward, the output at a position predicts the token after it; backward, the token before it.
    forward = _target_log_probs(layer, outputs[0][:, :-1], token_ids[:, 1:], inner)
    backward = _target_log_probs(layer, outputs[1][:, 1:], token_ids[:, :-1], inner)
    return tf.stack([tf.pad(forward, ((0, 0), (1, 0))), tf.pad(backward, ((0, 0), (0, 1)))], 1)


def _target_log_probs(layer: SampledSoftmax, outputs: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the log-probabilities of targets, float32 shaped like `mask`, 0 where it is False; skips padding."""
    real = tf.where(mask)
    nats = softmax.full_losses(layer, tf.gather_nd(outputs, real), tf.gather_nd(targets, real))
    return tf.scatter_nd(real, -nats, tf.shape(mask, tf.int64))
