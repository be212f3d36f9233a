"""ELMo as a layer of a user's own Keras model."""

import contextlib
import functools
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.elmo import sources
from elmo_tf.elmo.boundaries import layers_with_boundaries
from elmo_tf.elmo.known_tokens import KnownTokens
from elmo_tf.elmo.token_mask import TokenMask, lengths
from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import ScalarMix, one_layer
from elmo_tf.savedmodel import arguments
from elmo_tf.text import in_graph


@keras.saving.register_keras_serializable("elmo_tf")
class ELMo(keras.layers.Layer):
    """Contextual vectors of tokens: a biLM, and one or several learned mixes of its layers.

    Without dropout, a sentence's vectors depend on that sentence alone. A `.keras` file holds all of the biLM: to load
    it, `source` need not be there any more, but `elmo_tf.ELMo` has to be imported.

    Args:
        source: a SavedModel (its version's folder, or the model's with the newest version), a workdir, a folder of
            `options.json` and `weights.hdf5`, or the pair of these two files. Of a SavedModel the layer takes the
            network's weights alone: its mixes start from the average and gamma 1, each sentence from zero states.
        num_mixes: mixes to return, each with scalar parameters and gamma of its own; the paper puts one at the task
            network's input and one at its output.
        mix: `"learned"`; `"average"`; `"top"`; the number of a layer, 0 being the token layer; or fixed scalar
            parameters, one a layer, softmax-normalized as those of `elmo-tf export --mix`. gamma is always learned.
        penalty: lambda of `lambda * sum_j scalar_parameters_j^2`, added to the loss for each learned mix.
        layer_norm: whether each layer's vector of a token is brought to mean 0 and variance 1 over its features before
            the mix.
        dropout_rate: of each mix's vectors, in training.
        boundaries: whether `<S>` and `</S>`, which are always fed, are returned as well: two positions more.
        trainable_bilm: whether the biLM is trained along. If not, it stays frozen whatever `trainable` is set to.
        vocabulary: words whose token vectors are computed once, now, and looked up; all others go through the character
            encoder, with the same results. Only for a biLM that is not trained.

    Call arguments:
        inputs: string `(batch, time)`, tokens padded on the right with `""` (within a sentence, `""` is a token
            without bytes); or integers `(batch, time, max_chars_per_token)`, character ids padded on the right with 0.
        training: whether dropout is applied.

    Returns:
        float `(batch, time, 2 * projection_dim)` of the layer's `compute_dtype`, 0 at padding, with a Keras mask; a
        list of these if there are several mixes.

    Reference:
        Peters et al. 2018, sections 3.2 to 3.4.
    """

    def __init__(
        self,
        source: sources.Source,
        num_mixes: int = 1,
        mix: str | int | Sequence[float] = "learned",
        penalty: float = 0.0,
        layer_norm: bool = False,
        dropout_rate: float = 0.0,
        boundaries: bool = False,
        trainable_bilm: bool = False,
        vocabulary: Sequence[str] | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", _unique_name())
        super().__init__(autocast=False, **kwargs)
        if num_mixes < 1:
            raise InputError(f"num_mixes: expected at least 1, found {num_mixes}")
        if not 0 <= penalty < np.inf:
            raise InputError(f"penalty: expected a number that is not negative, found {penalty}")
        if vocabulary is not None and trainable_bilm:
            raise InputError("vocabulary: expected trainable_bilm=False with it, as its vectors are computed once")
        self.supports_masking = True
        self.supports_jit = False  # XLA knows no strings
        self.num_mixes = num_mixes
        self.mix = mix if isinstance(mix, str) else np.array(mix).tolist()  # JSON knows no arrays
        self.penalty = penalty
        self.layer_norm = layer_norm
        self.dropout_rate = dropout_rate
        self.boundaries = boundaries
        self.trainable_bilm = trainable_bilm
        self.vocabulary = None
        with _float32_layers():
            self.bilm = sources.load(source)
            lstm = self.bilm.config.lstm
            fixed = _fixed_parameters(mix, lstm.num_layers + 1)
            self.mixes = [
                ScalarMix(lstm.num_layers + 1, fixed, penalty, layer_norm, name=f"mix_{number}")
                for number in range(num_mixes)
            ]
            for one in self.mixes:
                one.build(None)
            self.known_tokens = None
            if vocabulary is not None:
                max_chars = self.bilm.config.char_cnn.max_chars_per_token
                self.known_tokens = KnownTokens(vocabulary, max_chars, lstm.projection_dim, name="known_tokens")
                self.vocabulary = [str(word) for word in vocabulary]  # JSON knows no NumPy
                if not isinstance(source, config_lib.ModelConfig):  # whose weights, and these vectors, come later
                    self.known_tokens.fill(self.bilm.char_cnn)
        self.token_mask = TokenMask(boundaries)  # with a name of its own, as it becomes part of functional models
        self.dropout = keras.layers.Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")
        # For what is in here; not by an assignment, which does nothing where the value is the same.
        ELMo.trainable.fset(self, self._trainable)  # type: ignore[attr-defined]
        self.built = True

    @property
    def trainable(self) -> bool:
        """Whether the mixes, and the biLM if `trainable_bilm`, are trained."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        keras.layers.Layer.trainable.fset(self, value)
        if hasattr(self, "bilm"):  # Keras sets it before there is one
            self.bilm.trainable = value and self.trainable_bilm

    def call(self, inputs, training=False):
        char_ids = self.char_ids(inputs)
        encode = self.bilm.char_cnn
        if self.known_tokens is not None:
            encode = functools.partial(self.known_tokens, encode=self.bilm.char_cnn)
        if self.boundaries:
            layers, _ = layers_with_boundaries(self.bilm, char_ids, encode)
        else:
            layers, _ = self.bilm(char_ids, encode=encode)
        if not self.trainable_bilm:
            layers = tf.stop_gradient(layers)
        vectors = [self.dropout(tf.cast(mix(layers), self.compute_dtype), training=training) for mix in self.mixes]
        return vectors if self.num_mixes > 1 else vectors[0]

    def char_ids(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the character ids of `inputs`, int32 `(batch, time, max_chars_per_token)`.

        For `dataset.map` where strings must not reach the model: Keras averages a first batch over the replicas of a
        `tf.distribute` strategy, which strings do not bear.
        """
        self._check(inputs)
        if inputs.dtype == tf.string:
            return in_graph.encode_tokens(inputs, lengths(inputs), self._max_chars)
        checked = arguments.checked_char_ids(tf.cast(inputs, tf.int32), self._max_chars)
        return tf.ensure_shape(checked, (None, None, self._max_chars))

    def compute_mask(self, inputs, previous_mask=None):
        """Returns bool `(batch, time)`: real tokens, and sentence boundaries if these are returned."""
        mask = self.token_mask(inputs)
        return [mask] * self.num_mixes if self.num_mixes > 1 else mask

    def compute_output_spec(self, inputs, training=False):
        self._check(inputs)
        spec = [keras.KerasTensor(self._output_shape(inputs), self.compute_dtype) for _ in self.mixes]
        return spec if self.num_mixes > 1 else spec[0]

    def get_config(self):
        own = ("num_mixes", "mix", "penalty", "layer_norm", "dropout_rate", "boundaries", "trainable_bilm")
        values = {name: getattr(self, name) for name in (*own, "vocabulary")}
        return super().get_config() | values | {"source": config_lib.to_dict(self.bilm.config)}

    @classmethod
    def from_config(cls, config):
        source = config_lib.from_dict(config["source"], config_lib.ModelConfig)
        return cls(**config | {"source": source})

    @property
    def _max_chars(self) -> int:
        return self.bilm.config.char_cnn.max_chars_per_token

    def _check(self, inputs: tf.Tensor | keras.KerasTensor) -> None:
        dtype, shape = keras.backend.standardize_dtype(inputs.dtype), tuple(inputs.shape)
        tokens = dtype == "string" and len(shape) == 2
        ids = dtype.startswith(("int", "uint")) and len(shape) == 3 and shape[2] in (None, self._max_chars)
        if not (tokens or ids):
            expected = f"strings (batch, time) or integers (batch, time, {self._max_chars})"
            raise InputError(f"inputs: expected {expected}, found {dtype} {shape}")

    def _output_shape(self, inputs: keras.KerasTensor) -> tuple[int | None, ...]:
        return *self.token_mask.compute_output_spec(inputs).shape, 2 * self.bilm.config.lstm.projection_dim


def _unique_name() -> str:
    """Returns `elmo`, `elmo_1`, ..., where Keras would make `el_mo` of the class's name."""
    number = keras.backend.get_uid("elmo") - 1
    return f"elmo_{number}" if number else "elmo"


def _fixed_parameters(mix: str | int | Sequence[float], num_layers: int) -> list[float] | None:
    """Returns the scalar parameters that `mix` fixes; None if they are to be learned."""
    named = {"learned": None, "average": [0.0] * num_layers}
    if isinstance(mix, str) and mix in named:
        return named[mix]
    number = num_layers - 1 if isinstance(mix, str) and mix == "top" else mix
    if isinstance(number, numbers.Integral) and not isinstance(number, bool):
        if not 0 <= int(number) < num_layers:
            raise InputError(f"mix: expected a layer from 0 to {num_layers - 1}, found {number}")
        return one_layer(int(number), num_layers)
    try:
        parameters = np.array(number, float)
    except (TypeError, ValueError):
        parameters = np.array(())
    if parameters.shape != (num_layers,) or not np.isfinite(parameters).all():
        expected = f"learned, average, top, a layer's number or {num_layers} scalar parameters"
        raise InputError(f"mix: expected {expected}, found {mix!r}")
    return parameters.tolist()


@contextlib.contextmanager
def _float32_layers() -> Iterator[None]:
    """Has layers made here compute in float32, whatever the program's own policy is."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
