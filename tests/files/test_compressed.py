"""Compressed files: all of their streams, or an error."""

import bz2
import gzip
import io
import lzma

import pytest
from backports import zstd

from elmo_tf.files import compressed

PACK = {".gz": lambda text: gzip.compress(text, mtime=0), ".bz2": bz2.compress, ".xz": lzma.compress}
TEXTS = [b"one two\n" * 40, b"", b"three\n" * 30]


def zstd_with_checksum(text: bytes) -> bytes:
    """Returns a frame as the program `zstd` writes it."""
    return zstd.compress(text, options={zstd.CompressionParameter.checksum_flag: 1})


def read(ending: str, content: bytes) -> bytes:
    with compressed.OPEN[ending](io.BytesIO(content)) as file:
        return file.read()


@pytest.mark.parametrize("ending", PACK)
def test_streams_with_padding_are_read_to_the_end_from_any_byte_on(ending):
    first, second, third = map(PACK[ending], TEXTS)
    content, text = first + bytes(16) + second + third + bytes(4), b"".join(TEXTS)
    assert read(ending, content) == text
    with compressed.OPEN[ending](io.BytesIO(content)) as file:
        for start in (0, 300, 7, 400, len(text), 1, len(text) + 9):
            file.seek(start)
            assert file.readline() == text[start:].partition(b"\n")[0] + b"\n" * (start < len(text))


@pytest.mark.parametrize("ending", [*PACK, ".zst"])
def test_no_flipped_bit_and_no_cut_loses_text_without_an_error(ending):
    parts = [PACK.get(ending, zstd_with_checksum)(text) for text in TEXTS]
    whole, text = b"".join(parts), b"".join(TEXTS)
    ends = {len(b"".join(parts[:count])) for count in range(4)}
    damaged = [whole[:cut] for cut in range(1, len(whole)) if cut not in ends]
    for number in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[number // 8] ^= 1 << number % 8
        damaged.append(bytes(flipped))
    for content in damaged:
        try:
            result = read(ending, content)
        except (*compressed.DAMAGED, zstd.ZstdError):
            continue
        assert result == text  # of a time or a name in the header of gzip


def test_padding_of_an_xz_file_is_a_multiple_of_four_bytes():
    for ending, count, is_valid in ((".xz", 3, False), (".xz", 8, True), (".gz", 3, True), (".bz2", 3, True)):
        content = PACK[ending](b"a\n") + bytes(count)
        if is_valid:
            assert read(ending, content) == b"a\n"
        else:
            with pytest.raises(EOFError, match=r"^its padding is incomplete$"):
                read(ending, content)
