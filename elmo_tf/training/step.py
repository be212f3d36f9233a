"""One training step over all replicas: losses, gradients, one clip, one update."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from elmo_tf.bilm import BiLM, States
from elmo_tf.config import TrainConfig
from elmo_tf.data.windows import Window
from elmo_tf.training.optimizer import Adagrad


class StepResult(NamedTuple):
    """What a step was like; tensors, not read from the device yet."""

    forward_loss: tf.Tensor  # float32 scalar, mean nats per token of the whole batch
    backward_loss: tf.Tensor  # float32 scalar
    gradient_norm: tf.Tensor  # float32 scalar, of all gradients, before clipping


class Trainer:
    """A BiLM, its optimizer and the step that improves it, under a `tf.distribute` strategy.

    The gradient is that of the mean of both directions' mean losses times `unroll_steps`, as in bilm-tf
    (`bilm/training.py`, `train`). Batch rows are split over the replicas in order, so that two replicas of half a batch
    do what one does with the whole.

    Args:
        strategy: where to train; `tf.distribute.MirroredStrategy` with one device or more.
        config: the recipe.
        new_bilm: builds the network; called in the strategy's scope.
    """

    def __init__(self, strategy: tf.distribute.Strategy, config: TrainConfig, new_bilm):
        self.strategy = strategy
        self.config = config
        with strategy.scope():
            self.bilm: BiLM = new_bilm()
            self.variables = [variable.value for variable in self.bilm.trainable_variables]
            self.optimizer = Adagrad(self.variables, config.learning_rate, config.initial_accumulator, config.clip_norm)
        self.states = self._distribute(self.bilm.zero_states(self.batch_size))
        self._run = tf.function(self._run_replicas)

    @property
    def batch_size(self) -> int:
        """Streams of all replicas together."""
        return self.config.batch_size * self.strategy.num_replicas_in_sync

    def step(self, window: Window, number: int) -> StepResult:
        """Trains on one window, going on from `self.states`, and leaves the states after it there.

        Args:
            window: arrays of all replicas' rows, none of them masked.
            number: of the step; with `config.seed` it decides dropout and negatives.
        """
        seed = tf.constant([self.config.seed, number], tf.int32)
        result, self.states = self._run(self._distribute(window), self.states, seed)
        return result

    def gathered_states(self) -> States:
        """Returns the states of all streams as arrays, in the order of the batch's rows."""
        return tf.nest.map_structure(
            lambda value: np.concatenate(self.strategy.experimental_local_results(value)), self.states
        )

    def set_states(self, states: States) -> None:
        """Makes arrays of all streams' states the ones that the next step goes on from."""
        self.states = self._distribute(states)

    def _distribute(self, values):
        """Splits arrays by rows, a piece a replica; plain tensors for a single one, as `strategy.run` returns them."""
        if self.strategy.num_replicas_in_sync == 1:
            return tf.nest.map_structure(tf.constant, values)

        def piece(context):
            rows = self.config.batch_size
            first = context.replica_id_in_sync_group * rows
            return tf.nest.map_structure(lambda value: tf.constant(value[first : first + rows]), values)

        return self.strategy.experimental_distribute_values_from_function(piece)

    def _run_replicas(self, window, states, seed):
        results, states = self.strategy.run(self._replica_step, args=(window, states, seed))
        reduced = [self.strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None) for loss in results[:2]]
        # Every replica has the norm of the summed gradients already.
        norm = self.strategy.reduce(tf.distribute.ReduceOp.MEAN, results[2], axis=None)
        return StepResult(*reduced, norm), states

    def _replica_step(self, window, states, seed):
        config = self.config
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.random.experimental.stateless_fold_in(seed, replica)
        with tf.GradientTape() as tape:
            losses, states = self.bilm.language_model_losses(
                window, states, config.num_sampled, config.dropout_rate, seed, training=True
            )
            forward, backward = (tf.reduce_sum(loss) / (self.batch_size * config.unroll_steps) for loss in losses)
            objective = 0.5 * (forward + backward) * config.unroll_steps
        norm = self.optimizer.apply(tape.gradient(objective, self.variables))
        return StepResult(forward, backward, norm), states
