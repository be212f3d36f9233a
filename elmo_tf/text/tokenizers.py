"""Text to tokens in Python, by the tokenizer's name; `in_graph` splits in the same way.

A byte order mark at the beginning of a text, which some editors write into files, is white space.
"""

import codecs
import itertools
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from elmo_tf.config import Tokenizer
from elmo_tf.errors import InputError
from elmo_tf.text import penn
from elmo_tf.text.penn import Word

TOKENIZERS = typing.get_args(Tokenizer)

Text = str | bytes | Sequence[str | bytes] | np.ndarray  # a sentence to split, or its tokens

_BYTE_ORDER_MARK = "\ufeff"
_RUN = re.compile(r"[^ \t\n\v\f\r]+")
# Parts of a word that an answer may begin or end with.
_PART = re.compile(r"[-_/\u0640\u2010-\u2015]|[^-_/\u0640\u2010-\u2015]+")


def check(tokenizer: str, subject: str = "tokenizer") -> None:
    """Raises `InputError` about `subject` unless `tokenizer` is in `TOKENIZERS`."""
    if tokenizer not in TOKENIZERS:
        raise InputError(subject, f"one of {', '.join(TOKENIZERS)}", repr(tokenizer))


def split(sentences: list[bytes], tokenizer: str) -> list[list[bytes]]:
    """Returns the tokens of each sentence, in UTF-8, by a tokenizer of `TOKENIZERS`."""
    sentences = [sentence.removeprefix(codecs.BOM_UTF8) for sentence in sentences]
    if tokenizer == "unicode" and sentences:
        from elmo_tf.text import raw_text  # noqa: PLC0415 - it imports TensorFlow

        ragged = raw_text.tokenize(sentences)
        tokens, ends = ragged.flat_values.numpy().tolist(), ragged.row_splits.numpy().tolist()
        return [tokens[start:end] for start, end in itertools.pairwise(ends)]
    if tokenizer == "characters":
        from elmo_tf.text import characters  # noqa: PLC0415 - only sequences need it

        return list(map(characters.split, sentences))
    # On bytes, `split` splits at the six ASCII white space characters only, as tf.strings.split does.
    return list(map(penn.split_bytes if tokenizer == "penn" else bytes.split, sentences))


def as_token(word: bytes, tokenizer: str) -> bytes:
    """Returns a user's word as a tokenizer writes it, perhaps empty; raises `InputError` if the tokenizer splits it."""
    (parts,) = split([word], tokenizer)
    if len(parts) > 1:
        raise InputError("word", f"the tokenizer {tokenizer} splits it: {b' '.join(parts).decode(errors='replace')!r}")
    return b"".join(parts)


def split_texts(texts: Iterable[Text], tokenizer: str, parameter: str = "texts") -> list[list[bytes]]:
    """Returns the tokens of a user's texts; those that are lists of tokens are not split again.

    Raises:
        InputError: about `parameter`, if they are something else.
    """
    if (
        isinstance(texts, str | bytes | bytearray | memoryview)
        or not isinstance(texts, Iterable)
        or getattr(texts, "ndim", 1) == 0
    ):
        raise InputError(parameter, "a list of texts, [text] for a single text", repr(texts))
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # iterating would give column names
        raise InputError(parameter, "a list of texts, or one column of a table", f"a {type(texts).__name__}")
    checked: list[bytes | list[bytes]] = []
    for text in texts:
        if isinstance(text, str | bytes):
            checked.append(to_bytes(text, parameter))
        elif isinstance(text, Sequence | np.ndarray) and not isinstance(text, bytearray | memoryview):
            checked.append([to_bytes(token, parameter) for token in text])
        else:
            raise InputError(parameter, "sentences that are str or bytes, or lists of tokens", repr(text))
    tokens = iter(split([text for text in checked if isinstance(text, bytes)], tokenizer))
    return [next(tokens) if isinstance(text, bytes) else text for text in checked]


def to_bytes(token: object, parameter: str) -> bytes:
    """Returns a user's token or text, str or bytes, NumPy's included, as UTF-8 bytes.

    Raises `InputError` about `parameter` for anything else, and for half a surrogate pair, which UTF-8 cannot hold.
    """
    if isinstance(token, bytes):
        return bytes(token)
    try:
        if isinstance(token, str):
            return token.encode()
    except UnicodeEncodeError:
        raise InputError(parameter, "tokens without half a surrogate pair", ascii(token)) from None
    raise InputError(parameter, "tokens that are str or bytes", repr(token))


def words_of(text: str, tokenizer: str = "penn", split_hyphens: bool = False) -> list[Word]:
    """Returns the tokens of a text with their offsets in it, in characters.

    Args:
        text: in any language. In scripts without spaces, each character is a word: ideographs, kana and, with `penn`,
            each letter of Thai, Lao, Khmer or Burmese with its marks.
        tokenizer: a name in `TOKENIZERS`.
        split_hyphens: whether hyphens, dashes, slashes and underscores inside a word are words of their own, so that
            more parts of the text begin and end with a word.
    """
    (words,) = words_of_each([text], tokenizer)
    return [part for word in words for part in _parts(text, word)] if split_hyphens else words


def words_of_each(texts: Sequence[str], tokenizer: str) -> list[list[Word]]:
    """Returns `words_of` each text. With `unicode`, one call for many texts is much faster than a call for each."""
    texts = [f" {text[1:]}" if text.startswith(_BYTE_ORDER_MARK) else text for text in texts]
    if tokenizer == "unicode":
        from elmo_tf.text import raw_text  # noqa: PLC0415 - imports TensorFlow

        return raw_text.split_with_offsets(texts)
    split_text = {"characters": _characters, "penn": penn.split_with_offsets}.get(tokenizer, _runs)
    return list(map(split_text, texts))


def _characters(text: str) -> list[Word]:
    from elmo_tf.text import characters  # noqa: PLC0415 - only sequences need it

    content = text.encode(errors="replace")  # half of a surrogate pair becomes `?`
    return list(_located(content.decode(), [token.decode() for token in characters.split(content)]))


def _runs(text: str) -> list[Word]:
    return [Word(run.group(), run.start(), run.end()) for run in _RUN.finditer(text)]


def _located(text: str, tokens: list[str]) -> Iterator[Word]:
    end = 0
    for token in tokens:
        start = text.find(token, end)
        end = start + len(token)
        yield Word(token, start, end)


def _parts(text: str, word: Word) -> list[Word]:
    """Returns the parts of a word that has letters or digits on both sides of a hyphen or slash."""
    whole = text[word.start : word.end]
    parts = list(_PART.finditer(whole))
    if len(parts) == 1 or not any(character.isalnum() for character in whole):
        return [word]
    return [
        Word(inner.text, word.start + part.start() + inner.start, word.start + part.start() + inner.end)
        for part in parts
        for inner in penn.split_with_offsets(part.group())
    ]
