"""A sentence has the same vectors in every batch as alone, and everything else is 0.

Each batch is drawn from sentences of odd tokens: a few hundred for each signature, or 10,000 with `make property`.
"""

import os

import numpy as np
import pytest
import tensorflow as tf

from tests import checks
from tests.helpers import batch_char_ids

NUM_BATCHES = int(os.environ.get("ELMO_TF_PROPERTY_BATCHES", "300"))
SEED = int(os.environ.get("ELMO_TF_PROPERTY_SEED", "0"))
SPACE = b" \t\n\r\x0b\x0c"
MARKS = (b"<S>", b"</S>", b"<UNK>", b"\0", b"\x7f", b"\x1b[0m", b"</S></S>")
# First letters of Latin, Greek, Cyrillic, Hebrew and Arabic, accents that combine, Chinese, Japanese, Korean, emoji.
SCRIPTS = (0x61, 0xE0, 0x3B1, 0x430, 0x5D0, 0x627, 0x300, 0x4E00, 0x3042, 0x30A2, 0xAC00, 0x1F600)
# No-break space, zero-width joiner, line separator, right-to-left override, byte order mark.
INVISIBLE = (0xA0, 0x200D, 0x2028, 0x202E, 0xFEFF)
LETTERS = [*(chr(first + offset) for first in SCRIPTS for offset in range(8)), *map(chr, INVISIBLE)]


def draw_token(random) -> bytes:
    """Returns one of: a mark, any bytes, any bytes too long for a token, nothing, letters of many scripts."""
    kind = random.integers(8)
    if kind == 0:
        return MARKS[random.integers(len(MARKS))]
    if kind <= 2:
        return random.bytes(random.integers(1, 12) if kind == 1 else random.integers(40, 300))
    if kind == 3:
        return b""
    return "".join(random.choice(LETTERS, random.integers(1, 30))).encode()


def draw_sentences(spaced: bool, count: int = 300) -> list[list[bytes]]:
    """Returns sentences of up to 7 tokens, one of them empty; if `spaced`, white space separates the tokens."""
    random = np.random.default_rng([SEED, spaced])
    sentences = [[], *([draw_token(random) for _ in range(random.integers(1, 8))] for _ in range(count))]
    return [b" ".join(words).split() for words in sentences] if spaced else sentences


def alone(model, sentences: list[list[bytes]]) -> list[dict[str, np.ndarray]]:
    """Returns a model's outputs for each sentence alone."""
    rows = []
    for words in sentences:
        tokens, length = np.array(words, object).reshape(1, -1), np.array([len(words)], np.int32)
        tensors = {"tokens": tf.constant(tokens, tf.string), "sequence_len": tf.constant(length)}
        outputs = model.signatures["tokens"](**tensors)
        rows.append({name: outputs[name].numpy()[0] for name in ("layers", "elmo", "default")})
    return rows


def strings_of(random, sentences):
    """Returns sentences with white space of all kinds around their tokens, and the longest sentence's length."""

    def space(least):
        return bytes(SPACE[index] for index in random.integers(0, len(SPACE), random.integers(least, 4)))

    strings = [space(0) + b"".join(word + space(1) for word in words) for words in sentences]
    assert [text.split() for text in strings] == sentences
    return {"strings": np.array(strings, object)}, max(map(len, sentences), default=0)


def tokens_of(random, sentences):
    """Returns sentences with anything right of their lengths, and the length of the rows."""
    max_length = max(map(len, sentences), default=0) + random.integers(0, 4)
    fillers = [b"", b"filler", b"<S>", b"\xff\0"]
    rows = [words + [fillers[index] for index in random.integers(0, 4, max_length - len(words))] for words in sentences]
    lengths = np.array([len(words) for words in sentences], np.int32)
    return {"tokens": np.array(rows, object).reshape(len(rows), max_length), "sequence_len": lengths}, max_length


def char_ids_of(random, sentences):
    """Returns sentences as character ids by the NumPy convention, padded, and the length of the rows."""
    max_length = max(map(len, sentences), default=0) + random.integers(0, 4)
    return {"char_ids": batch_char_ids(sentences, max_length)}, max_length


DTYPES = {"strings": tf.string, "tokens": tf.string}
INPUTS = {"default": strings_of, "tokens": tokens_of, "char_ids": char_ids_of}


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_any_batch_gives_what_its_sentences_give_alone(loaded, name):
    signature = loaded.signatures[name]
    sentences = draw_sentences(spaced=name == "default")
    wanted = alone(loaded, sentences)
    for batch in range(NUM_BATCHES):
        random = np.random.default_rng([SEED, batch])
        numbers = random.integers(0, len(sentences), random.integers(0, 6)).tolist()
        inputs, max_length = INPUTS[name](random, [sentences[number] for number in numbers])
        tensors = {key: tf.constant(value, DTYPES.get(key, tf.int32)) for key, value in inputs.items()}
        outputs = {key: value.numpy() for key, value in signature(**tensors).items()}
        context = f"batch {batch} of seed {SEED}"
        assert outputs["layers"].shape == (len(numbers), 3, max_length, 16), context
        for row, number in enumerate(numbers):
            length = len(sentences[number])
            np.testing.assert_array_equal(outputs["mask"][row], np.arange(max_length) < length, context)
            for output in wanted[number].keys() & outputs.keys():
                value = outputs[output][row]
                if output in ("layers", "elmo"):
                    assert not value[..., length:, :].any(), context
                    value = value[..., :length, :]
                np.testing.assert_allclose(value, wanted[number][output], **checks.TOLERANCE, err_msg=context)
