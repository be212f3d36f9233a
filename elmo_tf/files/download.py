"""Downloads a file: resumes when a connection breaks, and checks size and SHA-256 as far as they are known."""

import contextlib
import hashlib
import http.client
import os
import pathlib
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from elmo_tf import __version__
from elmo_tf.errors import InputError, reason
from elmo_tf.files import staging
from elmo_tf.files.progress import ByteProgress

_RETRY_SECONDS = (1, 2, 4, 8, 16, 30)  # between attempts; the download fails after all of them without a new byte
_TIMEOUT = 30.0  # seconds without a byte, after which a connection counts as broken
_NETWORK_BYTES = 1 << 16  # read at a time from a server: the most that a broken connection loses
_TRANSIENT = (408, 429)  # client errors that are worth another attempt: request timeout, too many requests


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect to another http:// or https:// address, but not from https:// to http://."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = (urllib.parse.urlsplit(address).scheme for address in (req.full_url, newurl))
        if new not in ("http", "https") or (old, new) == ("https", "http"):
            problem = f"the server redirects to {without_credentials(newurl)}, which is not encrypted; not followed"
            raise InputError(req.full_url, problem)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Broken(Exception):
    """A connection failed before the end of the file. Another attempt may succeed."""


def download(url: str, size: int | None, sha256: str | None, path: pathlib.Path) -> None:
    """Downloads a file to `path`. Until it is complete, its name ends in `.part`; the next call resumes from there.

    Args:
        url: another server may send the rest of a part: ETag and date are not compared.
        size: in bytes; None: as the server says.
        sha256: hexadecimal; None: not compared.
        path: of the complete file.

    Raises:
        InputError: if the server does not have the file, or the disk cannot hold it. A partial file is kept; a file
            with the wrong checksum is removed.
    """
    if not re.match("https?://[^/]", url):
        raise InputError(without_credentials(url), "not an http:// or https:// address")
    if without_credentials(url) != url:
        raise InputError(without_credentials(url), "an address with a user name or password, which is not supported")
    part = part_of(path)
    if size is None:
        size = _size(url)
    if part.exists() and part.stat().st_size > size:
        part.unlink()
    try:
        received = _receive(url, size, part)
    finally:
        if part.exists() and part.stat().st_size == 0:
            part.unlink()
    if sha256 not in (None, received):
        part.unlink()
        raise InputError(url, f"the file's SHA-256 is {received}, but should be {sha256}; the file was removed")
    part.rename(path)


def without_credentials(url: str) -> str:
    """Returns an address without user name and password, for messages."""
    return re.sub("^([^/]*//)[^/]*@", r"\1", url)


def part_of(path: pathlib.Path) -> pathlib.Path:
    """Returns the path of a file that is not complete yet."""
    return path.with_name(f"{path.name}.part")


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
    """Turns an error of the disk in the block, which writes `path`, into an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({reason(error)})") from None


def _receive(url: str, size: int, part: pathlib.Path) -> str:
    """Appends the rest of the file to `part`, over as many connections as needed; returns the SHA-256 of all of it."""
    waits: Iterator[int] = iter(())  # no second attempt before the first byte
    with writing(part), open(part, "a+b", opener=staging.no_link) as file:
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256")
        file.seek(0, os.SEEK_END)
        with ByteProgress("downloading", size, file.tell()) as progress:
            while (start := file.tell()) < size:
                progress.restart(start)
                try:
                    for data in _request(url, size, start):
                        file.write(data)
                        digest.update(data)
                        progress.show(file.tell())
                except _Broken as error:
                    waits = iter(_RETRY_SECONDS) if file.tell() > start else waits
                    wait = next(waits, None)
                    if wait is None:
                        received = file.tell()
                        progress_note = f" after {received:,}, which are kept for the next attempt" if received else ""
                        raise InputError(url, f"{size:,} bytes", f"{error}{progress_note}") from None
                    progress.line.leave(f"{error} after {file.tell() / 1e6:,.0f} MB; next attempt in {wait} s")
                    time.sleep(wait)
    return digest.hexdigest()


def _request(url: str, size: int, start: int) -> Iterator[bytes]:
    """Yields the file from byte `start` on, over a connection; `_Broken` if that fails before the end."""
    with _opened(url, start) as response:
        position = _first_byte(response, url, size, start)
        while position < size:
            data = response.read(_NETWORK_BYTES)
            if not data:
                raise _Broken("a connection that ended")
            yield data[max(start - position, 0) :]
            position += len(data)


def _size(url: str) -> int:
    """Returns the size of the file at `url`, as the server says it before it sends the file."""
    try:
        with _opened(url, 0) as response:
            length = response.headers.get("Content-Length", "")
    except _Broken as error:
        raise InputError(url, f"cannot be fetched ({error})") from None
    if not length.isdecimal():
        raise InputError(url, "the server does not say the file's size (no Content-Length)")
    return int(length)


@contextlib.contextmanager
def _opened(url: str, start: int) -> Iterator[http.client.HTTPResponse]:
    """Yields the server's response to a request for the file from byte `start` on.

    Raises `_Broken` if the connection fails, also while the block reads from it; `InputError` if the server refuses.
    """
    headers = {"User-Agent": f"elmo-tf/{__version__}"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        opener = urllib.request.build_opener(_SafeRedirects)
        with opener.open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as response:
            yield response
    except urllib.error.HTTPError as error:
        answer = f"{error.code} {error.reason}"
        if error.code >= 500 or error.code in _TRANSIENT:
            raise _Broken(answer) from None
        raise InputError(url, f"cannot be fetched ({answer})") from None
    except InputError:
        raise
    except (http.client.InvalidURL, ValueError) as error:
        raise InputError(url, f"not an address ({error})") from None
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(f"a connection that failed ({reason(getattr(error, 'reason', error))})") from None


def _first_byte(response: http.client.HTTPResponse, url: str, size: int, start: int) -> int:
    """Returns the byte of the file where the response begins: `start`, or 0 if the server does not support ranges."""
    if span := re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", "")):
        first, length = int(span[1]), span[2]
    else:
        first, length = 0, response.headers.get("Content-Length", "an unknown number")
    if first not in (0, start):
        raise InputError(url, f"the server sends the file from byte {first:,} on instead of {start:,}")
    if length != str(size):
        raise InputError(url, f"{size:,} bytes", f"{int(length):,}" if length.isdecimal() else length)
    return first
