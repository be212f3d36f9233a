"""The object that is saved: callable, with the contract's signatures, and its variables as attributes."""

import functools
import os

import tensorflow as tf

from elmo_tf.model import log_probs
from elmo_tf.model.packed_bilm import PackedBiLM
from elmo_tf.model.sampled_softmax import SampledSoftmax
from elmo_tf.model.scalar_mix import ScalarMix
from elmo_tf.model.walk import States
from elmo_tf.savedmodel import contract, graph_checks, states
from elmo_tf.savedmodel.stored_weights import ATTRIBUTE, StoredWeights
from elmo_tf.text import in_graph
from elmo_tf.text import vocabulary as vocabulary_lib

Outputs = dict[str, tf.Tensor]


def build_root(
    bilm: PackedBiLM,
    mix: ScalarMix,
    tokenizer: str,
    initial: States,
    softmax: SampledSoftmax | None = None,
    vocabulary: str | os.PathLike | None = None,
) -> tf.train.Checkpoint:
    """Returns the object to save, with the functions and attributes of the contract.

    Args:
        bilm: the network.
        mix: the mix of its layers that the output `elmo` returns, built.
        tokenizer: how `default` splits sentences, one of `tokenizers.TOKENIZERS`.
        initial: variables, the states before every sentence.
        softmax: adds the function `score`.
        vocabulary: the file of its words, which has to be there until the object is saved.
    """
    weights = StoredWeights(bilm, softmax)
    functions = _Functions(weights, bilm, softmax, mix, tokenizer, initial)
    inputs = {name: list(specs.values()) for name, specs in functions.specs.items() if name != "stream"}
    inputs["initial_states"] = [tf.TensorSpec((), tf.int32, name="batch_size")]
    root = tf.train.Checkpoint(
        **{
            name: tf.function(getattr(functions, name), input_signature=specs, autograph=False)
            for name, specs in inputs.items()
        }
    )

    # Reusable SavedModels take `training`; here it changes nothing.
    @tf.function(input_signature=[*inputs["default"], tf.TensorSpec((), tf.bool)], autograph=False)
    def call(strings, training=False):
        return root.default(strings)

    root.__call__ = call
    root.stream = tf.function(functions.stream, autograph=False).get_concrete_function(**functions.specs["stream"])
    root.trainable_variables = [variable.value for variable in mix.trainable_variables]
    root.variables = [*root.trainable_variables, *weights.by_name.values()]
    setattr(root, ATTRIBUTE, weights.by_name)
    root.initial = tf.nest.flatten(initial)
    root.regularization_losses = []
    if softmax is not None:
        word, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(os.fspath(vocabulary), tf.string, word, tf.int64, number)
        root.vocabulary = tf.lookup.StaticHashTable(words, vocabulary_lib.UNKNOWN_ID)
        root.score = tf.function(
            functools.partial(functions.score, root.vocabulary), input_signature=inputs["default"], autograph=False
        )
    return root


class _Functions:
    """The contract's functions; all call one inner graph.

    Attributes:
        specs: each function's inputs, by name.
    """

    def __init__(
        self,
        weights: StoredWeights,
        bilm: PackedBiLM,
        softmax: SampledSoftmax | None,
        mix: ScalarMix,
        tokenizer: str,
        initial: States,
    ):
        self._weights, self._bilm, self._softmax, self._mix = weights, bilm, softmax, mix
        self._tokenizer, self._initial = tokenizer, initial
        lstm, self._max_chars = bilm.config.lstm, bilm.config.char_cnn.max_chars_per_token
        self._dim = lstm.projection_dim
        sizes = {"units": lstm.units, "projection_dim": self._dim, "max_chars_per_token": self._max_chars}
        inputs = contract.FUNCTIONS | {"stream": contract.TOKENS | contract.states(lstm.num_layers)}
        self.specs = {name: _specs(tensors, sizes) for name, tensors in inputs.items()}
        any_rows = tf.nest.map_structure(lambda state: tf.TensorSpec((None, state.shape[1]), tf.float32), initial)
        (ids,) = self.specs["char_ids"].values()
        self._outputs = tf.function(
            self._embed, input_signature=[ids, any_rows], autograph=False
        ).get_concrete_function()

    def _embed(self, char_ids: tf.Tensor, before: States) -> tuple[Outputs, dict[str, tf.Tensor]]:
        """Returns the outputs that every function has, and the states after the sentences, by name."""
        with self._weights.scope():
            layers, mask, after = self._bilm.embed(char_ids, before)
        layers, after = tf.nest.map_structure(tf.stop_gradient, (layers, after))  # only the mix is trainable
        layers = tf.ensure_shape(layers, (None, self._mix.num_layers, None, 2 * self._dim))
        elmo = self._mix(layers)
        num_tokens = tf.reduce_sum(tf.cast(mask, tf.float32), 1, keepdims=True)
        outputs = {"layers": layers, "word_emb": layers[:, 0, :, : self._dim], "elmo": elmo, "mask": mask}
        outputs["default"] = tf.math.divide_no_nan(tf.reduce_sum(elmo, 1), num_tokens)
        outputs |= {contract.lstm_outputs(number): layers[:, number] for number in range(1, self._mix.num_layers)}
        return outputs, states.by_name(after)

    def _from_initial(self, char_ids: tf.Tensor) -> Outputs:
        return self._outputs(char_ids, tf.nest.map_structure(tf.convert_to_tensor, self._initial))[0]

    def default(self, strings):
        strings = graph_checks.checked_strings(strings)
        tokens, lengths, offsets = in_graph.split_with_offsets(strings, self._tokenizer)
        texts = {"tokens": tokens} if offsets is None else {"tokens": tokens, "offsets": offsets}
        return self._from_initial(in_graph.encode_tokens(tokens, lengths, self._max_chars)) | texts

    def tokens(self, tokens, sequence_len):
        tokens, sequence_len = graph_checks.checked_tokens(tokens, sequence_len)
        real = tf.sequence_mask(sequence_len, tf.shape(tokens)[1])
        texts = {"tokens": tf.where(real, tokens, "")}
        return self._from_initial(in_graph.encode_tokens(tokens, sequence_len, self._max_chars)) | texts

    def char_ids(self, char_ids):
        return self._from_initial(graph_checks.checked_char_ids(char_ids, self._max_chars))

    def stream(self, tokens, sequence_len, **before):
        tokens, sequence_len = graph_checks.checked_tokens(tokens, sequence_len)
        before = graph_checks.checked_states(before, tf.size(sequence_len))
        ids = in_graph.encode_tokens(tokens, sequence_len, self._max_chars)
        ordered = [before[name] for name in contract.states(len(self._initial[0]))]
        found, after = self._outputs(ids, tf.nest.pack_sequence_as(self._initial, ordered))
        return found | after

    def score(self, vocabulary, strings):
        strings = graph_checks.checked_strings(strings)
        tokens, lengths = in_graph.split(strings, self._tokenizer)
        places = tf.range(tf.shape(tokens)[1] + 2)
        token_ids = tf.pad(tf.cast(vocabulary.lookup(tokens), tf.int32), ((0, 0), (1, 1)))  # `<S>` is 0
        token_ids = tf.where(places == lengths[:, None] + 1, vocabulary_lib.END_ID, token_ids)
        char_ids = in_graph.encode_tokens(tokens, lengths, self._max_chars)
        with self._weights.scope():
            found = log_probs.token_log_probs(self._bilm, self._softmax, char_ids, token_ids)
        total = tf.cast(tf.reduce_sum(tf.cast(found, tf.float64), (1, 2)), tf.float32)
        return {"log_probs": found, "total": total, "tokens": tokens}

    def initial_states(self, batch_size):
        return states.by_name(
            tf.nest.map_structure(lambda state: tf.repeat(tf.convert_to_tensor(state), batch_size, 0), self._initial)
        )


def _specs(tensors: dict[str, contract.Tensor], sizes: dict[str, int]) -> dict[str, tf.TensorSpec]:
    return {
        name: tf.TensorSpec([sizes.get(dimension) for dimension in tensor.shape], tensor.dtype, name=name)
        for name, tensor in tensors.items()
    }
