"""TensorBoard's files, and diagnostics of single steps, which are too slow to compute in every step."""

import contextlib
import logging
import operator
import os
import pathlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorboard.plugins.hparams import api as hparams_api

from elmo_tf import config as config_lib
from elmo_tf.files import stores
from elmo_tf.model.variables import DIRECTIONS, relative_names
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text.vocabulary import SPECIAL_TOKENS
from elmo_tf.training.step import Trainer

if TYPE_CHECKING:
    from elmo_tf.model.bilm import PlainBiLM, States
    from elmo_tf.records.windows import Window

_log = logging.getLogger("elmo_tf")

_MAX_WORDS = 1000  # in the projector
_MAX_VALUES = 2**18  # of a variable, from evenly spaced rows
# The layer of a weight, by its path.
_LAYERS = (
    (r"char_cnn/embedding", "characters"),
    (r"char_cnn/(kernel|bias)_\d+", "convolutions"),
    (r"char_cnn/highway_\d+/.*", "highways"),
    (r"char_cnn/projection/.*", "token_projection"),
    (r"((forward|backward)_\d+)/.*", r"lstm_\1"),
    (r"softmax/.*", "softmax"),
)
# The scopes of a graph's layers: Keras opens each twice, so that the operations are in the second one, with `_1`.
_SCOPES = r'(?<=["/^])(char_cnn|highway_\d+|projection|(?:forward|backward)_\d+|softmax)_1(?=/)'
# Descriptions of TensorBoard's cards, by tag or by group.
_DESCRIPTIONS = {
    "configuration": "The settings of the run.",
    "learning/loss_forward_nats": "Forward loss: mean nats per training token, with sampled softmax.",
    "learning/loss_backward_nats": "Backward loss: mean nats per training token, with sampled softmax.",
    "learning/perplexity_sampled_softmax": "exp of the mean of both losses: of training text and with sampled softmax, "
    "so it cannot be compared with the held-out perplexity.",
    "learning/epoch": "Passes over the training text so far.",
    "learning/tokens_per_second": "Training tokens per second, without evaluations.",
    "optimizer/gradient_norm_before_clip": "Global norm of the gradients.",
    "optimizer/gradient_norm_after_clip": "The same, but at most train.clip_norm.",
    "optimizer/learning_rate": "The learning rate of the step.",
    "heldout/perplexity": "Held-out perplexity with the full softmax: exp of the mean of both directions' losses.",
    "heldout/best_perplexity": "The lowest held-out perplexity so far, for the tab HParams.",
    "heldout/forward_perplexity": "Held-out perplexity of the forward direction, with the full softmax.",
    "heldout/backward_perplexity": "Held-out perplexity of the backward direction, with the full softmax.",
    "sampled_against_full_softmax": "Loss of one training window, without dropout, with the sampled or the full "
    "softmax, in nats per token.",
    "update_to_weight": "Norm of this step's change of the layer's weights, divided by the norm of the weights.",
    "weight_histograms": "The layer's weights; of a large layer, a sample.",
    "output_histograms": "The layer's outputs for one training window, without dropout.",
}


def _description(tag: str) -> str:
    return _DESCRIPTIONS.get(tag) or _DESCRIPTIONS[tag.partition("/")[0]]


class Board:
    """Writes TensorBoard's files in the folder `run`; if that fails, it warns once and training continues."""

    def __init__(self, run: str | os.PathLike):
        self._run = pathlib.Path(run)
        self._failed = False
        self._writer = tf.summary.create_noop_writer()
        with self._warn_once():
            self._writer = tf.summary.create_file_writer(str(self._run))

    def configuration(self, config: config_lib.Config, step: int) -> None:
        """Shows the configuration as a table of keys and values, and among those of other runs in the tab HParams."""
        values = {name: operator.attrgetter(name)(config) for name in sorted(config_lib.keys())}
        lines = ["| key | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in values.items())]
        with self._writing():
            tf.summary.text("configuration", "\n".join(lines), step, _description("configuration"))
            # Named, because runs without a name and with equal settings would be one row.
            hparams_api.hparams(config_lib.hparams(config), str(self._run.absolute().parent))

    def network(self, bilm: "PlainBiLM") -> None:
        """Shows the network in the tab Graphs."""
        with self._writing():
            tf.summary.graph(network_graph(bilm))

    def scalars(self, group: str, values: dict[str, float], step: int) -> None:
        """Adds a point to the curve of each value."""
        with self._writing():
            for name, value in values.items():
                tag = f"{group}/{name}"
                tf.summary.scalar(tag, value, step, _description(tag))

    def histograms(self, group: str, values: dict[str, np.ndarray], step: int) -> None:
        """Adds a histogram of each array."""
        with self._writing():
            for name, array in values.items():
                tf.summary.histogram(f"{group}/{name}", array, step, description=_description(group))

    def words(self, words: list[bytes], vectors: np.ndarray) -> None:
        """Replaces the projector's vectors and their words."""
        tensor = "".join("\t".join(f"{value:.5g}" for value in row) + "\n" for row in vectors)
        config = (
            'embeddings { tensor_name: "token vectors" '
            'tensor_path: "token_vectors.tsv" metadata_path: "token_vectors_words.tsv" }\n'
        )
        with self._warn_once():
            stores.write(self._run / "token_vectors.tsv", tensor.encode())
            stores.write(self._run / "token_vectors_words.tsv", b"\n".join(words) + b"\n")
            stores.write(self._run / "projector_config.pbtxt", config.encode())

    def flush(self) -> None:
        """Writes buffered events."""
        with self._warn_once():
            self._writer.flush()

    def close(self) -> None:
        """Writes and closes the files."""
        with self._warn_once():
            self._writer.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._warn_once(), self._writer.as_default():
            yield

    @contextlib.contextmanager
    def _warn_once(self) -> Iterator[None]:
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            if not self._failed:
                _log.warning("warning: TensorBoard's files in %s cannot be written: %s", self._run, error)
            self._failed = True


def network_graph(bilm: "PlainBiLM") -> tf.compat.v1.GraphDef:
    """Returns the network with its softmax as a graph of the plain layers of `bilm.py`, whatever computes in training.

    Its inputs are the character ids `(2, B, T, C)` and the targets `(2, B, T)` of both directions.
    """

    def losses(char_ids: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("initial_states"):
            states = bilm.zero_states(tf.shape(targets)[1])
        directions = tf.unstack(bilm.char_cnn(char_ids))
        outputs, _ = bilm.run_directions(directions, states, lambda lstm, *given: lstm(*given))
        top = tf.reshape(tf.stack([layers[-1] for layers in outputs]), (-1, bilm.config.lstm.projection_dim))
        return bilm.softmax(top, tf.reshape(targets, (-1,)))

    shape = 2, None, None
    ids = tf.TensorSpec((*shape, bilm.config.char_cnn.max_chars_per_token), tf.int32, "char_ids")
    traced = tf.function(losses, autograph=False).get_concrete_function(ids, tf.TensorSpec(shape, tf.int32, "targets"))
    text = re.sub(_SCOPES, r"\1", str(traced.graph.as_graph_def()))
    return text_format.Parse(text, tf.compat.v1.GraphDef())


class Before(NamedTuple):
    """The diagnostics of a step that are computed before it."""

    losses: dict[str, float]  # nats per token
    outputs: dict[str, np.ndarray]  # float32 (numbers,), of each layer
    weights: dict[str, np.ndarray]  # float32 (numbers,), a sample of each layer's


class Diagnostics:
    """Diagnostics of a step, on the streams of this process's first replica; `words` are those of the softmax."""

    def __init__(self, trainer: Trainer, words: list[bytes]):
        self._trainer = trainer
        self._words = words[len(SPECIAL_TOKENS) :][:_MAX_WORDS]
        self._run = tf.function(self._forward, autograph=False)

    def before(self, window: "Window", number: int) -> Before:
        """Computes values before the step `number`, which gets `window`."""
        trainer = self._trainer
        local = trainer.strategy.experimental_local_results
        states = tf.nest.map_structure(lambda value: local(value)[0], trainer.states)
        piece = tf.nest.map_structure(tf.constant, window.part(0, trainer.config.batch_size))
        losses, outputs = self._run(piece, states, tf.constant([trainer.config.seed, number], tf.int32))
        arrays = {name: np.ravel(output) for name, output in outputs.items()}
        return Before({name: float(loss) for name, loss in losses.items()}, arrays, self._sampled_weights())

    def write(self, board: Board, step: int, before: Before) -> None:
        """Writes the diagnostics, once the step is done."""
        weights, bilm = self._sampled_weights(), self._trainer.bilm
        ratios = {}
        for name, old in before.weights.items():
            change, norm = np.linalg.norm(weights[name] - old), np.linalg.norm(old)
            ratios[name] = float(change / norm) if norm else 0.0
        board.scalars("sampled_against_full_softmax", before.losses, step)
        board.scalars("update_to_weight", ratios, step)
        board.histograms("weight_histograms", weights, step)
        board.histograms("output_histograms", before.outputs, step)
        ids = char_ids_lib.encode_tokens(self._words, bilm.config.char_cnn.max_chars_per_token)
        board.words(self._words, bilm.char_cnn(tf.constant(ids)[None])[0].numpy())

    def _forward(self, window: "Window", states: "States", seed: tf.Tensor) -> tuple[dict, dict]:
        bilm, config = self._trainer.bilm, self._trainer.config
        run = bilm.run_window(window, states)
        losses, outputs = {}, {"token_vectors": run.token_vectors[0]}
        for number, name in enumerate(DIRECTIONS):
            layers = run.layers[number]
            outputs |= {f"lstm_{name}_{layer}": values for layer, values in enumerate(layers)}
            flat = tf.reshape(layers[-1], (-1, layers[-1].shape[-1]))
            targets = tf.reshape((window.forward_targets, window.backward_targets)[number], (-1,))
            for kind, num_sampled in (("sampled", config.num_sampled), ("full", 0)):
                nats = bilm.softmax(flat, targets, num_sampled=num_sampled, seed=seed)
                losses[f"{name}_{kind}"] = tf.reduce_mean(nats)
        return losses, outputs

    def _sampled_weights(self) -> dict[str, np.ndarray]:
        """Returns a sample of the weights by layer."""
        by_layer: dict[str, list[np.ndarray]] = {}
        for name, variable in relative_names(self._trainer.bilm).items():
            stride = max(1, variable.shape.num_elements() // _MAX_VALUES)
            by_layer.setdefault(layer_of(name), []).append(np.ravel(variable.value[::stride]))
        return {name: np.concatenate(values) for name, values in by_layer.items()}


def layer_of(path: str) -> str:
    """Returns the name of a weight's layer."""
    for pattern, name in _LAYERS:
        if match := re.fullmatch(pattern, path):
            return match.expand(name)
    return path.partition("/")[0]
