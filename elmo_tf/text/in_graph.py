"""Splitting and character ids as TensorFlow operations, for the graph of an exported model."""

import functools
from collections.abc import Callable

import tensorflow as tf

from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import characters, penn

_BYTE_ORDER_MARK = "\\A\ufeff"  # some editors write it at the beginning of a text; treated as white space


def split(sentences: tf.Tensor, tokenizer: str = "whitespace") -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the tokens and lengths of `split_with_offsets`."""
    if tf.executing_eagerly():  # one by one, the many operations of a tokenizer take twice as long as the network
        return _split_graph(tokenizer)(sentences)
    return split_with_offsets(sentences, tokenizer)[:2]


@functools.cache
def _split_graph(tokenizer: str) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    signature = [tf.TensorSpec((None,), tf.string)]
    return tf.function(lambda sentences: split_with_offsets(sentences, tokenizer)[:2], signature, autograph=False)


def split_with_offsets(
    sentences: tf.Tensor, tokenizer: str = "whitespace"
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Splits sentences into tokens by the same rules as preprocessing.

    Args:
        sentences: string `(batch,)`; bytes that are not UTF-8 are kept.
        tokenizer: `"whitespace"`: on runs of ASCII white space; `"penn"`: by the Penn Treebank's rules, as `penn.split`
            does; `"unicode"`: into words, numbers, punctuation marks, emoji and single ideographs and kana, with an
            operation of tensorflow-text; `"characters"`: into characters, as `characters.split` does.

    Returns:
        tokens: string `(batch, max_length)`, padded with `""`.
        lengths: int32 `(batch,)`.
        offsets: int32 `(batch, max_length, 2)`, the bytes of the sentence at which each token begins and ends, 0 at
            padding; None for the whitespace tokenizer.
    """
    offsets = None
    sentences = tf.strings.regex_replace(sentences, _BYTE_ORDER_MARK, "   ")  # the same length, for the offsets
    if tokenizer == "whitespace":
        tokens = tf.strings.split(sentences)
    else:
        if tokenizer == "unicode":
            from elmo_tf.text import raw_text  # noqa: PLC0415 - loads tensorflow-text, rarely needed

            tokens, *bounds = raw_text.tokenize_with_offsets(sentences)
        else:
            tokens, *bounds = (_penn if tokenizer == "penn" else _characters)(sentences)
        offsets = tf.cast(tf.stack([column.to_tensor() for column in bounds], -1), tf.int32)
    return tokens.to_tensor(default_value=""), tf.cast(tokens.row_lengths(), tf.int32), offsets


def _penn(sentences: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the words of each sentence and where each begins and ends, in bytes: `(batch, (tokens))`."""
    marked = _replaced(sentences, penn.RULES)
    pieces = tf.strings.split(marked, penn.MARK)
    ends = tf.cumsum(tf.strings.length(pieces.flat_values))
    before_row = tf.gather(tf.pad(ends, ((1, 0),)), pieces.row_starts())
    rows, ends = pieces.value_rowids(), ends - tf.repeat(before_row, pieces.row_lengths())
    begins = ends - tf.strings.length(pieces.flat_values)
    words = tf.strings.split(_replaced(marked, penn.NORMALIZED), penn.MARK).flat_values
    is_word = ~tf.strings.regex_full_match(pieces.flat_values, penn.WHITE_SPACE)
    rows = tf.boolean_mask(rows, is_word)
    values = (tf.boolean_mask(column, is_word) for column in (words, begins, ends))
    return tuple(tf.RaggedTensor.from_value_rowids(column, rows, pieces.nrows()) for column in values)


def _replaced(text: tf.Tensor, rules: tuple[tuple[str, str], ...]) -> tf.Tensor:
    for pattern, replacement in rules:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def _characters(sentences: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the characters of each sentence and where each begins and ends, in bytes: `(batch, (tokens))`."""
    decoded, ragged_begins = tf.strings.unicode_decode_with_offsets(sentences, "UTF-8")
    points, begins, rows = decoded.flat_values, ragged_begins.flat_values, decoded.value_rowids()
    is_first = tf.concat([tf.ones_like(rows[:1], tf.bool), rows[1:] != rows[:-1]], 0)
    sizes = tf.cast(tf.strings.length(tf.gather(sentences, rows)), tf.int64)
    ends = tf.where(tf.roll(is_first, -1, 0), sizes, tf.roll(begins, -1, 0))
    starts, kinds = zip(*characters.kinds(), strict=True)
    kind = tf.gather(kinds, tf.searchsorted(starts, points, side="right") - 1)
    alone = is_first | (tf.roll(kind, 1, 0) == characters.SPACE)
    kept = kind != characters.SPACE
    begins_token = kept & ((kind != characters.MARK) | alone)
    token = tf.boolean_mask(tf.cumsum(tf.cast(begins_token, tf.int64)) - 1, kept)
    spelled = tf.RaggedTensor.from_value_rowids(tf.boolean_mask(points, kept), token)
    values = (
        tf.strings.unicode_encode(spelled, "UTF-8"),
        tf.boolean_mask(begins, begins_token),
        tf.math.segment_max(tf.boolean_mask(ends, kept), token),
    )
    rows = tf.boolean_mask(rows, begins_token)
    return tuple(tf.RaggedTensor.from_value_rowids(column, rows, decoded.nrows()) for column in values)


def encode_tokens(
    tokens: tf.Tensor, lengths: tf.Tensor, max_chars_per_token: int = char_ids_lib.MAX_CHARS_PER_TOKEN
) -> tf.Tensor:
    """Returns the character ids of tokens, as `char_ids.encode_tokens` does.

    Args:
        tokens: string `(batch, max_length)`.
        lengths: int32 `(batch,)`, tokens of each sentence; the rest of its row is padding.
        max_chars_per_token: ids per token.

    Returns:
        int32 `(batch, max_length, max_chars_per_token)`.
    """
    max_bytes = max_chars_per_token - char_ids_lib.NUM_MARKS
    values = tf.cast(tf.io.decode_raw(tokens, tf.uint8, fixed_length=max_bytes), tf.int32)
    num_bytes = tf.minimum(tf.strings.length(tokens), max_bytes)[..., None]
    positions = tf.range(max_bytes + 1)
    values = tf.pad(values + 1, ((0, 0), (0, 0), (0, 1)))
    after = tf.where(positions == num_bytes, char_ids_lib.END_WORD, char_ids_lib.PAD)
    values = tf.where(positions < num_bytes, values, after)
    ids = tf.pad(values, ((0, 0), (0, 0), (1, 0)), constant_values=char_ids_lib.BEGIN_WORD)
    for token, mark in char_ids_lib.SENTENCE_MARKS.items():
        ids = tf.where((tokens == token)[..., None], char_ids_lib.boundary(mark, max_chars_per_token), ids)
    real = tf.sequence_mask(lengths, tf.shape(tokens)[1])
    return tf.where(real[..., None], ids, char_ids_lib.PADDING)


def distinct(strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the index at which each distinct string of `(n,)` first occurs, and each string's number among these."""
    unique, numbers = tf.unique(strings)
    return tf.math.unsorted_segment_min(tf.range(tf.size(strings)), numbers, tf.size(unique)), numbers
