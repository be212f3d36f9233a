"""The object that is saved: callable, with the contract's signatures, and its variables as attributes."""

import tensorflow as tf

from elmo_tf.bilm.packed import PackedBiLM
from elmo_tf.bilm.walk import States
from elmo_tf.layers.scalar_mix import ScalarMix
from elmo_tf.savedmodel import contract, graph_checks, states
from elmo_tf.savedmodel.stored_weights import ATTRIBUTE, StoredWeights
from elmo_tf.text import in_graph


def build_root(
    bilm: PackedBiLM,
    mix: ScalarMix,
    tokenizer: str = "whitespace",
    initial: States | None = None,
) -> tf.train.Checkpoint:
    """Returns the object to save, with the functions and attributes of the contract.

    Args:
        bilm: the network.
        mix: the mix of its layers behind the output `elmo`, built.
        tokenizer: how `default` splits sentences, one of `contract.TOKENIZERS`.
        initial: variables, the states before every sentence; None: zero.
    """
    model = bilm.config
    max_chars, dim = model.char_cnn.max_chars_per_token, model.lstm.projection_dim
    sizes = contract.sizes(model.lstm.num_layers, model.lstm.units, dim, max_chars)
    specs = {name: _specs(contract.inputs(name, model.lstm.num_layers), sizes) for name in contract.FUNCTIONS}
    (ids_spec,) = specs["char_ids"].values()
    weights = StoredWeights(bilm)
    initial = states.zero(bilm) if initial is None else initial

    @tf.function(input_signature=[ids_spec, tf.nest.map_structure(_any_rows, initial)])
    def outputs(char_ids, before):
        layers, mask, after = weights.embed(char_ids, before)
        layers, after = tf.nest.map_structure(tf.stop_gradient, (layers, after))  # only the mix is trainable
        layers = tf.ensure_shape(layers, (None, mix.num_layers, None, 2 * dim))
        elmo = mix(layers)
        num_tokens = tf.reduce_sum(tf.cast(mask, tf.float32), 1, keepdims=True)
        result = {"layers": layers, "word_emb": layers[:, 0, :, :dim], "elmo": elmo, "mask": mask}
        result["default"] = tf.math.divide_no_nan(tf.reduce_sum(elmo, 1), num_tokens)
        result |= {contract.lstm_outputs(number): layers[:, number] for number in range(1, mix.num_layers)}
        return result, states.by_name(after)

    traced = outputs.get_concrete_function()  # one graph for all signatures

    def from_initial(char_ids):
        return traced(char_ids, tf.nest.map_structure(tf.convert_to_tensor, initial))[0]

    @tf.function(input_signature=list(specs["default"].values()))
    def default(strings):
        tokens, lengths, offsets = in_graph.split_with_offsets(graph_checks.checked_strings(strings), tokenizer)
        texts = {"tokens": tokens} if offsets is None else {"tokens": tokens, "offsets": offsets}
        return from_initial(in_graph.encode_tokens(tokens, lengths, max_chars)) | texts

    @tf.function(input_signature=list(specs["tokens"].values()))
    def tokens(tokens, sequence_len):
        tokens, sequence_len = graph_checks.checked_tokens(tokens, sequence_len)
        real = tf.sequence_mask(sequence_len, tf.shape(tokens)[1])
        texts = {"tokens": tf.where(real, tokens, "")}
        return from_initial(in_graph.encode_tokens(tokens, sequence_len, max_chars)) | texts

    @tf.function(input_signature=[ids_spec])
    def char_ids(char_ids):
        return from_initial(graph_checks.checked_char_ids(char_ids, max_chars))

    # Reusable SavedModels take `training`; here it changes nothing.
    @tf.function(input_signature=[*specs["default"].values(), tf.TensorSpec((), tf.bool)])
    def call(strings, training=False):
        return default(strings)

    @tf.function
    def stream(tokens, sequence_len, **before):
        tokens, sequence_len = graph_checks.checked_tokens(tokens, sequence_len)
        before = graph_checks.checked_states(before, tf.size(sequence_len))
        ids = in_graph.encode_tokens(tokens, sequence_len, max_chars)
        found, after = traced(ids, states.nested(before))
        return found | after

    @tf.function(input_signature=[tf.TensorSpec((), tf.int32, name="batch_size")])
    def initial_states(batch_size):
        rows = tf.nest.map_structure(lambda state: tf.repeat(tf.convert_to_tensor(state), batch_size, 0), initial)
        return states.by_name(rows)

    root = tf.train.Checkpoint(default=default, tokens=tokens, char_ids=char_ids, initial_states=initial_states)
    root.stream = stream.get_concrete_function(**specs["stream"])
    root.__call__ = call
    root.trainable_variables = [variable.value for variable in mix.trainable_variables]
    root.variables = [*root.trainable_variables, *weights.by_name.values()]
    setattr(root, ATTRIBUTE, weights.by_name)
    root.initial = tf.nest.flatten(initial)
    root.regularization_losses = []
    return root


def _specs(tensors: dict[str, contract.Tensor], sizes: dict[str, int]) -> dict[str, tf.TensorSpec]:
    return {
        name: tf.TensorSpec([sizes.get(dimension) for dimension in tensor.shape], tensor.dtype, name=name)
        for name, tensor in tensors.items()
    }


def _any_rows(state: tf.Variable) -> tf.TensorSpec:
    return tf.TensorSpec((None, state.shape[1]), tf.float32)
