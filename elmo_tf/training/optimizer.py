"""Optimizers that touch only the rows a step used, with one clip over all gradients: Adagrad and Adam."""

import math

import tensorflow as tf

from elmo_tf.config import TrainConfig


class Optimizer(tf.Module):
    """What the optimizers share; for use inside `strategy.run`.

    Gradients are first summed over the replicas, duplicate rows of sparse ones added up, and clipped together by their
    global norm. A sparse gradient's time does not depend on the variable's number of rows.

    Args:
        variables: what to train, `tf.Variable`s; create it in the same `strategy.scope()` as those.
        step_size: scalar that every update is multiplied with, a `tf.Variable` or a number; see `step_size_at`.
        slots: for each kind of value that the optimizer keeps beside a variable, its name and first value.
        clip_norm: the largest global norm of the gradients; None: no clipping.

    Attributes:
        slots: by name, the kept values: a list of `tf.Variable`s like `variables`.
    """

    def __init__(
        self,
        variables: list[tf.Variable],
        step_size: tf.Variable | float,
        slots: dict[str, float],
        clip_norm: float | None,
    ):
        super().__init__()
        self.trained = list(variables)
        self.step_size = step_size
        self.clip_norm = clip_norm
        self.slots = {
            name: [tf.Variable(tf.fill(variable.shape, first), trainable=False, name=name) for variable in variables]
            for name, first in slots.items()
        }

    def step_size_at(self, learning_rate: float, step: int) -> float:
        """Returns the step size that a learning rate means after `step` steps."""
        return learning_rate

    def apply(self, gradients: list[tf.Tensor | tf.IndexedSlices]) -> tf.Tensor:
        """Updates the variables by this replica's share of the gradients.

        Args:
            gradients: one for each variable; the sum over replicas is what counts.

        Returns:
            the global norm of the summed gradients before clipping, float32 scalar.
        """
        replica = tf.distribute.get_replica_context()
        summed = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        summed = [_without_duplicates(gradient) for gradient in summed]
        norm = tf.linalg.global_norm(summed)
        if self.clip_norm is not None:
            scale = self.clip_norm / tf.maximum(norm, self.clip_norm)
            summed = [_scaled(gradient, scale) for gradient in summed]
        dense = [(number, g) for number, g in enumerate(summed) if not isinstance(g, tf.IndexedSlices)]
        sparse = [(n, g.values, g.indices) for n, g in enumerate(summed) if isinstance(g, tf.IndexedSlices)]
        replica.merge_call(self._update, args=(dense, sparse))
        return norm

    def _update(self, strategy, dense, sparse) -> None:
        """Updates every replica's copy, each with its own copy of the same summed gradient."""
        for number, gradient in dense:
            strategy.extended.update(self.trained[number], self._update_dense, args=(*self._slots(number), gradient))
        for number, values, indices in sparse:
            arguments = (*self._slots(number), values, indices)
            strategy.extended.update(self.trained[number], self._update_rows, args=arguments)

    def _slots(self, number: int) -> list[tf.Variable]:
        return [slot[number] for slot in self.slots.values()]


class Adagrad(Optimizer):
    """Adagrad as the released model used it: `accumulator += g * g`, `variable -= step_size * g / sqrt(accumulator)`.

    No epsilon; the accumulators begin at `initial_accumulator`.

    Reference:
        Duchi et al. 2011, "Adaptive Subgradient Methods"; bilm-tf, `bilm/training.py`, `clip_grads` and
        `average_gradients`.
    """

    def __init__(
        self,
        variables: list[tf.Variable],
        step_size: tf.Variable | float,
        initial_accumulator: float = 1.0,
        clip_norm: float | None = 10.0,
    ):
        super().__init__(variables, step_size, {"accumulators": initial_accumulator}, clip_norm)

    def _update_dense(self, variable, accumulator, gradient):
        return tf.raw_ops.ResourceApplyAdagrad(
            var=variable.handle, accum=accumulator.handle, lr=self.step_size, grad=gradient
        )

    def _update_rows(self, variable, accumulator, values, indices):
        return tf.raw_ops.ResourceSparseApplyAdagrad(
            var=variable.handle, accum=accumulator.handle, lr=self.step_size, grad=values, indices=indices
        )


class Adam(Optimizer):
    """Adam; of a row that a step does not use, moments and variable stay as they are.

    `mean = beta_1 * mean + (1 - beta_1) * g`, `square = beta_2 * square + (1 - beta_2) * g * g`, then
    `variable -= step_size * mean / (sqrt(square) + epsilon)`. The step size has the correction for moments that begin
    at zero in it, by the number of all steps.

    Reference:
        Kingma and Ba 2014, "Adam: A Method for Stochastic Optimization"; the update of rows is TensorFlow Addons'
        `LazyAdam`.
    """

    EPSILON = 1e-8

    def __init__(
        self,
        variables: list[tf.Variable],
        step_size: tf.Variable | float,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        clip_norm: float | None = 10.0,
    ):
        super().__init__(variables, step_size, {"means": 0.0, "squares": 0.0}, clip_norm)
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def step_size_at(self, learning_rate: float, step: int) -> float:
        return learning_rate * math.sqrt(1 - self.beta_2 ** (step + 1)) / (1 - self.beta_1 ** (step + 1))

    def _update_dense(self, variable, mean, square, gradient):
        return tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=mean.handle,
            v=square.handle,
            beta1_power=0.0,  # the step size is corrected already
            beta2_power=0.0,
            lr=self.step_size,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.EPSILON,
            grad=gradient,
        )

    def _update_rows(self, variable, mean, square, values, indices):
        # Raw operations: a method of a variable adds a read of all its rows, which each step would copy.
        means = self.beta_1 * _rows(mean, indices) + (1 - self.beta_1) * values
        squares = self.beta_2 * _rows(square, indices) + (1 - self.beta_2) * values * values
        moves = self.step_size * means / (tf.sqrt(squares) + self.EPSILON)
        for slot, updates in ((mean, means), (square, squares)):
            tf.raw_ops.ResourceScatterUpdate(resource=slot.handle, indices=indices, updates=updates)
        tf.raw_ops.ResourceScatterSub(resource=variable.handle, indices=indices, updates=moves)


def from_config(config: TrainConfig, variables: list[tf.Variable], step_size: tf.Variable | float = 0.0) -> Optimizer:
    """Returns the optimizer that `config` asks for."""
    if config.optimizer == "adam":
        return Adam(variables, step_size, config.beta_1, config.beta_2, config.clip_norm)
    return Adagrad(variables, step_size, config.initial_accumulator, config.clip_norm)


def _rows(variable: tf.Variable, indices: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.ResourceGather(resource=variable.handle, indices=indices, dtype=variable.dtype)


def _without_duplicates(gradient):
    """Returns a sparse gradient with each row once, duplicates added up; a dense one as it is."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(indices))
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


def _scaled(gradient, scale):
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values * scale, gradient.indices, gradient.dense_shape)
    return gradient * scale
