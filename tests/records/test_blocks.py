"""Decoding many sentences: what the writer was given comes back; anything else is refused."""

import numpy as np
import pytest

from elmo_tf.records import blocks, wire

VOCAB_SIZE = 3_000_000


def encoded(token_ids: list[int], text: bytes, lengths: list[int]) -> bytes:
    return wire.encode_example(b"".join(map(wire.varint, token_ids)), text, bytes(lengths))


def test_sentences_of_all_lengths_come_back():
    random = np.random.default_rng(0)
    given = []
    for _ in range(200):
        num_words = random.choice([0, 1, 5, 30, 700])
        lengths = random.integers(0, random.choice([2, 12, 49]), num_words)
        inner = random.integers(0, random.choice([3, 130, 20_000, VOCAB_SIZE]), num_words)
        given.append(([0, *inner.tolist(), 1], random.bytes(lengths.sum()), lengths.tolist()))
    decoded = blocks.decode_examples([encoded(*sentence) for sentence in given], VOCAB_SIZE)
    token_ids, text, lengths = zip(*given, strict=True)
    np.testing.assert_array_equal(decoded.num_tokens, list(map(len, token_ids)))
    np.testing.assert_array_equal(decoded.token_ids, np.concatenate(token_ids))
    np.testing.assert_array_equal(decoded.char_lengths, np.concatenate(lengths))
    assert decoded.char_bytes.tobytes() == b"".join(text)
    assert [array.dtype for array in decoded] == [np.int64, np.int32, np.uint8, np.uint8]


GOOD = encoded([0, 7, 9, 1], b"cat", [2, 1])
NO_FEATURES = "it has no token_ids, char_ids or char_lengths"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (b"\xff\xff\xff", NO_FEATURES),
        (b"", NO_FEATURES),
        (GOOD[:-1], NO_FEATURES),
        (GOOD.replace(b"char_ids", b"word_ids"), NO_FEATURES),
        (GOOD.replace(b"token_ids", b"other_ids"), "0 token_ids for 2 char_lengths; expected 4"),
        (wire.encode_example(b"\x00\x07\x09\x81", b"cat", b"\2\1"), NO_FEATURES),  # the last varint is incomplete
        (encoded([0, 7, 9, 9, 1], b"cat", [2, 1]), "5 token_ids for 2 char_lengths; expected 4"),
        (encoded([0], b"cat", [2, 1]), "1 token_ids for 2 char_lengths; expected 4"),
        (encoded([0, 7, 9, 1], b"cat", [2, 2]), "3 bytes of char_ids; its char_lengths add up to 4"),
        (encoded([0, 7, 9, 1], b"cat", [1, 1]), "3 bytes of char_ids; its char_lengths add up to 2"),
        (encoded([0, 7, VOCAB_SIZE, 1], b"cat", [2, 1]), f"{VOCAB_SIZE} as number 2 of 4"),
        (encoded([0, 7, 1 << 40, 1], b"cat", [2, 1]), f"{1 << 40} as number 2 of 4"),
        (encoded([0, -1, 7, 1], b"cat", [2, 1]), "-1 as number 1 of 4"),
        (encoded([7, 7, 9, 1], b"cat", [2, 1]), "7 as number 0 of 4"),
        (encoded([0, 7, 9, 7], b"cat", [2, 1]), "7 as number 3 of 4"),
    ],
)
@pytest.mark.parametrize("others", [0, 3])
def test_a_record_that_is_not_a_sentence_is_refused_by_its_number(record, problem, others):
    with pytest.raises(blocks.InvalidRecordError, match=problem) as caught:
        blocks.decode_examples([*[GOOD] * others, record, GOOD], VOCAB_SIZE)
    assert caught.value.index == others


def test_a_single_damaged_bit_never_changes_other_sentences():
    for bit in range(len(GOOD) * 8):
        record = bytearray(GOOD)
        record[bit // 8] ^= 1 << bit % 8
        try:
            decoded = blocks.decode_examples([GOOD, bytes(record), GOOD], VOCAB_SIZE)
        except blocks.InvalidRecordError as error:
            assert error.index == 1
            continue
        assert decoded.token_ids[:4].tolist() == decoded.token_ids[-4:].tolist() == [0, 7, 9, 1]
        assert decoded.char_bytes[:3].tobytes() == decoded.char_bytes[-3:].tobytes() == b"cat"
