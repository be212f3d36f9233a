"""The vocabulary's order, its file, and what is refused."""

import hashlib
import itertools

import pytest

from elmo_tf.errors import InputError
from elmo_tf.text import vocabulary

SPECIAL = [b"<S>", b"</S>", b"<UNK>"]


def test_words_are_ordered_by_count_then_bytes_whatever_order_they_come_in():
    counts = {b"b": 2, b"a": 2, b"Z": 2, "\u00e9".encode(): 2, b"rare": 1, b"the": 9}
    expected = [*SPECIAL, b"the", b"Z", b"a", b"b", "\u00e9".encode(), b"rare"]
    assert vocabulary.from_counts(counts.items()).tokens == expected
    assert vocabulary.from_counts(reversed(counts.items())).tokens == expected


def test_a_limit_of_entries_leaves_out_the_rarest():
    counts = [(b"a", 3), (b"b", 2), (b"c", 2), (b"d", 1), (b"<S>", 50), (b"<UNK>", 50)]
    assert vocabulary.from_counts(counts, max_size=5).tokens == [*SPECIAL, b"a", b"b"]


def test_special_and_unknown_words_have_the_first_ids():
    words = vocabulary.Vocabulary([*SPECIAL, b"x"])
    assert words.ids([b"x", b"y", b"<S>", b"</S>", b"<UNK>", b""]) == [3, 2, 0, 1, 2, 2]
    assert len(words) == 4


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_file_is_read_back_as_it_was_written(end):
    words = vocabulary.Vocabulary([*SPECIAL, b"the", "caf\u00e9".encode(), b"a\xc2\xa0b"])
    line = end or b"\n"
    content = words.to_bytes().removesuffix(b"\n").replace(b"\n", line) + end
    again = vocabulary.from_bytes(content, "v")
    assert again.tokens == words.tokens
    assert again.sha256() == hashlib.sha256(b"<S>\n</S>\n<UNK>\nthe\ncaf\xc3\xa9\na\xc2\xa0b\n").hexdigest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "v: the file is empty"),
        (b" \n", "v: the file is empty"),
        (b"<S>\n</S>\n", "v: expected <S>, </S>, <UNK> as its first three lines, found .*'</S>'"),
        (b"</S>\n<S>\n<UNK>\n", "v: expected <S>, </S>, <UNK> as its first three lines"),
        (b"\xff\n</S>\n<UNK>\n", "v: expected <S>, </S>, <UNK> as its first three lines"),
        (b"<S>\n</S>\n<UNK>\na\nb\na\n", "v, line 6: the word b'a' is already in line 4"),
        (b"<S>\n</S>\n<UNK>\n<S>\n", "v, line 4: the word b'<S>' is already in line 1"),
        (b"<S>\n</S>\n<UNK>\na b\n", "v, line 4: expected a word without white space, found b'a b'"),
        (b"<S>\n</S>\n<UNK>\na\t3\n", "v, line 4: expected a word without white space"),
        (b"<S>\n</S>\n<UNK>\n\nb\n", "v, line 4: expected a word without white space, found b''"),
        (b"<S>\n</S>\n<UNK>\na\n\xe9\n", "v, line 5: not UTF-8"),
    ],
)
def test_an_unusable_file_is_refused_with_its_line(content, message):
    with pytest.raises(InputError, match=f"^{message}"):
        vocabulary.from_bytes(content, "v")


@pytest.mark.parametrize("first", list(itertools.permutations(SPECIAL)))
def test_a_published_file_may_begin_with_the_special_tokens_in_any_order(first):
    words, lines = vocabulary.from_published(b"\n".join([*first, b"the", b"a"]), "v")
    assert words.tokens == [*SPECIAL, b"the", b"a"]
    assert words.ids([b"<UNK>", b"the"]) == [2, 3]
    assert [first[line] for line in lines] == SPECIAL


@pytest.mark.parametrize("first", [b"<S>\n</S>", b"the\n<S>\n</S>\n<UNK>", b"<S>\n<S>\n<UNK>", b"</S>\n<S>\na"])
def test_a_published_file_has_the_special_tokens_first(first):
    with pytest.raises(InputError, match=r"^v: expected <S>, </S>, <UNK> as its first three lines, found"):
        vocabulary.from_published(first + b"\nb\n", "v")


def test_order_by_count_passes_and_the_reverse_is_refused():
    counts = [1000 // rank for rank in range(1, 201)]
    words = vocabulary.Vocabulary([*SPECIAL, *(f"w{number}".encode() for number in range(200))])
    marks = [5, 5, 900]  # sentence marks and unknown words stand first, however often they occur
    vocabulary.check_order(words, marks + counts, "v")
    swapped = [count for pair in zip(counts[1::2], counts[::2], strict=True) for count in pair]
    vocabulary.check_order(words, marks + swapped, "v")  # nearly in order, as of another corpus
    with pytest.raises(InputError, match=r"^v: its words are not in the order of their counts"):
        vocabulary.check_order(words, marks + counts[::-1], "v")
    # A handful of words is too few to judge.
    words = vocabulary.Vocabulary([*SPECIAL, *(f"w{number}".encode() for number in range(19))])
    vocabulary.check_order(words, [0, 0, 0, *range(1, 20)], "v")
