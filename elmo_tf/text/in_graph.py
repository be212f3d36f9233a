"""Splitting and character ids as TensorFlow operations, for the graph of an exported model."""

import tensorflow as tf

from elmo_tf.text import char_ids as char_ids_lib


def split(sentences: tf.Tensor, tokenizer: str = "whitespace") -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the tokens and lengths of `split_with_offsets`."""
    return split_with_offsets(sentences, tokenizer)[:2]


def split_with_offsets(
    sentences: tf.Tensor, tokenizer: str = "whitespace"
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Splits sentences into tokens by the same rules as preprocessing.

    Args:
        sentences: string `(batch,)`; bytes that are not UTF-8 are kept.
        tokenizer: `"whitespace"`: on runs of ASCII white space; `"unicode"`: into words, numbers, punctuation marks,
            emoji and single ideographs and kana, with an operation of tensorflow-text.

    Returns:
        tokens: string `(batch, max_length)`, padded with `""`.
        lengths: int32 `(batch,)`.
        offsets: int32 `(batch, max_length, 2)`, the bytes of the sentence at which each token begins and ends, 0 at
            padding; None for the whitespace tokenizer.
    """
    offsets = None
    if tokenizer == "unicode":
        from elmo_tf.text import raw_text  # noqa: PLC0415 - loads tensorflow-text, which few need

        tokens, *places = raw_text.tokenize_with_offsets(sentences)
        offsets = tf.cast(tf.stack([place.to_tensor() for place in places], -1), tf.int32)
    else:
        tokens = tf.strings.split(sentences)
    return tokens.to_tensor(default_value=""), tf.cast(tokens.row_lengths(), tf.int32), offsets


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
    """Returns where each distinct one of string `(n,)` first occurs, and each string's index among them."""
    found, places = tf.unique(strings)
    return tf.math.unsorted_segment_min(tf.range(tf.size(strings)), places, tf.size(found)), places
