"""The biLM over whole sentences, without arithmetic on padding: `BiLM.call`, SavedModels and the Keras layer."""

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.model.char_cnn import CharCNN
from elmo_tf.model.kernels import lstmp_packed
from elmo_tf.model.kernels.lstmp_packed import Packing, pack
from elmo_tf.model.operations import Clips
from elmo_tf.model.variables import Tracked
from elmo_tf.text import char_ids as char_ids_lib

# For each layer of a direction the cell (rows, units) and the recurrent state (rows, projection_dim), float32.
DirectionState = tuple[tuple[tf.Tensor, tf.Tensor], ...]
# Both directions' states, forward first.
States = tuple[DirectionState, DirectionState]

# What a layer reads, and what it returns. In training: a tensor (batch, time, dim). In inference: a tuple of the packed
# positions (N, dim) and, unless these include the boundaries, of the direction's boundary (1, dim).
Vectors: TypeAlias = tf.Tensor | tuple[tf.Tensor, ...]
# A projected LSTM: vectors and state in, vectors and state out.
Layer = Callable[[Vectors, tuple[tf.Tensor, tf.Tensor]], tuple[Vectors, tuple[tf.Tensor, tf.Tensor]]]


class Encoder(Tracked, keras.layers.Layer):
    """The base of `BiLM` and `PackedBiLM`: a token encoder and each direction's LSTMs, run over whole sentences."""

    collections = ("lstms",)

    config: config_lib.ModelConfig
    product_dtype: str
    char_cnn: CharCNN
    lstms: list[list]  # each direction's layers, which have `kernels(dtype)` and `assign_kernels(kernels)`

    @classmethod
    def of(cls, other: "Encoder", product_dtype: str = "float32") -> Self:
        """Returns a network of this class, without a softmax, with the weights of `other`, which are float32."""
        encoder = cls(other.config, product_dtype=product_dtype)
        for copy, variable in zip(encoder.char_cnn.variables, other.char_cnn.variables, strict=True):
            copy.assign(variable)
        for copies, layers in zip(encoder.lstms, other.lstms, strict=True):
            for copy, layer in zip(copies, layers, strict=True):
                copy.assign_kernels(layer.kernels("float32"))
        return encoder

    def get_config(self) -> dict[str, Any]:
        return {"config": config_lib.to_dict(self.config), "product_dtype": self.product_dtype, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        model = config_lib.from_dict(config["config"], config_lib.ModelConfig)
        return cls(**config | {"config": model})

    def zero_states(self, batch_size: int | tf.Tensor) -> States:
        """Returns the states before a first token, all zero."""
        lstm = self.config.lstm
        layer = tf.zeros((batch_size, lstm.units)), tf.zeros((batch_size, lstm.projection_dim))
        return (layer,) * lstm.num_layers, (layer,) * lstm.num_layers

    def call(self, char_ids, boundaries=False):
        return self.embed(char_ids, boundaries)

    def embed(self, char_ids: tf.Tensor, boundaries: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Does what a call does, without Keras's part of it. Every sentence starts from the zero state.

        A `BiLM` converts its LSTMs' weights to the layout of inference in every call, so that gradients reach them. A
        `PackedBiLM` stores them in that layout.

        Args:
            char_ids: as for a call.
            boundaries: whether to return `<S>` and `</S>` as well; both directions then read both of them.

        Returns:
            layers: float32 `(batch, num_layers + 1, max_length, 2 * projection_dim)`, 0 at padding; with `boundaries`,
                two positions longer: `<S>` before each sentence, `</S>` after its last token.
            mask: bool `(batch, max_length)`, real tokens; with `boundaries` `(batch, max_length + 2)`, boundaries
                included, also those of a sentence without tokens.
        """
        if boundaries:
            char_ids = _with_boundaries(char_ids)
        batch_size, max_length, _ = tf.unstack(tf.shape(char_ids))
        lengths = _lengths(char_ids)
        packing = pack(lengths)
        positions = packing.rows * max_length + packing.steps
        max_chars = char_ids.shape[-1]
        ids = tf.gather(tf.reshape(char_ids, (batch_size * max_length, max_chars)), positions)
        # Boundaries that are not among the positions of the batch are encoded once, in front of them.
        boundary_ids = np.zeros((0, max_chars), np.int32) if boundaries else np.stack(_boundaries(max_chars))
        encoded = self.char_cnn(tf.concat([boundary_ids, ids], 0))
        packed = encoded[len(boundary_ids) :]

        inputs: list[tuple[tf.Tensor, ...]] = [(packed,), (tf.gather(packed, packing.mirrored),)]
        if not boundaries:
            inputs = [(*vectors, encoded[number][None]) for number, vectors in enumerate(inputs)]
        lstm = self.config.lstm
        clips = Clips(lstm.cell_clip, lstm.proj_clip)
        lstms = [[_layer(layer.kernels(), clips, packing) for layer in stack] for stack in self.lstms]
        (forward, backward), _ = run_directions(lstms, inputs, self.zero_states(1), lstm.use_skip_connections)

        layers = [tf.concat([packed, packed], -1)]
        for (forward_output, *_), (backward_output, *_) in zip(forward, backward, strict=True):
            layers.append(tf.concat([forward_output, tf.gather(backward_output, packing.mirrored)], -1))
        dense_shape = (batch_size * max_length, len(layers), layers[0].shape[-1])
        dense = tf.scatter_nd(positions[:, None], tf.stack(layers, 1), dense_shape)
        dense = tf.reshape(dense, (batch_size, max_length, *dense_shape[1:]))
        return tf.transpose(dense, (0, 2, 1, 3)), tf.sequence_mask(lengths, max_length)


def run_directions(
    layers: Sequence[Sequence[Layer]],
    inputs: Sequence[Vectors],
    initial_states: States,
    use_skip_connections: bool,
    dropout: Callable[[Vectors, int, int], Vectors] | None = None,
) -> tuple[list[list[Vectors]], States]:
    """Runs both directions' LSTMs over token vectors.

    Args:
        layers: each direction's LSTMs, forward first.
        inputs: each direction's token vectors, in the order in which it reads them.
        initial_states: before the first token.
        use_skip_connections: whether every layer but the first adds its input to its output, but not to its state.
        dropout: applied to each layer's input; also takes the direction's and the layer's number.

    Returns:
        the outputs of each direction's layers, structured like its inputs, and the states after the last token.
    """
    outputs: list[list[Vectors]] = []
    final_states: list[DirectionState] = []
    for direction, (stack, vectors, states) in enumerate(zip(layers, inputs, initial_states, strict=True)):
        layer_outputs: list[Vectors] = []
        layer_states = []
        for number, (layer, initial) in enumerate(zip(stack, states, strict=True)):
            layer_input = layer_outputs[-1] if layer_outputs else vectors
            if dropout:
                layer_input = dropout(layer_input, direction, number)
            output, state = layer(layer_input, initial)
            if number > 0 and use_skip_connections:
                output = tf.nest.map_structure(tf.add, output, layer_input)
            layer_outputs.append(output)
            layer_states.append(state)
        outputs.append(layer_outputs)
        final_states.append(tuple(layer_states))
    forward, backward = final_states
    return outputs, (forward, backward)


def new_char_cnn(config: config_lib.ModelConfig, product_dtype: str = "float32") -> CharCNN:
    """Returns a built token encoder of the network's sizes, with random weights."""
    char_cnn = CharCNN(
        config.char_cnn.embedding_dim,
        config.char_cnn.filters,
        config.char_cnn.num_highway,
        config.char_cnn.activation,
        output_dim=config.lstm.projection_dim,
        product_dtype=product_dtype,
        name="char_cnn",
    )
    char_cnn.build((None, config.char_cnn.max_chars_per_token))
    return char_cnn


def _layer(kernels: lstmp_packed.Kernels, clips: Clips, packing: Packing) -> Layer:
    """Returns an LSTM over packed vectors `(N, dim)`, which first reads a boundary `(1, dim)` if given.

    All sentences start from the same state, of a single row, so the boundary is read once for all of them.
    """

    def run(inputs, state):
        packed, *boundary = inputs
        boundary_output = ()
        if boundary:
            state = lstmp_packed.step(kernels, clips, *boundary, state)
            boundary_output = (state[1],)
        states = tuple(tf.repeat(part, packing.sizes[0], 0) for part in state)
        outputs, state = lstmp_packed.run(kernels, clips, packed, packing, states)
        return (outputs, *boundary_output), state

    return run


def _lengths(char_ids: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(tf.reduce_any(char_ids != char_ids_lib.PADDING, -1), tf.int32), 1)


def _boundaries(max_chars: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of `<S>` and `</S>`, int32 `(max_chars,)` each."""
    begin, end = char_ids_lib.BEGIN_SENTENCE, char_ids_lib.END_SENTENCE
    return char_ids_lib.boundary(begin, max_chars), char_ids_lib.boundary(end, max_chars)


def _with_boundaries(char_ids: tf.Tensor) -> tf.Tensor:
    """Returns the ids with `<S>` before each sentence and `</S>` after its last token: two positions longer."""
    begin, end = _boundaries(char_ids.shape[-1])
    last = 1 + _lengths(char_ids)
    ids = tf.pad(char_ids, ((0, 0), (1, 1), (0, 0)))
    positions = tf.range(tf.shape(ids)[1])[None, :, None]
    return tf.where(positions == 0, begin, tf.where(positions == last[:, None, None], end, ids))
