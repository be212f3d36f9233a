"""Orthogonal matrices by Newton-Schulz steps, for Muon."""

import tensorflow as tf


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
