"""The whole of ELMo's network, in plain TensorFlow and Keras.

It follows Peters et al. 2018, "Deep contextualized word representations" (arXiv 1802.05365), in the paper's symbols:

    t_k    token k of a sentence, k = 1 .. N; here its character ids
    x_k    its vector from its characters alone (section 3.4)
    h_kj   layer j of token k, j = 0 .. L, forward and backward side by side; h_k0 = [x_k; x_k] (section 3.2)
    s_j    weights of the layers, with the scale gamma (equation 1)

Details that the paper omits (clips, the forget gate's bias, the order of the gates) follow bilm-tf, the program that
trained the published weights, and are marked as such. Gradients are TensorFlow's.

This file is the reference, and slow. `fast.py` has the network in use, `BiLM`: it computes the same with other
algorithms, and tests compare each with the part of this file that it replaces. Comments give shapes:

    B  sentences, or streams of text in training      P  projection_dim, the width of a token's vector
    T  time steps                                     U  units of an LSTM
    C  character ids of a token                       E  width of a character's vector
    N  tokens of any sentences                        V  words of the softmax
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.model.variables import DIRECTIONS, Tracked, float32_policy, relative_names
from elmo_tf.text import char_ids as char_ids_lib

if TYPE_CHECKING:
    from elmo_tf.records.windows import Window

State = tuple[tf.Tensor, tf.Tensor]  # of one LSTM: cell (B, U) and recurrent state (B, P), float32
States = tuple[tuple[State, ...], tuple[State, ...]]  # of all layers of each direction, forward first

_EPSILON = 1e-6  # added to a variance, so that a constant vector, such as padding, becomes 0


# ---- Characters to a token's vector: section 3.4, which leaves the details to Kim et al. 2015 (arXiv 1508.06615) ----


class Highway(keras.layers.Layer):
    """Lets a learned gate choose, per feature, between a transform of the input and the input itself.

    `g = sigmoid(x W_g + b_g)`, `y = g * relu(x W_t + b_t) + (1 - g) * x`. The gate opens the transform, although the
    files published for ELMo call it `carry`. Srivastava et al. 2015, "Highway Networks".
    """

    def build(self, input_shape):
        dim = input_shape[-1]
        normal, closed = keras.initializers.RandomNormal, keras.initializers.Constant(-2.0)  # at first, mostly y = x
        self.gate_kernel = self.add_weight((dim, dim), normal(0.0, dim**-0.5), name="gate_kernel")
        self.gate_bias = self.add_weight((dim,), closed, name="gate_bias")
        self.transform_kernel = self.add_weight((dim, dim), normal(0.0, dim**-0.5), name="transform_kernel")
        self.transform_bias = self.add_weight((dim,), "zeros", name="transform_bias")

    def call(self, x):  # (N, dim)
        g = tf.sigmoid(tf.matmul(x, self.gate_kernel) + self.gate_bias)
        return g * tf.nn.relu(tf.matmul(x, self.transform_kernel) + self.transform_bias) + (1.0 - g) * x


class CharCNN(Tracked, keras.layers.Layer):
    """Encodes each token from its characters alone: integers `(..., C)` to x_k, float32 `(..., output_dim)`."""

    collections = ("highways", "kernels", "biases")

    def __init__(self, config: config_lib.CharCNNConfig, output_dim: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.output_dim = output_dim
        self.highways = [Highway(name=f"highway_{n}") for n in range(config.num_highway)]

    def build(self, _):
        config, uniform, normal = self.config, keras.initializers.RandomUniform, keras.initializers.RandomNormal
        shape = char_ids_lib.NUM_CHARS - 1, config.embedding_dim
        self.embedding = self.add_weight(shape, uniform(-1.0, 1.0), name="embedding")
        self.kernels, self.biases = [], []
        for n, (width, count) in enumerate(config.filters):
            narrow = normal(0.0, (width * config.embedding_dim) ** -0.5)
            initial = uniform(-0.05, 0.05) if config.activation == "relu" else narrow  # as in bilm-tf
            shape = (width, config.embedding_dim, count)
            self.kernels.append(self.add_weight(shape, initial, name=f"kernel_{n}"))
            self.biases.append(self.add_weight((count,), "zeros", name=f"bias_{n}"))
        for highway in self.highways:
            highway.build((None, config.num_filters))
        self.projection = None
        if self.output_dim != config.num_filters:
            initial = normal(0.0, config.num_filters**-0.5)
            self.projection = _Projection(self.output_dim, kernel_initializer=initial, name="projection")
            self.projection.build((None, config.num_filters))

    def call(self, char_ids):
        tokens = tf.reshape(char_ids, (-1, char_ids.shape[-1]))  # (N, C)
        table = tf.pad(self.embedding, ((1, 0), (0, 0)))  # (262, E): the vector of id 0, padding, is zero
        characters = tf.gather(table, tokens)  # (N, C, E)
        maxima = []
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            f = tf.nn.conv1d(characters, kernel, stride=1, padding="VALID") + bias  # (N, C - width + 1, count)
            maxima.append(tf.reduce_max(f, 1))  # (N, count); pads after a short token count like any character
        y = tf.concat(maxima, -1)  # (N, filters)
        y = tf.nn.relu(y) if self.config.activation == "relu" else tf.tanh(y)  # after the maximum, as in bilm-tf
        for highway in self.highways:
            y = highway(y)  # (N, filters)
        x = y if self.projection is None else self.projection(y)  # (N, P)
        return tf.reshape(x, tf.concat([tf.shape(char_ids)[:-1], [self.output_dim]], 0))


class _Projection(keras.layers.Dense):
    """A dense layer that `model.quantize` skips: Keras could not load the quantized model."""


# ---- Vectors through time: section 3.4; the projection is that of Sak et al. 2014 (arXiv 1402.1128) ----


class LSTMP(keras.layers.Layer):
    """A long short-term memory whose output is projected, and fed back projected.

    Call arguments:
        inputs: float32 `(B, T, P)`, T at least 1. Padding on the right never reaches a real position.
        initial_state: cell float32 `(B, U)` and recurrent state float32 `(B, P)`.

    Returns:
        outputs float32 `(B, T, P)` and the final state.
    """

    def __init__(self, config: config_lib.LSTMConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape):
        units, dim = self.config.units, self.config.projection_dim
        # Rows: the input's, then the recurrent state's. Columns: the gates i, j, f, o.
        self.kernel = self.add_weight((input_shape[-1] + dim, 4 * units), "glorot_uniform", name="kernel")
        self.bias = self.add_weight((4 * units,), "zeros", name="bias")
        self.projection_kernel = None  # where P = U, there is no projection and no clip of it
        if dim != units:
            self.projection_kernel = self.add_weight((units, dim), "glorot_uniform", name="projection_kernel")

    def step(self, x: tf.Tensor, state: State) -> State:
        """Returns the state after one time step of `x`, float32 `(B, P)`."""
        c, h = state
        gates = tf.matmul(tf.concat([x, h], 1), self.kernel) + self.bias  # (B, 4 U)
        i, j, f, o = tf.split(gates, 4, 1)  # input gate, candidate, forget gate, output gate: (B, U) each
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)  # bilm-tf: files store the forget gate's bias minus 1
        c = _clip(c, self.config.cell_clip)  # bilm-tf: before the output gate uses it
        h = tf.sigmoid(o) * tf.tanh(c)  # (B, U)
        if self.projection_kernel is not None:
            h = _clip(tf.matmul(h, self.projection_kernel), self.config.proj_clip)  # (B, P)
        return c, h

    def call(self, inputs, initial_state):
        x = tf.transpose(inputs, (1, 0, 2))  # (T, B, P)
        c, h = tf.scan(lambda state, x_k: self.step(x_k, state), x, tuple(initial_state))  # (T, B, U), (T, B, P)
        return tf.transpose(h, (1, 0, 2)), (c[-1], h[-1])

    def load_own_variables(self, store):
        from elmo_tf.model import old_files  # noqa: PLC0415 - only to load a file

        super().load_own_variables(old_files.lstmp_variables(store, self))


def _clip(values: tf.Tensor, limit: float | None) -> tf.Tensor:
    """Returns the values clipped to +-limit; None: no clipping. bilm-tf clips in training and in use."""
    return values if limit is None else tf.clip_by_value(values, -limit, limit)


# ---- The softmax over the words, shared by both directions: section 3.1 ----


class SampledSoftmax(keras.layers.Layer):
    """Negative log-likelihoods, against all words or a sample (Jean et al. 2014; bilm-tf, `_build_loss`).

    Call arguments:
        inputs, targets: float32 `(N, P)` and int32 `(N,)`.
        num_sampled: negatives, distinct words drawn from the log-uniform distribution, which expects words in
            descending order of their counts; 0, or over three quarters of the vocabulary: all words.
        seed: int32 `(2,)`, of the draw; needed when `num_sampled` is not 0.

    Returns:
        float32 `(N,)`, nats.
    """

    def __init__(self, vocab_size: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size

    def build(self, input_shape):
        dim = input_shape[-1]
        initial = keras.initializers.RandomNormal(0.0, dim**-0.5)
        self.kernel = self.add_weight((self.vocab_size, dim), initial, name="kernel")
        self.bias = self.add_weight((self.vocab_size,), "zeros", name="bias")

    def start_log_uniform(self) -> None:
        """Sets small weights, and as biases the log-uniform distribution: a rough unigram model.

        Rare words, which are seldom updated, do not start with random odds.
        """
        words = tf.range(self.vocab_size, dtype=tf.float32)
        self.bias.assign(tf.math.log(_log_uniform_probability(words, self.vocab_size)))
        self.kernel.assign(self.kernel * 0.1)

    def is_full(self, num_sampled: int) -> bool:
        """Whether `num_sampled` means all words: drawing most of them without repeats takes longer than using all."""
        return num_sampled == 0 or 4 * num_sampled > 3 * self.vocab_size

    def call(self, inputs, targets, num_sampled=0, seed=None):
        if self.is_full(num_sampled):
            logits = tf.matmul(inputs, self.kernel, transpose_b=True) + self.bias  # (N, V)
            return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        words, target_counts, word_counts = log_uniform_sample(targets, num_sampled, self.vocab_size, seed)
        # Each logit minus the log of how often its word is expected in the sample: then the sampled loss estimates the
        # full one.
        true_logits = tf.reduce_sum(inputs * tf.gather(self.kernel, targets), -1) + tf.gather(self.bias, targets)
        true_logits -= tf.math.log(target_counts)  # (N,)
        logits = tf.matmul(inputs, tf.gather(self.kernel, words), transpose_b=True) + tf.gather(self.bias, words)
        logits -= tf.math.log(word_counts)  # (N, num_sampled)
        is_target = tf.cast(targets[:, None], words.dtype) == words  # a target in the sample is not a negative
        logits = tf.concat([true_logits[:, None], tf.where(is_target, tf.float32.min, logits)], 1)
        return tf.reduce_logsumexp(logits, 1) - true_logits


def log_uniform_sample(
    targets: tf.Tensor, num_sampled: int, vocab_size: int, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Draws `num_sampled` distinct words log-uniformly, determined by the seed, int32 `(2,)`.

    The distribution is that of `tf.random.log_uniform_candidate_sampler(unique=True)`, whose generator can be neither
    saved nor set, so that training could not be resumed exactly.

    Returns:
        the words int64 `(num_sampled,)` in the order drawn; and the expected counts, over all tries made, of each
        target, float32 `(N,)`, and of each word drawn, float32 `(num_sampled,)`.
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


# ---- Both directions together: sections 3.1 and 3.4 ----


class WindowRun(NamedTuple):
    """The LSTMs' outputs for a window of text; each direction's values are in the order in which it reads."""

    token_vectors: list[tf.Tensor]  # of each direction, float32 (B, T, P)
    layers: list[list[tf.Tensor]]  # each direction's LSTM outputs by layer, float32 (B, T, P)
    states: States  # after the window


@keras.saving.register_keras_serializable("elmo_tf")
class PlainBiLM(Tracked, keras.Model):
    """A forward and a backward language model over the same character-based token encoder and softmax.

    It is built when constructed and ignores Keras's global dtype policy. LSTM states are arguments and results; the
    network stores none. `fast.BiLM` has the same arguments and results, and says what they are; it replaces
    `token_vectors`, `run_lstm`, `token_losses` and `embed`.

    Reference:
        Peters et al. 2018, section 3; bilm-tf, `bilm/model.py` and `bilm/training.py`.
    """

    collections = ("lstms",)

    def __init__(self, config: config_lib.ModelConfig, vocab_size: int | None = None, **kwargs: Any):
        with float32_policy():
            super().__init__(**kwargs)
            dim, numbers = config.lstm.projection_dim, range(config.lstm.num_layers)
            self.config = config
            self.vocab_size = vocab_size
            self.supports_jit = False  # `fast.BiLM` handles a varying number of distinct tokens, which XLA does not
            self.char_cnn = CharCNN(config.char_cnn, dim, name="char_cnn")
            self.lstms = [[LSTMP(config.lstm, name=f"{name}_{n}") for n in numbers] for name in DIRECTIONS]
            self.softmax = None if vocab_size is None else SampledSoftmax(vocab_size, name="softmax")
            self.char_cnn.build((None, config.char_cnn.max_chars_per_token))
            for lstm in (*self.lstms[0], *self.lstms[1]):
                lstm.build((None, None, dim))
            if self.softmax is not None:
                self.softmax.build((None, dim))
        self.built = True

    @classmethod
    def from_weights(cls, config: config_lib.ModelConfig, weights: Mapping[str, Any], **kwargs: Any) -> Self:
        """Returns the network, without a softmax, with weights by the names of `variables.relative_names`."""
        bilm = cls(config, **kwargs)
        for name, variable in relative_names(bilm).items():
            variable.assign(weights[name])
        return bilm

    def get_config(self):
        return {"config": config_lib.to_dict(self.config), "vocab_size": self.vocab_size, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"config": config_lib.from_dict(config["config"], config_lib.ModelConfig)})

    def zero_states(self, batch_size: int | tf.Tensor) -> States:
        """Returns the states before a first token, all zero."""
        lstm = self.config.lstm
        layer = tf.zeros((batch_size, lstm.units)), tf.zeros((batch_size, lstm.projection_dim))
        return (layer,) * lstm.num_layers, (layer,) * lstm.num_layers

    def token_vectors(self, char_ids: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        """Returns x_k, float32 `(..., P)`, of words, which are rows of `char_ids`, int32 `(n, C)`."""
        return tf.gather(self.char_cnn(char_ids), words)

    def run_lstm(self, lstm: LSTMP, inputs: tf.Tensor, state: State, training: bool) -> tuple[tf.Tensor, State]:
        """Like `lstm(inputs, state)`; `training`: whether gradients will be computed."""
        return lstm(inputs, state)

    def token_losses(self, inputs: tf.Tensor, targets: tf.Tensor, num_sampled: int, seed: Any, training: bool) -> Any:
        """Like `softmax(inputs, targets, num_sampled, seed)`."""
        return self.softmax(inputs, targets, num_sampled=num_sampled, seed=seed)

    def run_directions(
        self,
        inputs: Sequence[tf.Tensor],
        initial_states: States,
        run_lstm: Callable[[LSTMP, tf.Tensor, State], tuple[tf.Tensor, State]],
        dropout: Callable[[tf.Tensor, int, int], tf.Tensor] = lambda values, direction, number: values,
    ) -> tuple[list[list[tf.Tensor]], States]:
        """Runs both directions' LSTMs, each over token vectors in the order in which it reads them.

        `run_lstm` runs a layer; `dropout` of its input also takes the direction's and the layer's number.

        Returns:
            the outputs of each direction's layers, in the form of `inputs`, and the states after the last token.
        """
        outputs, final_states = [], []
        for direction, (stack, x, states) in enumerate(zip(self.lstms, inputs, initial_states, strict=True)):
            h, layers, final = x, [], []
            for number, (lstm, initial) in enumerate(zip(stack, states, strict=True)):
                below = dropout(h, direction, number)
                h, state = run_lstm(lstm, below, initial)
                # Section 3.4: "a residual connection from the first to second layer"; the state has no part in it.
                if number > 0 and self.config.lstm.use_skip_connections:
                    h = h + below
                layers.append(h)
                final.append(state)
            outputs.append(layers)
            final_states.append(tuple(final))
        return outputs, (final_states[0], final_states[1])

    def call(self, char_ids, boundaries=False):
        return self.embed(char_ids, boundaries)

    def embed(self, char_ids: tf.Tensor, boundaries: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns all layers h_kj `(B, L + 1, T, 2 P)` of sentences `(B, T, C)`, and which tokens are real `(B, T)`.

        Calling the network does the same. Every sentence starts from the zero state. Layers are 0 at padding. With
        `boundaries`, `<S>` and `</S>`, which are always fed, are returned as well: T + 2 positions.
        """
        batch_size, max_length, _ = tf.unstack(tf.shape(char_ids))
        lengths = num_tokens(char_ids)  # (B,)
        x = self.char_cnn(with_boundaries(char_ids))  # (B, T + 2, P): <S>, t_1 .. t_N, </S>, padding
        # The backward direction reads </S>, t_N .. t_1, <S>. What follows t_N forward, or t_1 backward, does not reach
        # the tokens' vectors.
        mirrored = tf.reverse_sequence(x, lengths + 2, seq_axis=1)
        states = self.zero_states(batch_size)
        (forward, backward), _ = self.run_directions([x, mirrored], states, lambda lstm, *given: lstm(*given))
        layers = [tf.concat([x, x], -1)]  # h_k0, (B, T + 2, 2 P)
        for h_forward, h_backward in zip(forward, backward, strict=True):
            layers.append(tf.concat([h_forward, tf.reverse_sequence(h_backward, lengths + 2, seq_axis=1)], -1))  # h_kj
        h, mask = tf.stack(layers, 1), tf.sequence_mask(lengths + 2, max_length + 2)
        if not boundaries:
            h, mask = h[:, :, 1:-1], tf.sequence_mask(lengths, max_length)
        return tf.where(mask[:, None, :, None], h, 0.0), mask

    def run_window(
        self,
        window: "Window",
        initial_states: States,
        dropout_rate: float = 0.0,
        seed: tf.Tensor | None = None,
        training: bool = False,
    ) -> WindowRun:
        """Runs the network, up to the softmax, over a window of text; arguments as for `language_model_losses`."""
        words = tf.concat([window.forward_words, window.backward_words], 0)  # (2 B, T)
        vectors = tf.split(self.token_vectors(window.char_ids, words), 2)  # x_k of each direction, (B, T, P)
        outputs, states = self.run_directions(
            vectors,
            initial_states,
            lambda lstm, inputs, state: self.run_lstm(lstm, inputs, state, training),
            lambda values, direction, number: _dropout(values, dropout_rate, _fold_in(seed, direction), number),
        )
        return WindowRun(vectors, outputs, states)

    def language_model_losses(
        self,
        window: "Window",
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
            dropout_rate: of every LSTM layer's input, also where a skip connection adds it, and of the softmax's.
            seed: int32 `(2,)`, of dropout and negatives; needed for either.
            training: whether gradients will be computed; outputs are identical.

        Returns:
            forward and backward losses, float32 `(B, T)` in nats, 0 where `window.mask` is False; final states.
        """
        run = self.run_window(window, initial_states, dropout_rate, seed, training)
        losses = []
        for direction, targets in enumerate((window.forward_targets, window.backward_targets)):
            h, key = run.layers[direction], _fold_in(seed, direction)
            top = tf.reshape(h[-1], (-1, h[-1].shape[-1]))  # (B T, P)
            top = _dropout(top, dropout_rate, key, len(h))
            nats = self.token_losses(
                top, tf.reshape(targets, (-1,)), num_sampled, _fold_in(key, len(h) + 1), training
            )  # (B T,)
            losses.append(tf.where(window.mask, tf.reshape(nats, tf.shape(targets)), 0.0))
        return (losses[0], losses[1]), run.states


def _fold_in(seed: tf.Tensor | None, number: int) -> tf.Tensor | None:
    return None if seed is None else tf.random.experimental.stateless_fold_in(seed, number)


def _dropout(inputs: tf.Tensor, rate: float, seed: tf.Tensor | None, number: int) -> tf.Tensor:
    if rate == 0:
        return inputs
    return tf.nn.experimental.stateless_dropout(inputs, rate, seed=_fold_in(seed, number))


def num_tokens(char_ids: tf.Tensor) -> tf.Tensor:
    """Returns the number of tokens of each sentence, int32 `(B,)`, given its character ids `(B, T, C)`."""
    return tf.reduce_sum(tf.cast(tf.reduce_any(char_ids != char_ids_lib.PADDING, -1), tf.int32), 1)


def boundary_ids(max_chars: int) -> np.ndarray:
    """Returns the character ids of `<S>` and of `</S>`, int32 `(2, C)`."""
    marks = char_ids_lib.BEGIN_SENTENCE, char_ids_lib.END_SENTENCE
    return np.stack([char_ids_lib.boundary(mark, max_chars) for mark in marks])


def with_boundaries(char_ids: tf.Tensor) -> tf.Tensor:
    """Returns the ids with `<S>` before each sentence and `</S>` after its last token: `(B, T + 2, C)`."""
    begin, end = boundary_ids(char_ids.shape[-1])
    last = 1 + num_tokens(char_ids)
    ids = tf.pad(char_ids, ((0, 0), (1, 1), (0, 0)))
    positions = tf.range(tf.shape(ids)[1])[None, :, None]
    return tf.where(positions == 0, begin, tf.where(positions == last[:, None, None], end, ids))


# ---- The weighted sum of layers that a task uses: equation 1 ----


def scalar_mix(layers: tf.Tensor, scalar_parameters: tf.Tensor, gamma: tf.Tensor, layer_norm: bool) -> tf.Tensor:
    """Returns ELMo_k = gamma * sum_j s_j h_kj, float32 `(B, T, dim)`, of layers `(B, L + 1, T, dim)`.

    Args:
        layers: h_kj.
        scalar_parameters: float32 `(L + 1,)`, whose softmax is s.
        gamma: float32 scalar.
        layer_norm: whether to normalize each h_kj to mean 0 and variance 1 over its features first (section 3.2).
            bilm-tf normalizes all tokens of a batch together.
    """
    if layer_norm:
        mean, variance = tf.nn.moments(layers, -1, keepdims=True)
        layers = (layers - mean) * tf.math.rsqrt(variance + _EPSILON)
    s = tf.nn.softmax(scalar_parameters)  # (L + 1,)
    return gamma * tf.einsum("j,bjtd->btd", s, layers)
