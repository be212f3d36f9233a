"""Adagrad, Adam and Muon that update only the rows a step used, with one clip over all gradients."""

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from elmo_tf.config import TrainConfig
from elmo_tf.model.kernels.fused import fused

if TYPE_CHECKING:
    from elmo_tf.model.fast import BiLM


class Optimizer(tf.Module):
    """The base class; for use inside `strategy.run`.

    Gradients are summed over the replicas, duplicate rows of sparse gradients are added up, and all gradients are
    clipped by their global norm. The time for a sparse gradient does not depend on the variable's number of rows.

    Args:
        variables: what to train, `tf.Variable`s; create the optimizer in the same `strategy.scope()`.
        config: the recipe.
        slots: initial value of each kind of optimizer state, by name. The attribute `slots` has a list of
            `tf.Variable`s like `variables` for each.
    """

    def __init__(self, variables: list[tf.Variable], config: TrainConfig, slots: dict[str, float]):
        super().__init__()
        self.trained = list(variables)
        self.config = config
        self.step_size = tf.Variable(0.0, trainable=False, name="step_size")
        self.slots = {
            name: [tf.Variable(tf.fill(variable.shape, first), trainable=False, name=name) for variable in variables]
            for name, first in slots.items()
        }

    def set_learning_rate(self, learning_rate: float, step: int) -> None:
        """Sets the learning rate of the update after `step` updates; call it outside of replicas."""
        self.step_size.assign(learning_rate)

    def apply(self, gradients: list[tf.Tensor | tf.IndexedSlices]) -> tf.Tensor:
        """Updates the variables by this replica's share of the gradients, one for each variable.

        Returns:
            the global norm of the summed gradients before clipping, float32 scalar.
        """
        summed, norm = summed_and_clipped(gradients, self.config.clip_norm)
        dense = [(number, g) for number, g in enumerate(summed) if not isinstance(g, tf.IndexedSlices)]
        sparse = [(n, g.values, g.indices) for n, g in enumerate(summed) if isinstance(g, tf.IndexedSlices)]
        tf.distribute.get_replica_context().merge_call(self._update, args=(dense, sparse))
        return norm

    def _update(self, strategy: tf.distribute.Strategy, dense: list[tuple], sparse: list[tuple]) -> None:
        """Updates each replica's copy with its copy of the summed gradient."""
        for number, gradient in dense:
            arguments = (*self._slots(number), gradient)
            strategy.extended.update(self.trained[number], self._dense_update(number), args=arguments)
        for number, values, indices in sparse:
            arguments = (*self._slots(number), values, indices)
            strategy.extended.update(self.trained[number], self._update_rows, args=arguments)

    def _dense_update(self, number: int) -> Callable:
        """Returns the function that updates a variable by a dense gradient."""
        return self._update_dense

    def _slots(self, number: int) -> list[tf.Variable]:
        return [slot[number] for slot in self.slots.values()]


class Adagrad(Optimizer):
    """Adagrad as the released model used it: `accumulator += g * g`, `variable -= step_size * g / sqrt(accumulator)`.

    No epsilon; the accumulators start at `initial_accumulator`.

    Reference:
        Duchi et al. 2011, "Adaptive Subgradient Methods"; bilm-tf, `bilm/training.py`, `clip_grads` and
        `average_gradients`.
    """

    def __init__(self, variables: list[tf.Variable], config: TrainConfig):
        super().__init__(variables, config, {"accumulators": config.initial_accumulator})

    def _update_dense(self, variable, accumulator, gradient):
        return tf.raw_ops.ResourceApplyAdagrad(
            var=variable.handle, accum=accumulator.handle, lr=self.step_size, grad=gradient
        )

    def _update_rows(self, variable, accumulator, values, indices):
        return tf.raw_ops.ResourceSparseApplyAdagrad(
            var=variable.handle, accum=accumulator.handle, lr=self.step_size, grad=values, indices=indices
        )


class Adam(Optimizer):
    """Adam; rows that a step does not use keep their moments and values.

    `mean = beta_1 * mean + (1 - beta_1) * g`, `square = beta_2 * square + (1 - beta_2) * g * g`, then
    `variable -= step_size * mean / (sqrt(square) + epsilon)`. The step size includes the correction for moments that
    start at zero, by the number of all steps, not only those that used a row.

    Reference:
        Kingma and Ba 2014, "Adam: A Method for Stochastic Optimization"; the update of rows is TensorFlow Addons'
        `LazyAdam`.
    """

    EPSILON = 1e-8

    def __init__(self, variables: list[tf.Variable], config: TrainConfig):
        super().__init__(variables, config, {"means": 0.0, "squares": 0.0})
        self.beta_1, self.beta_2 = config.beta_1, config.beta_2

    def set_learning_rate(self, learning_rate: float, step: int) -> None:
        corrected = learning_rate * math.sqrt(1 - self.beta_2 ** (step + 1)) / (1 - self.beta_1 ** (step + 1))
        self.step_size.assign(corrected)

    def _update_dense(self, variable, mean, square, gradient):
        return tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=mean.handle,
            v=square.handle,
            # No correction here: the step size includes it.
            beta1_power=0.0,
            beta2_power=0.0,
            lr=self.step_size,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.EPSILON,
            grad=gradient,
        )

    def _update_rows(self, variable, mean, square, values, indices):
        # Raw operations: a variable's method also reads all its rows, and would copy them in each step.
        means = self.beta_1 * _rows(mean, indices) + (1 - self.beta_1) * values
        squares = self.beta_2 * _rows(square, indices) + (1 - self.beta_2) * values * values
        moves = self.step_size * means / (tf.sqrt(squares) + self.EPSILON)
        for slot, updates in ((mean, means), (square, squares)):
            tf.raw_ops.ResourceScatterUpdate(resource=slot.handle, indices=indices, updates=updates)
        tf.raw_ops.ResourceScatterSub(resource=variable.handle, indices=indices, updates=moves)


class Muon(Adam):
    """Muon for some matrices, taken in blocks, and `Adam` for everything else.

    A block moves in the direction of its mean gradient made orthogonal: all its singular values become about 1.
    `mean = 0.95 * mean + 0.05 * g` and `ahead = 0.95 * mean + 0.05 * g`, then
    `block -= learning_rate * (scale * sqrt(max(rows, columns)) * orthogonal(ahead) + weight_decay * block)`, with
    `muon_scale` and `muon_weight_decay` of the recipe; the decay is decoupled (Loshchilov and Hutter 2019). The root
    makes the moves of a block's entries independent of its size, so that one rate serves Adam and blocks of all sizes.
    The moves have no correction for a mean that starts at zero: their size does not depend on the mean's. They are as
    large for a small gradient as for a large one, so without the decay the matrices grow with every step.

    A matrix is divided along its shorter side into blocks of at most 128: for a square matrix of 2,048 rows that takes
    a hundredth of the arithmetic, and a language model learned as much with it (benchmarks/README.md).

    Args:
        variables, config: as for `Optimizer`.
        matrices: indices of those matrices in `variables`. Their slot "squares" is a scalar that nothing uses.

    Reference:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; the factor, the decay and both
        defaults are those of Liu et al. 2025, "Muon is Scalable for LLM Training", section 2. The blocks are ours.
    """

    MOMENTUM = 0.95
    BLOCK = 128

    def __init__(self, variables: list[tf.Variable], config: TrainConfig, matrices: Collection[int]):
        super().__init__(variables, config)
        self.learning_rate = tf.Variable(0.0, trainable=False, name="learning_rate")
        self._matrices = frozenset(matrices)
        for number in matrices:
            self.slots["squares"][number] = tf.Variable(0.0, trainable=False, name="squares")

    def set_learning_rate(self, learning_rate: float, step: int) -> None:
        super().set_learning_rate(learning_rate, step)
        self.learning_rate.assign(learning_rate)

    def _dense_update(self, number: int) -> Callable:
        return self._update_matrix if number in self._matrices else self._update_dense

    def _update_matrix(self, variable, mean, square, gradient):
        following, ahead = _nesterov(self.MOMENTUM, mean.read_value(), gradient)
        mean.assign(following)
        shorter = int(variable.shape[0] >= variable.shape[1])
        parts = -(-variable.shape[shorter] // self.BLOCK)
        sizes = [len(part) for part in np.array_split(range(variable.shape[shorter]), parts)]
        factor = self.learning_rate * self.config.muon_scale * math.sqrt(variable.shape[1 - shorter])
        moves = [orthogonal(block, factor) for block in tf.split(ahead, sizes, shorter)]
        kept = 1 - self.learning_rate * self.config.muon_weight_decay
        variable.assign(_moved(shorter, variable.read_value(), kept, moves))


def from_config(config: TrainConfig, bilm: "BiLM") -> Optimizer:
    """Returns the optimizer of `bilm` that `config` asks for."""
    variables = [variable.value for variable in bilm.trainable_variables]
    if config.optimizer == "adam":
        return Adam(variables, config)
    if config.optimizer == "muon":
        hidden = {id(matrix) for matrix in bilm.hidden_matrices}
        matrices = [number for number, matrix in enumerate(bilm.trainable_variables) if id(matrix) in hidden]
        return Muon(variables, config, matrices)
    return Adagrad(variables, config)


def orthogonal(matrix: tf.Tensor, factor: tf.Tensor | float = 1.0) -> tf.Tensor:
    """Returns a matrix with the singular vectors of `matrix` and singular values of about `factor`: 0.7 to 1.2 of it.

    Values below a thousandth of the norm are raised less. Five Newton-Schulz steps with the coefficients of Jordan et
    al. 2024. They are taken with the product of the matrix and its transpose, which is smaller than the matrix.

    Args:
        matrix: float32 `(rows, columns)`, both known.
        factor: a scalar, what the singular values are multiplied by.
    """
    tall = matrix.shape[0] > matrix.shape[1]
    gram = tf.linalg.matmul(matrix, matrix, transpose_a=tall, transpose_b=not tall)
    square = tf.linalg.trace(gram) + 1e-14  # of the norm
    gram /= square
    whole = step = _newton_schulz(gram)
    for _ in range(4):
        # All of these are polynomials of one matrix, so their order does not matter.
        gram = tf.linalg.matmul(step, tf.linalg.matmul(step, gram))
        step = _newton_schulz(gram)
        whole = tf.linalg.matmul(step, whole)
    whole *= factor * tf.math.rsqrt(square)
    return tf.linalg.matmul(matrix, whole) if tall else tf.linalg.matmul(whole, matrix)


def _newton_schulz(gram: tf.Tensor) -> tf.Tensor:
    """Returns the factor of one Newton-Schulz step, given the product of a matrix and its transpose."""
    return 3.4445 * tf.eye(gram.shape[0]) - 4.7750 * gram + 2.0315 * tf.linalg.matmul(gram, gram)


@fused
def _nesterov(momentum, mean, gradient):
    """Returns the updated mean of the gradients and the Nesterov update."""
    mean = momentum * mean + (1 - momentum) * gradient
    return mean, momentum * mean + (1 - momentum) * gradient


@fused
def _moved(axis, matrix, kept, moves):
    """Returns the share `kept` of `matrix`, less the moves of its blocks along `axis`."""
    return kept * matrix - tf.concat(moves, axis)


def summed_and_clipped(gradients: list[tf.Tensor | tf.IndexedSlices], clip_norm: float) -> tuple[list, tf.Tensor]:
    """Sums a replica's gradients over all replicas, and clips them by their global norm; for use in `strategy.run`.

    Returns:
        the gradients, each row of a sparse one only once; and their norm before clipping, float32 scalar.
    """
    summed = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    return tf.clip_by_global_norm([_without_duplicates(gradient) for gradient in summed], clip_norm)


def _rows(variable: tf.Variable, indices: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.ResourceGather(resource=variable.handle, indices=indices, dtype=variable.dtype)


def _without_duplicates(gradient):
    """Returns a sparse gradient with the duplicates of a row added up; a dense gradient as it is."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, positions = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, positions, tf.size(indices))
    return tf.IndexedSlices(values, indices, gradient.dense_shape)
