"""Training: Keras's `fit` with early stopping on the dev score, schedules and a state from which it resumes.

Best epoch, learning rate and early stopping are computed from the history of dev scores alone. So a killed run resumes
after its last complete epoch and ends with the same result as an uninterrupted run.
"""

import io
import json
import logging
import math
import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams_api

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, damage_reported
from elmo_tf.files import intact, json_file, stores
from elmo_tf.files.progress import ProgressLine
from elmo_tf.keras_layer import ELMo
from elmo_tf.tasks import batching
from elmo_tf.tasks.batching import Predictor
from elmo_tf.tasks.layers.mixed_layers import MixedLayers
from elmo_tf.tasks.recipe import Fit
from elmo_tf.tasks.system import Example, System

FILE = "state.npz"
_TO_TRY = (
    "Try, in another --workdir, more epochs (--set fit.epochs=N), smaller batches (--set fit.batch_size=8), a higher "
    "rate (--set fit.learning_rate=0.003), --glove, --model, or more data"
)
_HISTORY = "history"

_log = logging.getLogger("elmo_tf")

# For each epoch: loss, learning rate, steps, seconds, and dev scores unless the epoch was not scored.
History = list[dict[str, Any]]


def fit(
    system: System,
    network: keras.Model,
    train: Sequence[Example],
    dev: Sequence[Example],
    folder: str | os.PathLike,
    about: Mapping[str, Any] | None = None,
) -> History:
    """Trains a network on `train` and sets it to the weights of the epoch with the highest score on `dev`.

    Writes to `folder` the state after each epoch, from which a killed run resumes, and logs for TensorBoard, with the
    recipe and what else is known `about` the run as hyperparameters. Raises `InputError` if the loss is not finite, or
    no epoch has a score above 0.
    """
    folder, recipe = pathlib.Path(folder), system.recipe.fit
    training = _Training(system, network)
    training.compile(optimizer(recipe), jit_compile=False)
    training.optimizer.build(network.trainable_variables)
    state = _State(training, folder)
    history = state.restore()
    epochs = _Epochs(Predictor(system, network), dev, state, history)
    if not epochs.at_end():
        board = keras.callbacks.TensorBoard(str(folder / "logs"), write_graph=False)
        with tf.summary.create_file_writer(str(folder / "logs" / "train")).as_default():  # beside Keras's curves
            about = {name: value for name, value in (about or {}).items() if value is not None}
            hparams_api.hparams(
                config_lib.hparams(system.recipe) | {"task": system.name, **about}, str(folder.absolute())
            )
        data, count = batching.training_data(system, train, len(history))
        options = {"epochs": recipe.epochs, "initial_epoch": len(history), "callbacks": [epochs, board]}
        # Without the number of steps, Keras starts one extra step, which fails but still increments
        # `optimizer.iterations`.
        training.fit(data, steps_per_epoch=count, **options, shuffle=False, verbose=0)
    if best_score(history, system.metric) == 0:
        raise InputError(f"dev {system.metric}", f"0 after {len(history)} epochs: nothing was learned. {_TO_TRY}")
    state.use_best()
    return history


def optimizer(recipe: Fit) -> keras.optimizers.Optimizer:
    """Returns Keras's optimizer of a recipe, Adam or Adadelta, with its clipping and its average of the weights."""
    options = {
        "learning_rate": recipe.learning_rate,
        "epsilon": recipe.epsilon,
        "global_clipnorm": recipe.clip_norm or None,
        "clipvalue": recipe.clip_value or None,
        "use_ema": recipe.ema > 0,
        "ema_momentum": recipe.ema,
    }
    if recipe.optimizer == "adadelta":
        return keras.optimizers.Adadelta(rho=0.95, **options)
    return keras.optimizers.Adam(**options)


def best_score(history: History, metric: str) -> float:
    """Returns the highest dev score; 0 if no epoch was scored."""
    return max((epoch["dev"][metric] for epoch in history if "dev" in epoch), default=0.0)


def best_epoch(history: History, metric: str) -> int:
    """Returns the index of the first epoch with the highest dev score; an epoch without a score is never the best."""
    scores = [epoch["dev"][metric] if "dev" in epoch else -math.inf for epoch in history]
    return scores.index(max(scores))


def learning_rate(recipe: Fit, history: History, metric: str, step: int = 0) -> float:
    """Returns the rate after the epochs of `history` and `step` steps, counted through all epochs."""
    rate = recipe.learning_rate * recipe.decay_rate ** (step // recipe.decay_steps)
    best, waited = -math.inf, 0
    for score in [epoch["dev"][metric] for epoch in history if recipe.halve_after and "dev" in epoch]:
        waited = 0 if score > best else waited + 1
        best = max(best, score)
        if waited == recipe.halve_after:
            rate, waited = rate / 2, 0
    return rate


def mixes(network: keras.Model, place: str) -> dict[str, float]:
    """Returns each layer's weight and gamma of the mix at each `place` of a network, by names for TensorBoard."""
    layers = [layer for layer in network.layers if isinstance(layer, ELMo | MixedLayers)]
    names = ("input", "output") if place == "both" else (place,)
    values: dict[str, float] = {}
    for name, mix in zip(names, layers[0].mixes if layers else (), strict=False):
        weights = enumerate(tf.nn.softmax(mix.scalar_parameters).numpy().tolist())
        values |= {f"elmo_{name}/layer_{number}": weight for number, weight in weights}
        values[f"elmo_{name}/gamma"] = float(mix.gamma)
    return values


class _Training(keras.Model):
    """A network in training, with the loss of its system."""

    def __init__(self, system: System, network: keras.Model):
        super().__init__(name="training")
        self.system = system
        self.network = network
        self.example_loss = keras.metrics.Mean("example_loss")

    def call(self, inputs, training=None):
        return self.network(inputs, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = self.system.loss(self.network, y_pred, y)
        count = self.system.num_examples(x)
        self.example_loss.update_state(loss / count if self.system.sums_loss else loss, sample_weight=count)
        return loss + sum(self.losses)


class _State:
    """State for resuming a run: trained weights, optimizer's, dropout seeds, and the best epoch's weights.

    A single file holds them and the history of dev scores, so the best weights always belong to the best epoch.
    """

    def __init__(self, training: _Training, folder: pathlib.Path):
        self._weights = training.network.trainable_variables
        others = training.network.non_trainable_variables
        seeds = [variable for variable in others if "seed_generator" in variable.path]
        self._all = [*self._weights, *training.optimizer.variables, *seeds]
        self._path = folder / FILE
        self.keep_best()

    def restore(self) -> History:
        """Sets the state of the run so far and returns its history."""
        if not self._path.exists():
            return []
        intact.check_regular(self._path)
        state = "a complete state of a run; delete the file to train from the start"
        with damage_reported(state, self._path), np.load(self._path) as stored:
            arrays = [stored[str(number)] for number in range(len(stored.files) - 1)]
            history = json.loads(str(stored[_HISTORY]))
        for variable, array in zip(self._all, arrays, strict=False):
            variable.assign(array)
        self._best = arrays[len(self._all) :]
        _log.info("resumed after epoch %d", len(history))
        return history

    def save(self, history: History) -> None:
        content = io.BytesIO()
        values = enumerate([*self._all, *self._best])
        arrays: dict[str, Any] = {str(number): np.asarray(value) for number, value in values}
        np.savez(content, **arrays | {_HISTORY: np.array(json_file.dumps(history))})
        stores.write(self._path, content.getvalue())

    def keep_best(self) -> None:
        """Records the current weights as the best; `save` writes them."""
        self._best = [np.array(weight) for weight in self._weights]

    def use_best(self) -> None:
        """Sets the best epoch's weights."""
        for variable, array in zip(self._weights, self._best, strict=True):
            variable.assign(array)


class _Epochs(keras.callbacks.Callback):
    """Scores, saves, sets the learning rate and decides when to stop, between epochs."""

    def __init__(self, predictor: Predictor, dev: Sequence[Example], state: _State, history: History):
        super().__init__()
        self._recipe, self._metric = predictor.system.recipe.fit, predictor.system.metric
        self._predictor, self._dev, self._state, self._history = predictor, dev, state, history
        self._average = keras.callbacks.SwapEMAWeights() if self._recipe.ema else None

    def at_end(self) -> bool:
        """Whether all epochs are done, or the last epoch was scored and patience is exhausted.

        Patience counts from the first score above 0: a tagger may predict no spans in its first epochs and still learn.
        """
        done = len(self._history)
        scored = done and "dev" in self._history[-1] and best_score(self._history, self._metric) > 0
        waited = done - 1 - best_epoch(self._history, self._metric) if scored else 0
        return done >= self._recipe.epochs or waited >= self._recipe.patience

    def on_epoch_begin(self, epoch, logs=None):
        self._started_at, self._line = time.monotonic(), ProgressLine(at_once=False)
        self._set_rate()

    def on_train_batch_begin(self, batch, logs=None):
        if self._recipe.decay_rate != 1:
            self._set_rate()

    def on_train_batch_end(self, batch, logs=None):
        if self._line.due():
            batches = f"epoch {len(self._history) + 1}, batch {batch + 1} of {self.params['steps']}"
            self._line.show(f"{batches}: loss {float(logs['example_loss']):.4f} nats")

    def on_epoch_end(self, epoch, logs=None):
        logs["loss"] = loss = float(logs.pop("example_loss"))  # for TensorBoard, too
        if not math.isfinite(loss):
            raise InputError("fit.learning_rate", f"the loss is {loss} in epoch {epoch + 1}; set a lower rate")
        rate = float(self.model.optimizer.learning_rate)
        entry = {"loss": loss, "learning_rate": rate, "steps": self.params["steps"]}
        self._history.append(entry)
        text = f"epoch {epoch + 1}: loss {loss:.4f} nats"
        if (epoch + 1) % self._recipe.judge_every == 0 or epoch + 1 == self._recipe.epochs:
            scores = self._score()
            logs |= {f"dev_{name}": score for name, score in scores.items()}
            logs[f"best_dev_{self._metric}"] = best_score(self._history, self._metric)  # for TensorBoard's HParams
            best = best_epoch(self._history, self._metric)
            text += f", dev {self._metric} {scores[self._metric]:.2f}"
            text += f", best {self._history[best]['dev'][self._metric]:.2f} of epoch {best + 1}"
        logs |= mixes(self._predictor.networks[0], self._predictor.system.recipe.elmo.place)  # for TensorBoard, too
        entry["seconds"] = round(time.monotonic() - self._started_at, 1)
        self._state.save(self._history)
        self._line.clear()
        _log.info("%s, %.0f s", text, entry["seconds"])
        self.model.stop_training = self.at_end()

    def _score(self) -> dict[str, float]:
        """Adds the dev scores to this epoch's entry and returns them; keeps the weights if they are the best."""
        if self._average:
            self._average.set_model(self.model)
            self._average.on_test_begin()
        self._history[-1]["dev"] = scores = self._predictor.scores(self._dev)
        if best_epoch(self._history, self._metric) == len(self._history) - 1:
            self._state.keep_best()
        if self._average:
            self._average.on_test_end()
        return scores

    def _set_rate(self) -> None:
        step = int(self.model.optimizer.iterations)
        self.model.optimizer.learning_rate = learning_rate(self._recipe, self._history, self._metric, step)
