"""Sentences to tokens in Python, by the tokenizer's name; `in_graph` splits in the same way."""

import itertools

from elmo_tf.errors import InputError
from elmo_tf.text import characters, penn

# How a sentence is split: on runs of ASCII white space; English text by the Penn Treebank's rules; text of any language
# by Unicode's properties, which needs tensorflow-text; into characters.
TOKENIZERS = ("whitespace", "penn", "unicode", "characters")


def check(tokenizer: str) -> None:
    """Raises `InputError` unless `tokenizer` is in `TOKENIZERS`."""
    if tokenizer not in TOKENIZERS:
        raise InputError("tokenizer", f"one of {', '.join(TOKENIZERS)}", repr(tokenizer))


def split(sentences: list[bytes], tokenizer: str) -> list[list[bytes]]:
    """Returns the tokens of each sentence, in UTF-8, by a tokenizer of `TOKENIZERS`."""
    if tokenizer == "unicode" and sentences:
        from elmo_tf.text import raw_text  # noqa: PLC0415 - it imports TensorFlow

        ragged = raw_text.tokenize(sentences)
        tokens, ends = ragged.flat_values.numpy().tolist(), ragged.row_splits.numpy().tolist()
        return [tokens[start:end] for start, end in itertools.pairwise(ends)]
    # On bytes, `split` splits at the six ASCII white space characters only, as tf.strings.split does.
    split_sentence = {"characters": characters.split, "penn": penn.split_bytes}.get(tokenizer, bytes.split)
    return list(map(split_sentence, sentences))
