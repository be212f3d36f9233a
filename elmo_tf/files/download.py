"""Downloads a file: resumes where an earlier attempt ended, and checks size and SHA-256 if known."""

import contextlib
import http.client
import logging
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
from elmo_tf.files import intact, progress, staging

_RETRY_SECONDS = (1, 2, 4, 8, 16, 30)  # between attempts
_TIMEOUT = 30.0  # seconds without a byte, after which a connection counts as broken
_CHUNK_BYTES = 1 << 18  # read from a server at a time, at most
_TEMPORARY = (408, 429, 500, 502, 503, 504)  # statuses of servers that may answer the same request later

_log = logging.getLogger("elmo_tf")


def download(url: str, size: int | None, sha256: str | None, path: pathlib.Path) -> None:
    """Downloads a file to `path`. Until it is complete, its name ends in `.part`; the next call resumes from there.

    An existing file is checked, and not downloaded again if its size is known.

    Args:
        url: the rest of a part may come from a different server: ETag and date are not compared.
        size: in bytes; None: as the server says.
        sha256: hexadecimal; None: not compared.
        path: of the complete file.

    Raises:
        InputError: if the server does not have the file, or the disk cannot hold it. A partial file is kept; a file
            with a wrong checksum is removed.
    """
    if not re.fullmatch("https?://[^/@]+(/.*)?", url):
        problem = "not an http:// or https:// address without user name and password"
        raise InputError(without_credentials(url), problem)
    part = path.with_name(f"{path.name}.part")
    if path.exists():
        path.rename(part)
    for wait in (*_RETRY_SECONDS, None):
        try:
            _receive_rest(url, size, part)
            break
        except (OSError, http.client.HTTPException) as error:
            problem = reason(getattr(error, "reason", error))
            is_temporary = part.exists() or isinstance(error, _TemporaryError)
            if wait is None or not is_temporary:
                raise InputError(url, f"cannot be fetched ({problem})") from None
            _log.warning("the download has stopped (%s); next attempt in %d s", problem, wait)
            time.sleep(wait)
    try:
        intact.check(part, size, sha256)
    except InputError as error:
        part.unlink()
        raise InputError(url, f"{error.problem}; the file was removed") from None
    part.rename(path)


def without_credentials(url: str) -> str:
    """Returns an address without user name and password, for messages."""
    return re.sub("^([^/]*//)[^/]*@", r"\1", url)


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
    """Turns disk errors in the block, which writes `path`, into an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({reason(error)})") from None


class _TemporaryError(ConnectionError):
    """The server is temporarily unavailable."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to `https://`, and from `http://` also to `http://`."""

    def __init__(self, url: str):
        self._url = url

    def redirect_request(self, request: urllib.request.Request, *answer: Any) -> urllib.request.Request | None:
        kind, target = request.type, urllib.parse.urlsplit(answer[-1]).scheme
        if target != "https" and (kind, target) != ("http", "http"):
            problem = f"from {kind}:// to {target}://, which is not encrypted; not followed"
            raise InputError(self._url, f"the server redirects {problem}")
        return super().redirect_request(request, *answer)


def _receive_rest(url: str, size: int | None, part: pathlib.Path) -> None:
    """Appends the rest of the file to `part`, or replaces `part` if the server sends the whole file."""
    start = part.stat().st_size if part.exists() else 0
    if start == size:
        return
    with _opened(url, start) as response:
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            # A server may send less than requested, so the total is not that of this response.
            span = re.fullmatch(rf"bytes {start}-[0-9]+/([0-9]+)", response.headers.get("Content-Range", ""))
            if not span:
                raise InputError(url, f"the server cannot send the file from byte {start:,} on; delete {part}")
            total = int(span[1])
        else:
            start, length = 0, response.headers.get("Content-Length", "0")
            if not re.fullmatch("[1-9][0-9]*", length):
                raise InputError(url, "the file is empty, or the server does not say its size (no Content-Length)")
            total = int(length)
        if size not in (None, total):
            raise InputError(url, f"{size:,} bytes", f"{total:,}")
        if not start:
            part.unlink(missing_ok=True)
        report = progress.reporter("downloading {:,} of {:,} MB")
        while data := response.read1(_CHUNK_BYTES):
            if start + len(data) > total:
                raise InputError(url, f"the server sends more than the {total:,} bytes that it announced")
            with writing(part), open(part, "ab", opener=staging.no_link) as file:
                file.write(data)
            start += len(data)
            report(start // 10**6, total // 10**6)
        if start < total:
            raise ConnectionError("the connection ended early")


def _opened(url: str, start: int) -> http.client.HTTPResponse:
    """Returns the server's response to a request for the file from byte `start` on."""
    headers = {"User-Agent": f"elmo-tf/{__version__}"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        opener = urllib.request.build_opener(_Redirects(url))
        return opener.open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if start and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return _opened(url, 0)
        if error.code in _TEMPORARY:
            raise _TemporaryError(f"{error.code} {error.reason}") from None
        raise InputError(url, f"cannot be fetched ({error.code} {error.reason})") from None
    except InputError:
        raise
    except (http.client.InvalidURL, ValueError):
        raise InputError(url, "not an http:// or https:// address") from None
