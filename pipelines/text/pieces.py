"""Files made of pieces of text, and Zstandard, for which Python has no module before 3.14."""

import io
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

READ_BYTES = 1 << 17
_PIECE_BYTES = 1 << 12  # decompressed at a time: four bytes can stand for 128 kB
# As large as that of `zstd --long=31`, common in large text collections. A file takes only the memory that it needs.
_WINDOW_BYTES = 1 << 31


class _Pieces(io.RawIOBase):
    """A file to read whose content an iterator yields piece by piece."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not self._rest and (piece := next(self._pieces, None)) is not None:
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def open_pieces(pieces: Iterator[bytes]) -> BinaryIO:
    """Returns a file to read whose content is `pieces`, end to end."""
    return io.BufferedReader(_Pieces(pieces), READ_BYTES)


def open_zstd(file: BinaryIO) -> BinaryIO:
    """Returns the text of a zstd file with any number of frames; like `gzip` it leaves `file` open.

    Reading raises EOFError if the file ends within a frame, which zstandard's own reader does not notice.
    """
    return open_pieces(_decompressed(file))


def _decompressed(file: BinaryIO) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    frame, compressed = None, b""
    while compressed := compressed or file.read(READ_BYTES):
        frame = frame or decompressor.decompressobj()
        piece, compressed = compressed[:_PIECE_BYTES], compressed[_PIECE_BYTES:]
        yield frame.decompress(piece)
        if frame.eof:
            compressed, frame = frame.unused_data + compressed, None
    if frame is not None:
        raise EOFError("the file ends before the compressed text does")
