"""The optimizers' steps in NumPy float64, as DESIGN.md describes them and nothing more."""

import numpy as np


def adagrad_step(variables, accumulators, gradients, learning_rate, clip_norm):
    """One clip by the global norm of all gradients, then Adagrad without epsilon; returns variables, accumulators."""
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    gradients = [gradient * min(1, clip_norm / norm) for gradient in gradients]
    accumulators = [a + g**2 for a, g in zip(accumulators, gradients, strict=True)]
    moves = [learning_rate * g / np.sqrt(a) for g, a in zip(gradients, accumulators, strict=True)]
    return [v - move for v, move in zip(variables, moves, strict=True)], accumulators


def lazy_adam_step(variables, moments, gradients, step, learning_rate, beta_1, beta_2, clip_norm):
    """One clip by the global norm, then Adam for the rows whose gradient is not all zero; returns variables, moments.

    `moments` are the lists of means and squares; `step` the number of steps before.
    """
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))
    gradients = [gradient * min(1.0, clip_norm / norm) for gradient in gradients]
    used = [g != 0 if g.ndim == 1 else np.any(g != 0, -1, keepdims=True) for g in gradients]
    updated = []
    for mean, square, g in zip(*moments, gradients, strict=True):
        updated.append((beta_1 * mean + (1 - beta_1) * g, beta_2 * square + (1 - beta_2) * g**2))
    means = [np.where(u, new[0], old) for u, new, old in zip(used, updated, moments[0], strict=True)]
    squares = [np.where(u, new[1], old) for u, new, old in zip(used, updated, moments[1], strict=True)]
    unbiased = [
        (mean / (1 - beta_1 ** (step + 1)), square / (1 - beta_2 ** (step + 1)))
        for mean, square in zip(means, squares, strict=True)
    ]
    moves = [np.where(u, m / (np.sqrt(s) + 1e-8), 0.0) for u, (m, s) in zip(used, unbiased, strict=True)]
    return [v - learning_rate * move for v, move in zip(variables, moves, strict=True)], [means, squares]


def orthogonal(matrix):
    """Muon's five Newton-Schulz steps on a matrix of at most as many rows as columns, with Jordan's coefficients."""
    matrix = matrix / np.linalg.norm(matrix)
    for _ in range(5):
        gram = matrix @ matrix.T
        matrix = 3.4445 * matrix + (-4.7750 * gram + 2.0315 * gram @ gram) @ matrix
    return matrix


def muon_step(blocks, means, gradients, learning_rate, scale, weight_decay):
    """Muon with Nesterov momentum 0.95 for blocks of a matrix, each wide; returns the blocks and the means."""
    means = [0.95 * mean + 0.05 * gradient for mean, gradient in zip(means, gradients, strict=True)]
    ahead = [0.95 * mean + 0.05 * gradient for mean, gradient in zip(means, gradients, strict=True)]
    moves = [scale * np.sqrt(matrix.shape[1]) * orthogonal(matrix) for matrix in ahead]
    decayed = [(1 - learning_rate * weight_decay) * block for block in blocks]
    return [block - learning_rate * move for block, move in zip(decayed, moves, strict=True)], means
