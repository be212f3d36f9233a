"""The bidirectional language model: the one network that training, evaluation and export share."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.bilm import packed
from elmo_tf.bilm.packed import DirectionState, States
from elmo_tf.layers import lstmp_packed
from elmo_tf.layers.char_cnn import CharCNN
from elmo_tf.layers.lstmp import LSTMP
from elmo_tf.layers.sampled_softmax import SampledSoftmax
from elmo_tf.records.windows import Window

DIRECTIONS = ("forward", "backward")

# For each direction, for each layer.
Kernels = tuple[tuple[lstmp_packed.Kernels, ...], ...]


class BiLM(keras.Model):
    """A forward and a backward language model over one character-based token encoder and one softmax.

    It is built when constructed, and keeps no state of its own: LSTM states go in and come out.

    Args:
        config: the network's sizes.
        vocab_size: words of the softmax; None builds the network without one, which is all that embedding needs.
        product_dtype: dtype of the matrix products, `"float32"` or `"bfloat16"`; everything else is float32.

    Call arguments:
        char_ids: int32 `(batch, max_length, max_chars_per_token)`, sentences without boundaries, padded with 0.
        encode: what gives token vectors instead of `char_cnn`.

    Returns:
        layers: float32 `(batch, num_layers + 1, max_length, 2 * projection_dim)`, 0 at padding; layer 0 is the token
            vector twice, the others are each biLSTM layer's forward and backward output. Every sentence starts from the
            zero state, with `<S>` and `</S>` fed but not returned.
        mask: bool `(batch, max_length)`, the real tokens.

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
        super().__init__(**kwargs)
        self.config = config
        self.vocab_size = vocab_size
        self.product_dtype = product_dtype
        lstm, char_cnn = config.lstm, config.char_cnn
        self.char_cnn = CharCNN(
            char_cnn.embedding_dim,
            char_cnn.filters,
            char_cnn.num_highway,
            char_cnn.activation,
            output_dim=lstm.projection_dim,
            product_dtype=product_dtype,
            name="char_cnn",
        )
        self.char_cnn.build((None, char_cnn.max_chars_per_token))
        self.lstms = [[self._lstm(f"{direction}_{n}") for n in range(lstm.num_layers)] for direction in DIRECTIONS]
        self.softmax = None
        if vocab_size is not None:
            self.softmax = SampledSoftmax(vocab_size, product_dtype, name="softmax")
            self.softmax.build((None, lstm.projection_dim))
        self.built = True

    def _lstm(self, name: str) -> LSTMP:
        lstm = self.config.lstm
        layer = LSTMP(lstm.units, lstm.projection_dim, lstm.cell_clip, lstm.proj_clip, self.product_dtype, name=name)
        layer.build((None, None, lstm.projection_dim))
        return layer

    def get_config(self) -> dict[str, Any]:
        return {
            "config": config_lib.to_dict(self.config),
            "vocab_size": self.vocab_size,
            "product_dtype": self.product_dtype,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "BiLM":
        model = config_lib.from_dict(config["config"], config_lib.ModelConfig)
        return cls(**config | {"config": model})

    def zero_states(self, batch_size: int | tf.Tensor) -> States:
        """Returns the states before a first token, all zero."""
        return tuple(
            tuple(tuple(tf.zeros((batch_size, size)) for size in layer.state_size) for layer in layers)
            for layers in self.lstms
        )

    def kernels(self, dtype: str | None = None) -> Kernels:
        """Returns the LSTMs' weights as inference wants them, of `dtype`, or of the products' if it is None."""
        return tuple(tuple(layer.kernels(dtype) for layer in layers) for layers in self.lstms)

    def call(self, char_ids, encode=None):
        layers, mask, _ = self.embed(char_ids, self.zero_states(1), encode=encode)
        return layers, mask

    def embed(
        self,
        char_ids: tf.Tensor,
        initial_states: States,
        kernels: Kernels | None = None,
        encode: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor, States]:
        """Does what a call does, from states of one's choice.

        Args:
            char_ids: as for a call.
            initial_states: what stands before each sentence, a row for each or one row for all.
            kernels: what `kernels()` returned, to save its work; None: made here.
            encode: as for a call.

        Returns:
            layers and mask as from a call; and the states after each sentence's last token, in the backward direction
            after its first. A sentence without tokens leaves them as they were.
        """
        clips, skips = self.lstms[0][0].clips, self.config.lstm.use_skip_connections
        stacks = tuple(packed.Stack(layers, clips, skips) for layers in kernels or self.kernels())
        return packed.embed(encode or self.char_cnn, stacks, char_ids, initial_states)

    def run_direction(
        self,
        direction: int,
        inputs: tf.Tensor,
        initial_states: DirectionState,
        dropout_rate: float = 0.0,
        seed: tf.Tensor | None = None,
        training: bool = False,
    ) -> tuple[list[tf.Tensor], DirectionState]:
        """Runs one direction's LSTMs over token vectors that are in the order of that direction.

        Args:
            direction: 0 forward, 1 backward.
            inputs: float32 `(batch, time, projection_dim)`.
            initial_states: of the direction's layers.
            dropout_rate: of each layer's input, the one that a skip connection adds included.
            seed: int32 `(2,)`, decides the dropout.
            training: whether gradients will be asked for; changes no value.

        Returns:
            each layer's output float32 `(batch, time, projection_dim)`, and the final states.
        """
        outputs, final_states = [], []
        for number, (layer, initial_state) in enumerate(zip(self.lstms[direction], initial_states, strict=True)):
            inputs = _dropout(inputs, dropout_rate, seed, number)
            values, final_state = layer(inputs, initial_state, training=training)
            if number > 0 and self.config.lstm.use_skip_connections:
                values += inputs
            outputs.append(values)
            final_states.append(final_state)
            inputs = values
        return outputs, tuple(final_states)

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
            window: tensors or arrays of a `Window`.
            initial_states: the LSTM states before the window.
            num_sampled: negatives of the sampled softmax; 0: the full softmax.
            dropout_rate: of every LSTM layer's input and of the softmax's; 0 to evaluate.
            seed: int32 `(2,)`, decides dropout and negatives; needed for either.
            training: whether gradients will be asked for; changes no value.

        Returns:
            forward and backward losses, float32 `(batch, time)` in nats, 0 where `window.mask` is False; final states.
        """
        char_ids = tf.concat([window.forward_char_ids, window.backward_char_ids], 0)
        vectors = tf.split(self.char_cnn(char_ids), 2)
        losses, final_states = [], []
        for direction, targets in enumerate((window.forward_targets, window.backward_targets)):
            key = None if seed is None else tf.random.experimental.stateless_fold_in(seed, direction)
            outputs, states = self.run_direction(
                direction, vectors[direction], initial_states[direction], dropout_rate, key, training
            )
            flat = tf.reshape(outputs[-1], (-1, outputs[-1].shape[-1]))
            flat = _dropout(flat, dropout_rate, key, len(outputs))
            sampling = None if seed is None else tf.random.experimental.stateless_fold_in(key, len(outputs) + 1)
            nats = self.softmax(flat, tf.reshape(targets, (-1,)), num_sampled=num_sampled, seed=sampling)
            losses.append(tf.where(window.mask, tf.reshape(nats, tf.shape(targets)), 0.0))
            final_states.append(states)
        return tuple(losses), tuple(final_states)


def _dropout(inputs: tf.Tensor, rate: float, seed: tf.Tensor | None, number: int) -> tf.Tensor:
    if rate == 0:
        return inputs
    return tf.nn.experimental.stateless_dropout(
        inputs, rate, seed=tf.random.experimental.stateless_fold_in(seed, number)
    )
