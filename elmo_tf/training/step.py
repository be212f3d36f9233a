"""One training step over all replicas: learning rate, losses, gradients, one clip, one update."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.config import TrainConfig
from elmo_tf.text.vocabulary import BEGIN_ID
from elmo_tf.training import devices
from elmo_tf.training import optimizer as optimizers

if TYPE_CHECKING:  # a step is given its network and its window
    from elmo_tf.model.bilm import States
    from elmo_tf.model.fast import BiLM
    from elmo_tf.records.windows import Window


class StepResult(NamedTuple):
    """The result of a step: tensors, not read from the device yet."""

    forward_loss: tf.Tensor  # float32 scalar, mean nats per token of the whole batch
    backward_loss: tf.Tensor  # float32 scalar
    gradient_norm: tf.Tensor  # float32 scalar, of all gradients, before clipping


def learning_rate(config: TrainConfig, step: int, last_step: int) -> float:
    """Returns the rate of the step after `step` steps, warmed up and decayed.

    `linear` and `cosine` reach 0 after `last_step` steps, the total number.
    """
    number, warmup = step + 1, config.warmup_steps
    if number <= warmup:
        return config.learning_rate * number / warmup
    # From 1 after the warm-up down to a little above 0 in the last step.
    left = (last_step - step) / max(1, last_step - warmup)
    factors = {
        "none": 1.0,
        "linear": left,
        "cosine": (1 - math.cos(math.pi * left)) / 2,
        "inverse_sqrt": math.sqrt(max(1, warmup) / number),
    }
    return config.learning_rate * factors[config.decay]


class Trainer:
    """A BiLM, its optimizer and the training step, under a `tf.distribute` strategy.

    The gradient is that of the mean of both directions' mean losses times `unroll_steps`, as in bilm-tf
    (`bilm/training.py`, `train`). Batch rows are split over the replicas in order, so that two replicas of half a batch
    compute the step of one replica with the whole batch.

    Args:
        strategy: where to train; `MirroredStrategy` or `MultiWorkerMirroredStrategy` with one device or more.
        config: the recipe.
        new_bilm: builds the network; called in the strategy's scope.
    """

    def __init__(self, strategy: tf.distribute.Strategy, config: TrainConfig, new_bilm: Callable[[], "BiLM"]):
        self.strategy = strategy
        self.config = config
        with strategy.scope():
            self.bilm = new_bilm()
            self.variables = [variable.value for variable in self.bilm.trainable_variables]
            self.optimizer = optimizers.from_config(config, self.bilm)
        self.states = self._distribute(devices.rows_of(self.bilm.zero_states(self.batch_size)))
        self._run = tf.function(self._run_replicas, autograph=False)
        self._gather = tf.function(lambda states: strategy.run(devices.gathered, args=(states,)), autograph=False)

    @property
    def batch_size(self) -> int:
        """Number of streams of all replicas."""
        return self.config.batch_size * self.strategy.num_replicas_in_sync

    @property
    def local_rows(self) -> range:
        """The streams of this process among those of all workers."""
        return devices.local_rows(self.strategy, self.config.batch_size)

    def step(self, window: "Window", number: int, learning_rate: float) -> StepResult:
        """Trains on one window, starting from `self.states`, which it replaces by the states after the window.

        Args:
            window: arrays with the rows of this process, `local_rows`; nothing is masked.
            number: the step's number; with `config.seed`, it determines dropout and negatives.
            learning_rate: of its update.
        """
        self.optimizer.set_learning_rate(learning_rate, number)
        seed = tf.constant([self.config.seed, number], tf.int32)
        windows = self._distribute(window.part, self.local_rows.start)
        result, self.states = self._run(windows, self.states, seed)
        return result

    def gathered_states(self) -> "States":
        """Returns the states of all streams as arrays, in the order of the rows; all workers have to call this."""
        local, count = self.strategy.experimental_local_results, self.strategy.num_replicas_in_sync
        if devices.num_local(self.strategy) < count:
            return tf.nest.map_structure(lambda value: local(value)[0].numpy(), self._gather(self.states))
        return tf.nest.map_structure(lambda value: np.concatenate(local(value)), self.states)

    def set_states(self, states: "States") -> None:
        """Sets the states of all streams, given as arrays, for the next step."""
        self.states = self._distribute(devices.rows_of(states))

    def _distribute(self, part: Callable[[int, int], devices.Structure], first: int = 0) -> devices.Structure:
        return devices.distribute(self.strategy, part, self.config.batch_size, first)

    def _run_replicas(self, window: "Window", states: "States", seed: tf.Tensor) -> tuple[StepResult, "States"]:
        results, states = self.strategy.run(self._replica_step, args=(window, states, seed))
        forward, backward = (self.strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None) for loss in results[:2])
        # Every replica has the norm of the summed gradients.
        norm = self.strategy.reduce(tf.distribute.ReduceOp.MEAN, results[2], axis=None)
        return StepResult(forward, backward, norm), states

    def _replica_step(self, window: "Window", states: "States", seed: tf.Tensor) -> tuple[StepResult, "States"]:
        """Returns this replica's part of the losses and the norm of all gradients, and its states after the window."""
        forward, backward, gradients, states = replica_gradients(
            self.bilm, self.variables, window, states, self.config, seed, self.batch_size
        )
        return StepResult(forward, backward, self.optimizer.apply(gradients)), states


def replica_gradients(
    bilm: "BiLM",
    variables: Sequence[tf.Variable],
    window: "Window",
    states: "States",
    config: TrainConfig,
    seed: tf.Tensor,
    num_streams: int,
) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor | tf.IndexedSlices], "States"]:
    """Returns a replica's part of a step before its update; to be called by each replica, in `strategy.run`.

    Args:
        bilm: the network.
        variables: what to train.
        window: the replica's streams.
        states: of these streams, before the window.
        config: the recipe.
        seed: int32 `(2,)`, the same on all replicas; determines dropout, negatives and resets.
        num_streams: of all replicas.

    Returns:
        this replica's share of the forward and of the backward loss; its share of the gradient of their mean times
        `unroll_steps`, for each variable; and the states after the window.
    """
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    seed = tf.random.experimental.stateless_fold_in(seed, replica)
    if config.reset_rate:
        states = _randomly_reset(states, window, config.reset_rate, seed)
    with tf.GradientTape() as tape:
        losses, states = bilm.language_model_losses(
            window, states, config.num_sampled, config.dropout_rate, seed, training=True
        )
        forward, backward = (tf.reduce_sum(loss) / (num_streams * config.unroll_steps) for loss in losses)
        objective = 0.5 * (forward + backward) * config.unroll_steps
    return forward, backward, tape.gradient(objective, variables), states


def _randomly_reset(states: "States", window: "Window", rate: float, seed: tf.Tensor) -> "States":
    """Returns the states; among streams whose window starts with a sentence, a random share gets the zero state."""
    # The backward direction starts a sentence at the same position.
    starts_sentence = window.forward_token_ids[:, :1] == BEGIN_ID
    is_reset = (
        tf.random.stateless_uniform(tf.shape(starts_sentence), tf.random.experimental.stateless_fold_in(seed, -1))
        < rate
    )
    return tf.nest.map_structure(lambda state: tf.where(starts_sentence & is_reset, 0.0, state), states)
