"""Compressed files, read to their end: the text of all their streams, with or without padding.

Python's own `bz2` and `lzma` files stop without an error at damage in the header of a later stream, and at padding.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

from elmo_tf import extras

_CHUNK_BYTES = 1 << 16  # compressed, read at a time
_BUFFER_BYTES = 1 << 17  # of text
_XZ_PADDING = 4  # padding in an xz file is a multiple of this many bytes
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)  # raised by the modules for damaged contents


class _Streams(io.RawIOBase):
    """The text of a file of streams, with padding of NULs after each.

    Args:
        file: the compressed file.
        begin_stream: returns the decompressor of a stream.
        padding_unit: the number of NULs is a multiple of it.
    """

    def __init__(self, file: IO[bytes], begin_stream: Callable[[], Any], padding_unit: int):
        super().__init__()
        self._file, self._begin_stream, self._padding_unit = file, begin_stream, padding_unit
        self._restart()

    def _restart(self) -> None:
        self._position = 0  # in the text
        self._compressed = b""  # read but not yet decompressed
        self._stream = self._begin_stream()  # None at the end of the file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a byte of the text, counted from its start; going back decompresses the file again."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("seeks from the start only")
        if offset < self._position:
            self._file.seek(0)
            self._restart()
        while self._position < offset and self.read(min(offset - self._position, _BUFFER_BYTES)):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        text = b""
        while not text and self._stream:
            if self._stream.needs_input and not self._compressed:
                self._compressed = self._file.read(_CHUNK_BYTES)
                if not self._compressed:
                    raise EOFError("it ends inside a stream")
            compressed, self._compressed = self._compressed, b""
            text = self._stream.decompress(compressed, len(buffer))
            if self._stream.eof:
                self._compressed = self._stream.unused_data
                self._skip_padding()
        buffer[: len(text)] = text
        self._position += len(text)
        return len(text)

    def _skip_padding(self) -> None:
        """Begins the next stream after the padding, if there is one."""
        padding = 0
        while compressed := self._compressed or self._file.read(_CHUNK_BYTES):
            self._compressed = compressed.lstrip(b"\0")
            padding += len(compressed) - len(self._compressed)
            if self._compressed:
                break
        if padding % self._padding_unit:
            raise EOFError("its padding is incomplete")
        self._stream = self._begin_stream() if self._compressed else None


def _open_bz2(file: IO[bytes]) -> Any:
    return io.BufferedReader(_Streams(file, bz2.BZ2Decompressor, 1), _BUFFER_BYTES)


def _open_xz(file: IO[bytes]) -> Any:
    return io.BufferedReader(_Streams(file, lzma.LZMADecompressor, _XZ_PADDING), _BUFFER_BYTES)


def _open_zstd(file: IO[bytes]) -> Any:
    with extras.explain_missing_extra():
        from backports import zstd  # noqa: PLC0415 - only with an extra
    # Large text collections are often written by `zstd --long=31`. A file takes only the memory it needs.
    return zstd.ZstdFile(file, options={zstd.DecompressionParameter.window_log_max: 31})


# By the ending of a file's name: opened binary file -> its text.
OPEN: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": _open_bz2,
    ".xz": _open_xz,
    ".zst": _open_zstd,
}
