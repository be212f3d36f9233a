"""Checks of a signature's arguments in the exported graph: wrong arguments are errors instead of odd vectors.

TensorFlow itself checks dtypes, but not the rank of a signature's arguments. Each function returns its arguments;
operations that use them run after the checks.
"""

import tensorflow as tf

from elmo_tf.text import char_ids as char_ids_lib

_MIXED = "char_ids: expected rows with no id 0 (tokens) or only the id 0 (padding), found a row with both"
_GAP = "char_ids: expected padding only after the last token of a sentence, found some before a token"


def checked_batch(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns inputs, whose ranks are known, after checking their ranks and that all have the same number of rows."""
    shapes = {name: _shape(values) for name, values in inputs.items()}
    dimensions = {name: ", ".join(["batch", "max_length"][: values.shape.rank]) for name, values in inputs.items()}
    ranks = [_assert_rank(name, shapes[name], f"[{dimensions[name]}]", inputs[name].shape.rank) for name in inputs]
    with tf.control_dependencies(ranks):
        sizes = tf.stack([shape[0] for shape in shapes.values()])
    message = f"{', '.join(inputs)}: expected the same number of rows in each, found {{}}"
    with tf.control_dependencies([_assert(tf.reduce_all(sizes == sizes[0]), message, sizes)]):
        return {name: tf.identity(values) for name, values in inputs.items()}


def checked_tokens(tokens: tf.Tensor, sequence_len: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns string `(batch, max_length)` and int32 `(batch,)` after checking that each length fits its row."""
    tokens, sequence_len = checked_batch({"tokens": tokens, "sequence_len": sequence_len}).values()
    max_length = tf.shape(tokens)[1]
    wrong = tf.boolean_mask(sequence_len, (sequence_len < 0) | (sequence_len > max_length))
    message = "sequence_len: expected lengths from 0 to {}, found {}"
    with tf.control_dependencies([_assert(tf.equal(tf.size(wrong), 0), message, max_length, wrong[:1])]):
        return tf.identity(tokens), tf.identity(sequence_len)


def checked_char_ids(ids: tf.Tensor, max_chars_per_token: int) -> tf.Tensor:
    """Returns int32 `(batch, max_length, max_chars_per_token)` after checking that tokens come first, then padding.

    A token's row has no id 0; a padding row has no other id.
    """
    shape = _shape(ids)
    expected = f"[batch, max_length, {max_chars_per_token}]"
    with tf.control_dependencies([_assert_rank("char_ids", shape, expected, 3)]):
        message = f"char_ids: expected shape {expected}, found {{}}"
        width = _assert(tf.equal(shape[2], max_chars_per_token), message, shape)
    with tf.control_dependencies([width]):
        ids = tf.identity(ids)
    min_id, max_id = tf.reduce_min(ids), tf.reduce_max(ids)
    num_ids = tf.reduce_sum(tf.cast(ids != char_ids_lib.PADDING, tf.int32), -1)
    real = num_ids > 0
    in_range = f"char_ids: expected ids from 0 to {char_ids_lib.NUM_CHARS - 1}, found {{}} to {{}}"
    checks = [
        _assert((min_id >= 0) & (max_id < char_ids_lib.NUM_CHARS), in_range, min_id, max_id),
        _assert(tf.reduce_all(~real | (num_ids == max_chars_per_token)), _MIXED),
        _assert(tf.reduce_all(real[:, :-1] | ~real[:, 1:]), _GAP),
    ]
    with tf.control_dependencies(checks):
        return tf.identity(ids)


def _shape(values: tf.Tensor) -> tf.Tensor:
    """Returns the shape that values have when the graph runs, not the shape in the signature."""
    return tf.shape(tf.raw_ops.PlaceholderWithDefault(input=values, shape=None))


def _assert_rank(name: str, shape: tf.Tensor, expected: str, rank: int) -> tf.Operation:
    return _assert(tf.equal(tf.size(shape), rank), f"{name}: expected shape {expected}, found {{}}", shape)


def _assert(condition: tf.Tensor, message: str, *values: tf.Tensor) -> tf.Operation:
    return tf.debugging.Assert(condition, [tf.strings.format(message, values)])
