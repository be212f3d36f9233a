"""Decoding many sentences: the same result as protobuf's, however an Example is written; others are refused."""

import numpy as np
import pytest

from elmo_tf.records import examples, record_folder, wire

VOCAB_SIZE = 3_000_000


def varint(value: int, width: int = 1) -> bytes:
    """Spells a number with 7 bits a byte, in `width` bytes or what it needs if that is more."""
    value &= (1 << 64) - 1
    spelled = [value & 127]
    while value := value >> 7:
        spelled.append(value & 127)
    spelled += [0] * (width - len(spelled))
    return bytes([byte | 128 for byte in spelled[:-1]] + spelled[-1:])


def field(number: int, content: bytes, width: int = 1) -> bytes:
    return varint(number << 3 | 2) + varint(len(content), width) + content


def written(features: list[tuple[bytes, int, bytes]], width: int = 1) -> bytes:
    """Spells an Example whose features are given as name, kind (1: bytes, 3: int64) and the list's own bytes."""
    entries = [field(1, name, width) + field(2, field(kind, values, width), width) for name, kind, values in features]
    return field(1, b"".join(field(1, entry, width) for entry in entries), width)


def features(sentence: record_folder.Sentence, packed: bytes | None = None) -> list[tuple[bytes, int, bytes]]:
    if packed is None:
        packed = field(1, b"".join(map(varint, sentence.token_ids.tolist())))
    texts = [
        (name, 1, field(1, values.tobytes()))
        for name, values in ((b"char_ids", sentence.char_bytes), (b"char_lengths", sentence.char_lengths))
    ]
    return [*texts, (b"token_ids", 3, packed)]


def random_sentence(random: np.random.Generator) -> record_folder.Sentence:
    num_words = random.choice([0, 1, 5, 30, 700])
    lengths = random.integers(0, random.choice([2, 12, 49]), num_words).astype(np.uint8)
    inner = random.integers(0, random.choice([3, 130, 20_000, VOCAB_SIZE]), num_words)
    chars = random.integers(0, 256, int(lengths.sum())).astype(np.uint8)
    return record_folder.Sentence(np.array([0, *inner, 1]), chars, lengths)


def plain(sentence: record_folder.Sentence) -> bytes:
    return wire.encode_example(
        wire.varints(sentence.token_ids.tolist()), sentence.char_bytes.tobytes(), sentence.char_lengths.tobytes()
    )


def backwards(sentence: record_folder.Sentence) -> bytes:
    return written(features(sentence)[::-1])


def unpacked(sentence: record_folder.Sentence) -> bytes:
    return written(features(sentence, b"".join(b"\x08" + varint(number) for number in sentence.token_ids.tolist())))


def in_two_packs(sentence: record_folder.Sentence) -> bytes:
    spelled = [varint(number) for number in sentence.token_ids.tolist()]
    return written(features(sentence, field(1, spelled[0]) + field(1, b"".join(spelled[1:]))))


def with_wide_numbers(sentence: record_folder.Sentence) -> bytes:
    spelled = b"".join(varint(number, 10) for number in sentence.token_ids.tolist())
    return written(features(sentence, field(1, spelled)))


def with_wide_lengths(sentence: record_folder.Sentence) -> bytes:
    return written(features(sentence), width=5)  # protobuf 7 refuses longer ones


def with_another_feature(sentence: record_folder.Sentence) -> bytes:
    return written([*features(sentence), (b"weight", 2, b"\x0a\x04\x00\x00\x80\x3f")])


def with_a_feature_twice(sentence: record_folder.Sentence) -> bytes:
    """The last one counts."""
    return written([*features(sentence._replace(token_ids=np.array([0, 5, 1]))), features(sentence)[2]])


LAYOUTS = (
    plain,
    backwards,
    unpacked,
    in_two_packs,
    with_wide_numbers,
    with_wide_lengths,
    with_another_feature,
    with_a_feature_twice,
)


def assert_same(found: examples.Sentences, expected: list[record_folder.Sentence]) -> None:
    assert found.num_tokens.tolist() == [len(sentence.token_ids) for sentence in expected]
    np.testing.assert_array_equal(found.token_ids, np.concatenate([sentence.token_ids for sentence in expected]))
    np.testing.assert_array_equal(found.char_bytes, np.concatenate([sentence.char_bytes for sentence in expected]))
    np.testing.assert_array_equal(found.char_lengths, np.concatenate([sentence.char_lengths for sentence in expected]))
    assert [array.dtype for array in found] == [np.int64, np.int32, np.uint8, np.uint8]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_writers_examples_are_read(layout):
    random = np.random.default_rng(0)
    sentences = [random_sentence(random) for _ in range(40)]
    spelled = [layout(sentence) for sentence in sentences]
    for record, sentence in zip(spelled, sentences, strict=True):
        for one, other in zip(record_folder.decode_example(record), sentence, strict=True):
            np.testing.assert_array_equal(one, other)
    assert_same(examples.decode_examples(spelled, VOCAB_SIZE), sentences)


def test_layouts_mix():
    random = np.random.default_rng(1)
    sentences = [random_sentence(random) for _ in range(200)]
    spelled = [LAYOUTS[random.integers(len(LAYOUTS))](sentence) for sentence in sentences]
    assert_same(examples.decode_examples(spelled, VOCAB_SIZE), sentences)


def test_what_the_own_writer_makes_needs_no_protobuf(monkeypatch):
    random = np.random.default_rng(2)
    sentences = [random_sentence(random) for _ in range(100)]
    spelled = [plain(sentence) for sentence in sentences]
    monkeypatch.setattr(record_folder, "decode_example", None)
    assert_same(examples.decode_examples(spelled, VOCAB_SIZE), sentences)


SENTENCE = record_folder.Sentence(np.array([0, 7, 9, 1]), np.frombuffer(b"cat", np.uint8), np.array([2, 1], np.uint8))
GOOD = plain(SENTENCE)
NO_EXAMPLE, LACKS = "bytes that are not a tf.train.Example", "no token_ids, or not exactly one value"


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (b"\xff\xff\xff", NO_EXAMPLE),
        (GOOD[:-1], NO_EXAMPLE),
        (written(features(SENTENCE, field(1, b"\x00\x07\x09\x81"))), NO_EXAMPLE),  # the last number goes on
        (written(features(SENTENCE, field(1, b"\x00\x07" + b"\x89" + b"\x80" * 10 + b"\x00\x01"))), "-1 as number 2"),
        (b"", LACKS),
        (written(features(SENTENCE)[:2]), LACKS),
        (written(features(SENTENCE)[1:]), LACKS),
        (written(features(SENTENCE, b"")), LACKS),
        (written([(b"char_ids", 1, field(1, b"ca") + field(1, b"t")), *features(SENTENCE)[1:]]), LACKS),
        (written([(b"char_ids", 3, b""), *features(SENTENCE)[1:]]), LACKS),
        (plain(SENTENCE._replace(token_ids=np.array([0, 7, 9, 9, 1]))), "5 token_ids, not two more than 2"),
        (plain(SENTENCE._replace(token_ids=np.array([0]))), "1 token_ids, not two more than 2"),
        (plain(SENTENCE._replace(char_lengths=np.array([2, 2], np.uint8))), "3 bytes of char_ids, not 4"),
        (plain(SENTENCE._replace(char_lengths=np.array([1, 1], np.uint8))), "3 bytes of char_ids, not 2"),
        (plain(SENTENCE._replace(token_ids=np.array([0, 7, VOCAB_SIZE, 1]))), f"{VOCAB_SIZE} as number 2 of 4"),
        (plain(SENTENCE._replace(token_ids=np.array([0, 7, 1 << 40, 1]))), f"{1 << 40} as number 2 of 4"),
        (plain(SENTENCE._replace(token_ids=np.array([0, -1, 7, 1]))), "-1 as number 1 of 4"),
        (plain(SENTENCE._replace(token_ids=np.array([7, 7, 9, 1]))), "7 as number 0 of 4"),
        (plain(SENTENCE._replace(token_ids=np.array([0, 7, 9, 7]))), "7 as number 3 of 4"),
    ],
)
@pytest.mark.parametrize("others", [0, 3])
def test_a_record_that_is_not_a_sentence_is_refused_by_its_number(record, found, others):
    with pytest.raises(record_folder.UnfitRecordError, match=found) as caught:
        examples.decode_examples([*[GOOD] * others, record, GOOD], VOCAB_SIZE)
    assert caught.value.number == others


def test_a_single_damaged_byte_never_passes_for_something_else_than_protobuf_reads():
    for place in range(len(GOOD)):
        for bit in range(8):
            record = bytearray(GOOD)
            record[place] ^= 1 << bit
            record = bytes(record)
            try:
                expected = record_folder.decode_example(record)
            except record_folder.UnfitRecordError:
                expected = None
            try:
                found = examples.decode_examples([GOOD, record, GOOD], VOCAB_SIZE)
            except record_folder.UnfitRecordError:
                continue  # also for what protobuf takes: the features do not fit
            assert expected is not None
            assert_same(found, [SENTENCE, expected, SENTENCE])
