"""ELMo as a layer of a user's own Keras model."""

import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf import extras, sources
from elmo_tf.errors import InputError
from elmo_tf.model.cached_layers import CachedLayers
from elmo_tf.model.fast import BiLM
from elmo_tf.model.scalar_mix import Mix, ScalarMix, checked_gamma, parse_mix
from elmo_tf.model.token_inputs import (
    TokenMask,
    are_sentences,
    check_inputs,
    distinct_sentences,
    expected_inputs,
    lengths,
    to_tensor,
)
from elmo_tf.model.variables import Tracked, outside_scopes
from elmo_tf.savedmodel import graph_checks
from elmo_tf.text import in_graph, tokenizers
from elmo_tf.text.tokenizers import Text, split_texts


@keras.saving.register_keras_serializable("elmo_tf")
class ELMo(Tracked, keras.layers.Layer):
    """Contextual vectors of the tokens of sentences: a biLM, and learned mixes of its layers.

    Without dropout, a sentence's vectors depend on that sentence alone. A `.keras` file contains the whole biLM: it
    loads without `source`, in a program that has imported `elmo_tf.ELMo`.

    Args:
        source: as for `elmo_tf.load`. From a SavedModel, only the network's weights are used: mixes start from
            the average and gamma 1, sentences from zero states. A `ModelConfig` makes a network with random weights.
        num_mixes: mixes to return, each with its own scalar parameters and gamma; the paper puts a mix at the
            task network's input and another at its output.
        mix: `"learned"`; `"average"`; `"top"`; the number of a layer, 0 being the token layer; or fixed scalar
            parameters, one per layer, softmax-normalized like those of `elmo-tf export --mix`.
        penalty: lambda of `lambda * sum_j scalar_parameters_j^2`, added to the loss for each learned mix.
        layer_norm: whether each layer's vector of a token is normalized to mean 0 and variance 1 over its features
            before the mix.
        dropout_rate: of each mix's vectors, in training.
        boundaries: whether to return `<S>` and `</S>`, which are always fed, as well: two more positions.
        trainable_bilm: whether to train the biLM as well, or a copy of it if `source` is a network. If not, it stays
            frozen whatever `trainable` is.
        tokenizer: splits sentences instead of the source's own tokenizer: `"whitespace"`, `"penn"`, `"unicode"`, which
            needs tensorflow-text (`elmo-tf[text]`), or `"characters"`. A network in memory and a `ModelConfig` have no
            tokenizer: without this argument, such a layer takes only tokens.
        gamma: a fixed scale of each mix; None: learned, from 1. Without it, training on the top layer alone failed in
            the paper's supplement A.2.

    Call arguments:
        inputs: string `(batch,)`, sentences, which the layer splits into tokens. Or string `(batch, time)`, tokens
            padded on the right with `""` (within a sentence, `""` is a token without bytes), which are never split
            again. Or integers `(batch, time, max_chars_per_token)`, character ids padded on the right with 0. Sentences
            and tokens may also be lists or NumPy arrays; tokens and ids, a RaggedTensor.
        training: whether to apply dropout.

    Returns:
        float `(batch, time, 2 * projection_dim)` of the layer's `compute_dtype`, 0 at padding, with a Keras mask; a
        list of these for several mixes.

    Examples:
        >>> sentences = keras.Input((), dtype="string")
        >>> pooled = elmo_tf.SequencePooling(["mean"])(elmo_tf.ELMo("english", dropout_rate=0.2)(sentences))
        >>> classifier = keras.Model(sentences, keras.layers.Dense(2, activation="softmax")(pooled))
        >>> classifier(tf.constant(["I don't like it.", "Lovely!"])).shape
        TensorShape([2, 2])
        >>> tokens = keras.Input((None,), dtype="string")
        >>> tagger = keras.Model(tokens, keras.layers.Dense(5, activation="softmax")(elmo_tf.ELMo("english")(tokens)))
        >>> tagger(tf.constant([["A", "bank"], ["money", ""]])).shape
        TensorShape([2, 2, 5])

    Reference:
        Peters et al. 2018, sections 3.2 to 3.4.
    """

    collections = ("mixes",)

    def __init__(
        self,
        source: "sources.Path | config_lib.ModelConfig | BiLM",
        num_mixes: int = 1,
        mix: Mix = "learned",
        penalty: float = 0.0,
        layer_norm: bool = False,
        dropout_rate: float = 0.0,
        boundaries: bool = False,
        trainable_bilm: bool = False,
        tokenizer: str | None = None,
        gamma: float | None = None,
        **kwargs: Any,
    ):
        if kwargs.get("name") is None:
            kwargs["name"] = _unique_name()
        super().__init__(autocast=False, **kwargs)
        if num_mixes < 1:
            raise InputError("num_mixes", "at least 1", num_mixes)
        if tokenizer is not None:
            tokenizers.check(tokenizer)
        if not 0 <= dropout_rate < 1:
            raise InputError("dropout_rate", "a number from 0 to 1, 1 excluded", dropout_rate)
        self.supports_masking = True
        self.supports_jit = False  # XLA has no strings
        self.num_mixes = num_mixes
        self.mix = mix if isinstance(mix, str) else np.array(mix).tolist()  # JSON has no arrays
        self.penalty, self.layer_norm = penalty, layer_norm
        self.gamma = None if gamma is None else checked_gamma(gamma)
        self.dropout_rate = dropout_rate
        self.boundaries = boundaries
        self.trainable_bilm = trainable_bilm
        self.tokenizer = tokenizer
        opened: sources.Source | config_lib.ModelConfig | BiLM
        if isinstance(source, config_lib.ModelConfig | BiLM):
            opened = source
        else:
            opened = sources.find(source)
            self.tokenizer = tokenizer or opened.tokenizer

        def build_parts():
            bilm = sources.network(opened, trainable_bilm)
            num_layers = bilm.config.lstm.num_layers + 1
            parameters = None if self.mix == "learned" else parse_mix(self.mix, num_layers)
            mixes = [
                ScalarMix(num_layers, parameters, penalty, layer_norm, gamma, name=f"mix_{n}") for n in range(num_mixes)
            ]
            for scalar_mix in mixes:
                scalar_mix.build(None)
            return bilm, mixes, keras.layers.Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

        self.bilm, self.mixes, self.dropout = outside_scopes(build_parts)
        self.cached_layers: CachedLayers | None = None
        # Only the function's method: TensorFlow would save a function that is an attribute with the layer.
        self._compiled = tf.function(self._computed, autograph=False).get_concrete_function
        self.token_mask = TokenMask(boundaries, self.tokenizer)
        # Again: the sublayers did not exist when Keras set it.
        ELMo.trainable.fset(self, self._trainable)  # type: ignore[attr-defined]
        self.built = True

    @property
    def trainable(self) -> bool:
        """Whether the mixes, and the biLM if `trainable_bilm`, are trained."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        keras.layers.Layer.trainable.fset(self, value)
        # Keras sets it before there is a biLM.
        if hasattr(self, "bilm"):
            self.bilm.trainable = value and self.trainable_bilm

    def __call__(self, inputs, *args, **kwargs):
        # Keras accepts neither ragged tensors nor lists nor arrays of strings.
        return super().__call__(to_tensor(inputs, self._max_chars), *args, **kwargs)

    def call(self, inputs, training=False):
        if inputs.dtype.is_floating and not tf.executing_eagerly():
            return self._placeholder_output(inputs)
        inputs = self._tokens_or_ids(inputs)
        layers = self._layers_of(inputs) if self.trainable_bilm else tf.stop_gradient(self._frozen_layers_of(inputs))
        return self._single_or_list(
            [self.dropout(tf.cast(mix(layers), self.compute_dtype), training=training) for mix in self.mixes]
        )

    def remember(self, sentences: Iterable[Text] | CachedLayers, folder: str | os.PathLike | None = None) -> None:
        """Computes the frozen biLM's layers of sentences once, and keeps them; the mixes stay trainable.

        Layers of other sentences are computed as before. The layers are kept until the process ends. Functions that
        were traced before, such as that of an earlier `fit`, do not use them.

        Args:
            sentences: each a string, or a list of its tokens; or the `cached_layers` of another layer with the same
                biLM.
            folder: for a temporary file, if the layers are more than 2 GB; None: the system's.
        """
        if self.trainable_bilm or self.boundaries:
            settings = f"trainable_bilm={self.trainable_bilm}, boundaries={self.boundaries}"
            kind = "a layer with a frozen biLM, without boundaries"
            raise InputError("sentences", f"only {kind}, can remember them; this one has {settings}")
        shape = (self.bilm.config.lstm.num_layers + 1, 2 * self.bilm.config.lstm.projection_dim)
        if not isinstance(sentences, CachedLayers):
            tokens: Any = sentences if self.tokenizer is None else split_texts(sentences, self.tokenizer, "sentences")
            sentences = CachedLayers(tokens, self._layers_of, *shape, folder)
        self.cached_layers = sentences

    def forget(self) -> None:
        """Undoes `remember`. Needed before `model.export`: its graph could not look up the sentences."""
        self.cached_layers = None

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        if save_type == "savedmodel" and self.cached_layers is not None:
            problem = "it remembers sentences, which an exported graph cannot look up; call its `forget()` first"
            raise InputError(f"the layer {self.name}", problem)
        return super()._trackable_children(save_type, **kwargs)

    def char_ids(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the character ids of `inputs`, int32 `(batch, time, max_chars_per_token)`.

        For `dataset.map` under a `tf.distribute` strategy with several replicas: Keras averages the first batch across
        replicas, and strings cannot be averaged.

        Args:
            inputs: as for a call.
        """
        inputs = self._tokens_or_ids(to_tensor(inputs, self._max_chars))
        if inputs.dtype == tf.string:
            return in_graph.encode_tokens(inputs, lengths(inputs), self._max_chars)
        checked = graph_checks.checked_char_ids(tf.cast(inputs, tf.int32), self._max_chars)
        return tf.ensure_shape(checked, (None, None, self._max_chars))

    def compute_mask(self, inputs, previous_mask=None):
        """Returns bool `(batch, time)`: real tokens, and sentence boundaries if these are returned."""
        return self._single_or_list([self.token_mask(inputs)] * self.num_mixes)

    def compute_output_spec(self, inputs, training=False):
        self._check(inputs)
        shape = self._mix_shape(inputs.shape)
        return self._single_or_list([keras.KerasTensor(shape, self.compute_dtype) for _ in self.mixes])

    def compute_output_shape(self, input_shape):
        return self._single_or_list([self._mix_shape(input_shape)] * self.num_mixes)

    def get_config(self):
        names = ("num_mixes", "mix", "penalty", "layer_norm", "dropout_rate", "boundaries", "trainable_bilm")
        settings = {name: getattr(self, name) for name in (*names, "tokenizer", "gamma")}
        return super().get_config() | settings | {"source": config_lib.to_dict(self.bilm.config)}

    @classmethod
    def from_config(cls, config):
        model = config_lib.from_dict(config["source"], config_lib.ModelConfig)
        # Keras loads the weights later.
        return cls(**config | {"source": model})

    @property
    def _max_chars(self) -> int:
        return self.bilm.config.char_cnn.max_chars_per_token

    def _tokens_or_ids(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the tokens of sentences, string `(batch, time)`; tokens and character ids as they are."""
        self._check(inputs)
        if self.tokenizer is None or not are_sentences(inputs):
            return inputs
        return in_graph.split(inputs, self.tokenizer)[0]

    def _layers_of(self, inputs):
        if not tf.executing_eagerly() or tf.distribute.has_strategy():
            return self._computed(inputs)
        extras.check_not_forked()
        # Eager execution would take many times as long.
        return self._compiled(tf.TensorSpec([None] * inputs.shape.rank, inputs.dtype))(inputs)

    def _computed(self, inputs):
        return self.bilm(self.char_ids(inputs), boundaries=self.boundaries)[0]

    def _frozen_layers_of(self, inputs):
        if inputs.dtype != tf.string:
            return self._layers_of(inputs)
        if self.cached_layers is not None:
            return self.cached_layers(inputs)
        # Repeated sentences of a batch, such as the paragraph of several questions, are computed once.
        sentences, numbers = distinct_sentences(inputs)
        return tf.gather(self._layers_of(sentences), numbers)

    def _check(self, inputs: tf.Tensor | keras.KerasTensor) -> None:
        check_inputs(inputs, self._max_chars, self.tokenizer)
        if self.tokenizer == "unicode" and are_sentences(inputs):
            extras.check_installed("tensorflow_text")

    def _placeholder_output(self, inputs: tf.Tensor) -> tf.Tensor | list[tf.Tensor]:
        """Returns vectors of the right shape for float inputs, in a graph that raises when it runs.

        Keras builds a loaded model from the shapes of its inputs, and assumes float32. If this raised while tracing,
        Keras would not restore the weights of the model's other layers.
        """
        message = f"inputs: expected {expected_inputs(self._max_chars, self.tokenizer)}, found {inputs.dtype.name}"
        mask, dim = self.token_mask(inputs), 2 * self.bilm.config.lstm.projection_dim
        with tf.control_dependencies([tf.debugging.Assert(False, [message])]):
            vectors = tf.zeros(tf.concat([tf.shape(mask), [dim]], 0), self.compute_dtype)
        return self._single_or_list([tf.ensure_shape(vectors, (*mask.shape, dim))] * self.num_mixes)

    def _single_or_list(self, values: list[Any]) -> Any:
        return values if self.num_mixes > 1 else values[0]

    def _mix_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return *self.token_mask.compute_output_shape(input_shape), 2 * self.bilm.config.lstm.projection_dim


def _unique_name() -> str:
    """Returns `elmo`, `elmo_1`, ...; Keras would turn the class's name into `el_mo`."""
    number = keras.backend.get_uid("elmo") - 1
    return f"elmo_{number}" if number else "elmo"
