"""The minimum number of multiply-adds of a biLM, by part of the network."""

import numpy as np

from elmo_tf.config import ModelConfig
from elmo_tf.text import char_ids as char_ids_lib


def num_windows(char_ids: np.ndarray) -> int:
    """Returns the convolution windows of `(n, max_chars)` tokens: one per character, and one of padding per token."""
    is_char = (char_ids != char_ids_lib.PAD) & (char_ids != char_ids_lib.PADDING)
    return int(is_char.sum()) + len(char_ids)


def per_window(model: ModelConfig) -> int:
    """Returns the multiply-adds of all convolutions at one position."""
    return sum(width * model.char_cnn.embedding_dim * count for width, count in model.char_cnn.filters)


def per_distinct_token(model: ModelConfig) -> int:
    """Returns the multiply-adds of the highway layers and their projection."""
    filters, dim = model.char_cnn.num_filters, model.lstm.projection_dim
    return model.char_cnn.num_highway * 2 * filters**2 + filters * dim * (filters != dim)


def per_token(model: ModelConfig) -> int:
    """Returns the multiply-adds of one direction's LSTMs."""
    from_input = model.lstm.projection_dim * 4 * model.lstm.units
    return model.lstm.num_layers * (from_input + recurrent_weights(model))


def recurrent_weights(model: ModelConfig) -> int:
    """Returns the number of weights that one layer reads at every time step."""
    units, dim = model.lstm.units, model.lstm.projection_dim
    return dim * 4 * units + units * dim * (units != dim)
