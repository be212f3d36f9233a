"""Zstandard files, for which Python has no module before 3.14."""

import io
from typing import BinaryIO

import zstandard

Error = zstandard.ZstdError

_READ_BYTES = 1 << 17
_PIECE_BYTES = 1 << 12  # decompressed at a time: four bytes can stand for 128 kB
# As large as that of `zstd --long=31`, common in large text collections. A file takes only the memory that it needs.
_WINDOW_BYTES = 1 << 31


def open_file(file: BinaryIO) -> BinaryIO:
    """Returns the text of a zstd file with any number of frames; like `gzip` it leaves `file` open."""
    return io.BufferedReader(_Decompressed(file), _READ_BYTES)


class _Decompressed(io.RawIOBase):
    """The decompressed text. zstandard's own reader does not notice a truncated file."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
        self._frame = None  # between frames
        self._compressed = b""  # read, and not decompressed
        self._text = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        """Fills `buffer` with text; raises EOFError if the file ends within a frame."""
        while not self._text:
            if not self._compressed:
                self._compressed = self._file.read(_READ_BYTES)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("the file ends before the compressed text does")
                return 0
            self._frame = self._frame or self._decompressor.decompressobj()
            piece, self._compressed = self._compressed[:_PIECE_BYTES], self._compressed[_PIECE_BYTES:]
            self._text = memoryview(self._frame.decompress(piece))
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data + self._compressed, None
        size = min(len(buffer), len(self._text))
        buffer[:size], self._text = self._text[:size], self._text[size:]
        return size
