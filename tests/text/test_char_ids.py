"""Character ids: the literal numbers of the convention, and that every way to make them agrees."""

import numpy as np
import pytest

from elmo_tf.text import char_ids

PAD = 261


def padded(*ids: int) -> list[int]:
    return [*ids, *[PAD] * (50 - len(ids))]


def test_a_word_is_its_bytes_plus_one_between_the_word_marks():
    words = ["cat", "\u00e9", "", "\u4e2d"]
    assert char_ids.encode_tokens([word.encode() for word in words]).tolist() == [
        padded(259, 100, 98, 117, 260),
        padded(259, 0xC3 + 1, 0xA9 + 1, 260),
        padded(259, 260),
        padded(259, 0xE4 + 1, 0xB8 + 1, 0xAD + 1, 260),
    ]
    # The lowest and highest bytes keep clear of padding and marks.
    assert char_ids.encode_tokens([b"\x00\xff"]).tolist() == [padded(259, 1, 256, 260)]
    assert (char_ids.PADDING, char_ids.NUM_CHARS) == (0, PAD + 1)
    assert (char_ids.encode_tokens([]).shape, char_ids.encode_tokens([b"a"], 10).shape) == ((0, 50), (1, 10))
    assert char_ids.encode_tokens([b"a"]).dtype == np.int32


def test_sentence_marks_have_ids_of_their_own():
    assert char_ids.encode_tokens([b"<S>", b"</S>", b"<S", b"<s>", b"<UNK>"])[:, :7].tolist() == [
        [259, 257, 260, PAD, PAD, PAD, PAD],
        [259, 258, 260, PAD, PAD, PAD, PAD],
        [259, 61, 84, 260, PAD, PAD, PAD],
        [259, 61, 116, 63, 260, PAD, PAD],
        [259, 61, 86, 79, 76, 63, 260],
    ]
    assert char_ids.boundary(char_ids.BEGIN_SENTENCE).tolist() == padded(259, 257, 260)
    assert char_ids.boundary(char_ids.END_SENTENCE).tolist() == padded(259, 258, 260)


@pytest.mark.parametrize("length", [47, 48, 49, 300])
def test_a_long_word_is_cut_after_48_bytes(length):
    kept = min(length, 48)
    (ids,) = char_ids.encode_tokens([b"a" * length]).tolist()
    assert ids == [259] + [98] * kept + [260] + [PAD] * (48 - kept)
    # The cut may fall inside a character.
    (ids,) = char_ids.encode_tokens([b"a" * 47 + "\u00e9".encode()]).tolist()
    assert ids[47:] == [98, 0xC3 + 1, 260]


def test_tokens_together_have_the_ids_that_each_has_alone():
    words = [b"a", b"", b"</S>", b"b" * 70, b"<S>", b"\xff" * 48, b"", b"end"] * 40  # more than 255 bytes in all
    one_by_one = np.concatenate([char_ids.encode_tokens([word]) for word in words])
    np.testing.assert_array_equal(char_ids.encode_tokens(words), one_by_one)
