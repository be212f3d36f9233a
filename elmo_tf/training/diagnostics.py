"""Diagnostics of single steps: values that are too slow to compute in every step."""

import re

import numpy as np
import tensorflow as tf

from elmo_tf.model.encoder import States
from elmo_tf.model.variables import DIRECTIONS, relative_names
from elmo_tf.records.windows import Window
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text.vocabulary import SPECIAL_TOKENS
from elmo_tf.training.board import Board
from elmo_tf.training.step import Trainer

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


class Diagnostics:
    """Diagnostics of a step, on the streams of this process's first replica; `words` are those of the softmax."""

    def __init__(self, trainer: Trainer, words: list[bytes]):
        self._trainer = trainer
        self._words = words[len(SPECIAL_TOKENS) :][:_MAX_WORDS]
        self._run = tf.function(self._forward, autograph=False)

    def before(self, window: Window, number: int) -> None:
        """Computes values before the step `number`, which gets `window`."""
        trainer = self._trainer
        local = trainer.strategy.experimental_local_results
        states = tf.nest.map_structure(lambda value: local(value)[0], trainer.states)
        piece = tf.nest.map_structure(tf.constant, window.part(0, trainer.config.batch_size))
        losses, outputs = self._run(piece, states, tf.constant([trainer.config.seed, number], tf.int32))
        self._losses = {name: float(loss) for name, loss in losses.items()}
        self._activations = {name: np.ravel(output) for name, output in outputs.items()}
        self._weights = self._sampled_weights()

    def write(self, board: Board, step: int) -> None:
        """Writes the diagnostics, once the step is done."""
        weights, bilm = self._sampled_weights(), self._trainer.bilm
        ratios = {}
        for name, before in self._weights.items():
            change, norm = np.linalg.norm(weights[name] - before), np.linalg.norm(before)
            ratios[name] = float(change / norm) if norm else 0.0
        board.scalars("sampled_against_full_softmax", self._losses, step)
        board.scalars("update_to_weight", ratios, step)
        board.histograms("weight_histograms", weights, step)
        board.histograms("output_histograms", self._activations, step)
        ids = char_ids_lib.encode_tokens(self._words, bilm.config.char_cnn.max_chars_per_token)
        board.words(self._words, bilm.char_cnn(tf.constant(ids)[None])[0].numpy())

    def _forward(self, window: Window, states: States, seed: tf.Tensor) -> tuple[dict, dict]:
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
