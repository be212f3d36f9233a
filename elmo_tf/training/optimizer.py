"""Adagrad as the released model used it: no epsilon, one clip over all gradients, only the rows a step used."""

import tensorflow as tf


class Adagrad(tf.Module):
    """Adagrad over one list of variables, for use inside `strategy.run`.

    `accumulator += g * g`, then `variable -= learning_rate * g / sqrt(accumulator)`. Gradients are first summed over
    the replicas, duplicate rows of sparse ones added up, and clipped together by their global norm. A sparse gradient's
    time does not depend on the variable's number of rows.

    Args:
        variables: what to train, `tf.Variable`s; create it in the same `strategy.scope()` as those.
        learning_rate: the step size.
        initial_accumulator: the accumulators' first value.
        clip_norm: the largest global norm of the gradients; None: no clipping.

    Reference:
        Duchi et al. 2011, "Adaptive Subgradient Methods"; bilm-tf, `bilm/training.py`, `clip_grads` and
        `average_gradients`.
    """

    def __init__(
        self,
        variables: list[tf.Variable],
        learning_rate: float,
        initial_accumulator: float = 1.0,
        clip_norm: float | None = 10.0,
    ):
        super().__init__(name="adagrad")
        self.trained = list(variables)
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.accumulators = [
            tf.Variable(tf.fill(variable.shape, initial_accumulator), trainable=False, name="accumulator")
            for variable in variables
        ]

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
        extended = strategy.extended
        for number, gradient in dense:
            extended.update(self.trained[number], self._update_dense, args=(self.accumulators[number], gradient))
        for number, values, indices in sparse:
            arguments = (self.accumulators[number], values, indices)
            extended.update(self.trained[number], self._update_rows, args=arguments)

    def _update_dense(self, variable, accumulator, gradient):
        return tf.raw_ops.ResourceApplyAdagrad(
            var=variable.handle, accum=accumulator.handle, lr=self.learning_rate, grad=gradient
        )

    def _update_rows(self, variable, accumulator, values, indices):
        return tf.raw_ops.ResourceSparseApplyAdagrad(
            var=variable.handle, accum=accumulator.handle, lr=self.learning_rate, grad=values, indices=indices
        )


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
