"""Generated text with words as frequent as in real text, for benchmarks without input files.

The frequency of the word of rank r is proportional to 1 / (r + 5) ** 1.2. In a window of 128 x 20 tokens, 35 % of the
tokens are distinct, as in a novel; a token has 5 to 19 characters, begin and end marks included.
"""

import pathlib

import numpy as np

from elmo_tf.records import record_folder
from elmo_tf.text.vocabulary import SPECIAL_TOKENS

# Each begins with a consonant, so words stay distinct.
_ENDINGS = ("", "n", "s", "r", "ning", "ty", "nly", "st", "l", "mation", "d")
_OFFSET, _EXPONENT = 5, 1.2


def words(count: int) -> list[str]:
    """Returns `count` distinct words, short ones first."""
    return [_vowels(rank + 1) + _ENDINGS[rank % len(_ENDINGS)] for rank in range(count)]


def _vowels(number: int) -> str:
    spelled = ""
    while number:
        number, digit = divmod(number, 5)
        spelled += "aeiou"[digit]
    return spelled


def sentences(vocab_size: int, num_tokens: int, seed: int = 0) -> list[str]:
    """Returns sentences of 3 to 47 words with `num_tokens` tokens in all, from `vocab_size` generated words."""
    random, vocabulary = np.random.default_rng(seed), words(vocab_size)
    shares = (np.arange(len(vocabulary)) + _OFFSET) ** -_EXPONENT
    text = np.array(vocabulary)[random.choice(len(vocabulary), num_tokens, p=shares / shares.sum())]
    ends = np.cumsum(random.integers(3, 48, num_tokens // 25))
    return [" ".join(sentence) for sentence in np.split(text, ends[ends < num_tokens])]


def write_records(folder: pathlib.Path, vocab_size: int, num_tokens: int, seed: int = 0) -> record_folder.Records:
    """Makes records of generated text with `elmo-tf preprocess`, with a vocabulary of `vocab_size` words."""
    size = vocab_size - len(SPECIAL_TOKENS)
    special = [token.decode() for token in SPECIAL_TOKENS]
    (folder / "words.txt").write_text("\n".join([*special, *words(size)]) + "\n")
    return _preprocessed(folder, "text.txt", "records", sentences(size, num_tokens, seed))


def _preprocessed(folder: pathlib.Path, source: str, name: str, text: list[str]) -> record_folder.Records:
    # Here, because Beam is large and some benchmarks measure memory.
    from elmo_tf.cli import jobs  # noqa: PLC0415

    (folder / source).write_text("\n".join(text) + "\n")
    arguments = ("--input", source, "--vocab", "words.txt", "--output", name)
    jobs.run("preprocess", [part if part.startswith("--") else str(folder / part) for part in arguments])
    return record_folder.open_folder(folder / name)
