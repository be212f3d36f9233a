"""A trained system as a SavedModel, independent of Keras and this package: strings to labels, spans, probabilities.

Signatures: `tokens` takes token sequences, string `(batch, time)`, padded on the right with `""`; `default`, also
called `serving_default`, takes sentences, string `(batch,)`, and splits them like the system's files. Their outputs are
those of `System.served`; `default` also returns the tokens. A question answering system has only `tokens`.
"""

import os
import pathlib

import keras
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.savedmodel import contract, graph_checks, sample_calls, writing
from elmo_tf.tasks.layers.mention_spans import MentionSpans
from elmo_tf.tasks.layers.token_layers import WordEmbedding
from elmo_tf.tasks.system import System
from elmo_tf.text import in_graph

Tensors = dict[str, tf.Tensor]


def export(system: System, network: keras.Model, output: str | os.PathLike) -> pathlib.Path:
    """Writes the next version in `output`, once a fresh process has verified it; see `Trained.export`."""
    if any(isinstance(layer, MentionSpans) for layer in network.layers):
        raise InputError(system.name, "TensorFlow alone cannot run this system: its spans are chosen in Python")

    def write(folder: pathlib.Path) -> None:
        root = _root(system, network)
        signatures = {name: getattr(root, name) for name in ("default", "tokens") if hasattr(root, name)}
        serving = {"serving_default": next(iter(signatures.values()))}
        try:
            tf.saved_model.save(root, str(folder), signatures | serving)
        except tf.errors.OpError as error:
            raise OSError(f"cannot write the SavedModel: {error.message}") from error
        sample_calls.write(folder, signatures | serving, _sample_inputs(signatures | serving))
        about = {"task": system.name, "labels": system.labels}
        (folder / contract.SYSTEM_FILE).write_text(json_file.dumps(about, indent=1) + "\n", "utf-8")

    return writing.new_version(output, write)


def _root(system: System, network: keras.Model) -> tf.train.Checkpoint:
    """Returns the object to save: the signatures' functions and their dependencies."""

    def tokens(**inputs: tf.Tensor) -> Tensors:
        inputs = graph_checks.checked_batch(inputs)
        extra = {name: inputs.pop(name) for name in system.extra_inputs}
        # At least one position: networks cannot handle a batch of only empty sentences.
        missing = {name: tf.cast(tf.shape(strings)[1] == 0, tf.int32) for name, strings in inputs.items()}
        wide = {name: tf.pad(strings, [[0, 0], [0, missing[name]]]) for name, strings in inputs.items()}
        outputs = network(system.served_inputs(wide, extra), training=False)
        served = system.served(system.decode(network, outputs))
        if "tags" in served:
            served["tags"] = served["tags"][:, : tf.shape(inputs["tokens"])[1]]
        return served

    def default(**inputs: tf.Tensor) -> Tensors:
        inputs = graph_checks.checked_batch(inputs)
        extra = {name: inputs[name] for name in system.extra_inputs}
        # At least one position, so that a batch of empty sentences has a first token.
        texts = {
            name: tf.concat([inputs[text], ["-"]], 0) for name, text in zip(system.token_inputs, names, strict=True)
        }
        split = {name: in_graph.split(strings, tokenizer)[0][:-1] for name, strings in texts.items()}
        return split | root.tokens(**split, **extra)

    # The index of a predicate counts the words between white space.
    tokenizer = "whitespace" if system.extra_inputs else system.reading.tokenizer
    names = system.token_inputs if len(system.token_inputs) > 1 else ("strings",)
    root = tf.train.Checkpoint()
    specs = {name: tf.TensorSpec((None, None), tf.string, name=name) for name in system.token_inputs}
    root.tokens = tf.function(tokens, autograph=False).get_concrete_function(**specs, **system.extra_inputs)
    if system.splits_sentences and tokenizer != "unicode":  # its operation is not part of TensorFlow
        sentences = {name: tf.TensorSpec((None,), tf.string, name=name) for name in names}
        root.default = tf.function(default, autograph=False).get_concrete_function(**sentences, **system.extra_inputs)
    root.variables = [variable.value for variable in network.variables]
    root.tables = [layer.table for layer in network.layers if isinstance(layer, WordEmbedding)]
    return root


def _sample_inputs(signatures: dict[str, tf.types.experimental.ConcreteFunction]) -> dict[str, Tensors]:
    """Returns inputs of each signature: sentences or their tokens, and zeros for other dtypes."""
    sentences = [sentence for sentence in sample_calls.SENTENCES if sentence]
    by_rank = {1: tf.constant(sentences), 2: in_graph.split(tf.constant(sentences))[0]}
    return {
        signature: {
            name: by_rank[spec.shape.rank] if spec.dtype == tf.string else tf.zeros(len(sentences), spec.dtype)
            for name, spec in function.structured_input_signature[1].items()
        }
        for signature, function in signatures.items()
    }
