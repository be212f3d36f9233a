"""Sentences to tokens in Python, by the tokenizer's name; `in_graph` splits in the same way."""

import itertools

from elmo_tf.text import characters


def split(sentences: list[bytes], tokenizer: str) -> list[list[bytes]]:
    """Returns the tokens of each sentence, in UTF-8; `tokenizer` is one of `contract.TOKENIZERS`."""
    if tokenizer == "unicode" and sentences:
        from elmo_tf.text import raw_text  # noqa: PLC0415 - it imports TensorFlow

        ragged = raw_text.tokenize(sentences)
        tokens, ends = ragged.flat_values.numpy().tolist(), ragged.row_splits.numpy().tolist()
        return [tokens[start:end] for start, end in itertools.pairwise(ends)]
    # On bytes, `split` splits at the six ASCII white space characters only, as tf.strings.split does.
    return list(map(characters.split if tokenizer == "characters" else bytes.split, sentences))
