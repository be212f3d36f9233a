"""The object that is saved: callable, with the contract's signatures, and its variables as attributes."""

import functools
import os

import tensorflow as tf

from elmo_tf.model import fast
from elmo_tf.model.bilm import SampledSoftmax
from elmo_tf.model.scalar_mix import ScalarMix
from elmo_tf.savedmodel import contract, graph_checks
from elmo_tf.savedmodel.stored_weights import ATTRIBUTE, StoredWeights
from elmo_tf.text import in_graph
from elmo_tf.text import vocabulary as vocabulary_lib

Outputs = dict[str, tf.Tensor]


def build_root(
    bilm: fast.BiLM,
    mix: ScalarMix,
    tokenizer: str,
    softmax: SampledSoftmax | None = None,
    vocabulary: str | os.PathLike | None = None,
) -> tf.train.Checkpoint:
    """Returns the object to save, with the functions and attributes of the contract.

    Args:
        bilm: the network.
        mix: the mix of its layers that the output `elmo` returns, built.
        tokenizer: how `default` splits sentences, by a name in `tokenizers.TOKENIZERS`.
        softmax: adds the function `score`.
        vocabulary: the file of its words, which must exist until the object is saved.
    """
    weights = StoredWeights(bilm, softmax)
    functions = _Functions(weights, bilm, mix, tokenizer)
    inputs = {name: list(specs.values()) for name, specs in functions.specs.items()}
    root = tf.train.Checkpoint(
        **{
            name: tf.function(getattr(functions, name), input_signature=specs, autograph=False)
            for name, specs in inputs.items()
        }
    )

    # Reusable SavedModels take `training`; here it changes nothing.
    @tf.function(input_signature=[*inputs["default"], tf.TensorSpec((), tf.bool)], autograph=False)
    def call(strings: tf.Tensor, training: bool | tf.Tensor = False) -> Outputs:
        return root.default(strings)

    root.__call__ = call
    root.trainable_variables = [mix.scalar_parameters.value, mix.gamma.value]  # `read_mix` relies on the order
    root.variables = [*root.trainable_variables, *weights.by_name.values()]
    setattr(root, ATTRIBUTE, weights.by_name)
    root.regularization_losses = []
    if softmax is not None and vocabulary is not None:
        word, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(os.fspath(vocabulary), tf.string, word, tf.int64, number)
        root.vocabulary = tf.lookup.StaticHashTable(words, vocabulary_lib.UNKNOWN_ID)
        root.score = tf.function(
            functools.partial(functions.score, softmax, root.vocabulary),
            input_signature=inputs["default"],
            autograph=False,
        )
    return root


class _Functions:
    """The contract's functions; all call the same inner graph.

    Attributes:
        specs: each function's inputs, by name.
    """

    def __init__(
        self,
        weights: StoredWeights,
        bilm: fast.BiLM,
        mix: ScalarMix,
        tokenizer: str,
    ):
        self._weights, self._bilm, self._mix, self._tokenizer = weights, bilm, mix, tokenizer
        self._dim, self._max_chars = bilm.config.lstm.projection_dim, bilm.config.char_cnn.max_chars_per_token
        sizes = {"max_chars_per_token": self._max_chars}
        self.specs = {name: _specs(tensors, sizes) for name, tensors in contract.FUNCTIONS.items()}
        ids = list(self.specs["char_ids"].values())
        self._outputs = tf.function(self._embed, input_signature=ids, autograph=False).get_concrete_function()

    def _embed(self, char_ids: tf.Tensor) -> Outputs:
        """Returns the outputs that every function has."""
        with self._weights.scope():
            layers, mask = self._bilm.embed(char_ids)
        layers = tf.stop_gradient(layers)  # only the mix is trainable
        layers = tf.ensure_shape(layers, (None, self._mix.num_layers, None, 2 * self._dim))
        elmo = self._mix(layers)
        num_tokens = tf.reduce_sum(tf.cast(mask, tf.float32), 1, keepdims=True)
        outputs = {"layers": layers, "word_emb": layers[:, 0, :, : self._dim], "elmo": elmo, "mask": mask}
        outputs["default"] = tf.math.divide_no_nan(tf.reduce_sum(elmo, 1), num_tokens)
        outputs |= {f"lstm_outputs{number}": layers[:, number] for number in range(1, self._mix.num_layers)}
        return outputs

    def default(self, strings: tf.Tensor) -> Outputs:
        strings = graph_checks.checked_batch({"strings": strings})["strings"]
        tokens, lengths, offsets = in_graph.split_with_offsets(strings, self._tokenizer)
        texts = {"tokens": tokens} if offsets is None else {"tokens": tokens, "offsets": offsets}
        return self._outputs(in_graph.encode_tokens(tokens, lengths, self._max_chars)) | texts

    def tokens(self, tokens: tf.Tensor, sequence_len: tf.Tensor) -> Outputs:
        tokens, sequence_len = graph_checks.checked_tokens(tokens, sequence_len)
        real = tf.sequence_mask(sequence_len, tf.shape(tokens)[1])
        texts = {"tokens": tf.where(real, tokens, "")}
        return self._outputs(in_graph.encode_tokens(tokens, sequence_len, self._max_chars)) | texts

    def char_ids(self, char_ids: tf.Tensor) -> Outputs:
        return self._outputs(graph_checks.checked_char_ids(char_ids, self._max_chars))

    def score(self, softmax: SampledSoftmax, vocabulary: tf.lookup.StaticHashTable, strings: tf.Tensor) -> Outputs:
        strings = graph_checks.checked_batch({"strings": strings})["strings"]
        tokens, lengths = in_graph.split(strings, self._tokenizer)
        positions = tf.range(tf.shape(tokens)[1] + 2)
        token_ids = tf.pad(tf.cast(vocabulary.lookup(tokens), tf.int32), ((0, 0), (1, 1)))  # `<S>` is 0
        token_ids = tf.where(positions == lengths[:, None] + 1, vocabulary_lib.END_ID, token_ids)
        char_ids = in_graph.encode_tokens(tokens, lengths, self._max_chars)
        with self._weights.scope():
            by_token = fast.token_log_probs(self._bilm, softmax, char_ids, token_ids)
        total = tf.cast(tf.reduce_sum(tf.cast(by_token, tf.float64), (1, 2)), tf.float32)
        return {"log_probs": by_token, "total": total, "tokens": tokens}


def _specs(tensors: dict[str, contract.Tensor], sizes: dict[str, int]) -> dict[str, tf.TensorSpec]:
    return {
        name: tf.TensorSpec([sizes.get(dimension) for dimension in tensor.shape], tensor.dtype, name=name)
        for name, tensor in tensors.items()
    }
