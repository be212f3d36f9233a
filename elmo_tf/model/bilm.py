"""The bidirectional language model: the network that training, evaluation and export share."""

import functools
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.model.encoder import Encoder, States, new_char_cnn, run_directions
from elmo_tf.model.lstmp import LSTMP
from elmo_tf.model.sampled_softmax import SampledSoftmax
from elmo_tf.model.variables import DIRECTIONS, float32_policy, relative_names
from elmo_tf.records.windows import Window


class WindowRun(NamedTuple):
    """The LSTMs' outputs for a window of text; each direction's values are in the order in which it reads."""

    token_vectors: list[tf.Tensor]  # of each direction, float32 (batch, time, projection_dim)
    layers: list[list[tf.Tensor]]  # each direction's LSTM outputs by layer, float32 (batch, time, projection_dim)
    states: States  # after the window


@keras.saving.register_keras_serializable("elmo_tf")
class BiLM(Encoder, keras.Model):
    """A forward and a backward language model over the same character-based token encoder and softmax.

    It is built when constructed and ignores Keras's global dtype policy. LSTM states are arguments and results; the
    network stores none.

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
        with float32_policy():
            super().__init__(**kwargs)
            self.config = config
            self.vocab_size = vocab_size
            self.product_dtype = product_dtype
            self.supports_jit = False  # as `CharCNN`
            lstm = config.lstm
            self.char_cnn = new_char_cnn(config, product_dtype)
            self.lstms = [[self._lstm(f"{direction}_{n}") for n in range(lstm.num_layers)] for direction in DIRECTIONS]
            self.softmax: SampledSoftmax = None
            if vocab_size is not None:
                self.softmax = SampledSoftmax(vocab_size, product_dtype, name="softmax")
                self.softmax.build((None, lstm.projection_dim))
        self.built = True

    @classmethod
    def from_weights(cls, config: config_lib.ModelConfig, weights: Mapping[str, np.ndarray]) -> Self:
        """Returns the network, without a softmax, with weights by the names of `variables.relative_names`."""
        bilm = cls(config)
        for name, variable in relative_names(bilm).items():
            variable.assign(weights[name])
        return bilm

    def _lstm(self, name: str) -> LSTMP:
        lstm = self.config.lstm
        layer = LSTMP(lstm.units, lstm.projection_dim, lstm.cell_clip, lstm.proj_clip, self.product_dtype, name=name)
        layer.build((None, None, lstm.projection_dim))
        return layer

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"vocab_size": self.vocab_size}

    @property
    def hidden_matrices(self) -> list[keras.Variable]:
        """The weight matrices of highway layers, projections and LSTM gates."""
        projection = [self.char_cnn.projection] if self.char_cnn.projection else []
        layers = [*self.char_cnn.highways, *projection, *itertools.chain(*self.lstms)]
        return [weight for layer in layers for weight in layer.trainable_variables if len(weight.shape) == 2]

    def run_window(
        self,
        window: Window,
        initial_states: States,
        dropout_rate: float = 0.0,
        seed: tf.Tensor | None = None,
        training: bool = False,
    ) -> WindowRun:
        """Runs the network, up to the softmax, over a window of text.

        Args:
            window: tensors or arrays of a `Window`.
            initial_states: the LSTM states before the window.
            dropout_rate: of each layer's input, including the input that a skip connection adds.
            seed: int32 `(2,)`, of the dropout.
            training: whether gradients will be computed; changes no value.
        """
        words = tf.concat([window.forward_words, window.backward_words], 0)
        vectors = tf.split(self.char_cnn(window.char_ids, words), 2)
        layers = [[functools.partial(layer.__call__, training=training) for layer in stack] for stack in self.lstms]

        def dropout(values, direction, number):
            return _dropout(values, dropout_rate, _fold_in(seed, direction), number)

        outputs, states = run_directions(
            layers, vectors, initial_states, self.config.lstm.use_skip_connections, dropout
        )
        return WindowRun(vectors, outputs, states)

    def language_model_losses(
        self,
        window: Window,
        initial_states: States,
        num_sampled: int = 0,
        dropout_rate: float = 0.0,
        seed: tf.Tensor | None = None,
        training: bool = False,
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], States]:
        """Returns each direction's negative log-likelihood per token, and the final states.

        Args:
            window, initial_states, training: as for `run_window`.
            num_sampled: negatives of the sampled softmax; 0: the full softmax.
            dropout_rate: of every LSTM layer's input and of the softmax's.
            seed: int32 `(2,)`, of dropout and negatives; needed for either.

        Returns:
            forward and backward losses, float32 `(batch, time)` in nats, 0 where `window.mask` is False; final states.
        """
        run = self.run_window(window, initial_states, dropout_rate, seed, training)
        losses = []
        for direction, targets in enumerate((window.forward_targets, window.backward_targets)):
            outputs, key = run.layers[direction], _fold_in(seed, direction)
            flat = tf.reshape(outputs[-1], (-1, outputs[-1].shape[-1]))
            flat = _dropout(flat, dropout_rate, key, len(outputs))
            flat_targets, drawn = tf.reshape(targets, (-1,)), _fold_in(key, len(outputs) + 1)
            nats = self.softmax(flat, flat_targets, num_sampled=num_sampled, seed=drawn, training=training)
            losses.append(tf.where(window.mask, tf.reshape(nats, tf.shape(targets)), 0.0))
        return tuple(losses), run.states


def _fold_in(seed: tf.Tensor | None, number: int) -> tf.Tensor | None:
    return None if seed is None else tf.random.experimental.stateless_fold_in(seed, number)


def _dropout(inputs: tf.Tensor, rate: float, seed: tf.Tensor | None, number: int) -> tf.Tensor:
    if rate == 0:
        return inputs
    return tf.nn.experimental.stateless_dropout(inputs, rate, seed=_fold_in(seed, number))
