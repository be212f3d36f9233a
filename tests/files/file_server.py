"""A server of files on 127.0.0.1 that misbehaves as told, for tests of downloads."""

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Server = TypeVar("Server", bound=http.server.ThreadingHTTPServer)


class FileServer(http.server.ThreadingHTTPServer):
    """Answers every request with a file."""

    def __init__(self, content: bytes):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.files: dict[str, bytes] = {}  # others, by path; `content` is at every other path
        self.takes_ranges = True  # else it answers 200 with all of the file
        self.says_length = True
        self.says_range: str | None = None  # an untrue `Content-Range`
        self.redirect: str | None = None  # the address that all requests are redirected to
        self.statuses: list[int] = []  # of the 1st, 2nd, ... answer; later ones get the status that fits
        self.cuts: list[int] = []  # bytes after which it ends the connection of the 1st, 2nd, ... request
        self.before_cut: Callable[[], None] = lambda: None
        self.ranges: list[str | None] = []  # the `Range` of each request so far
        self.url = f"http://127.0.0.1:{self.server_port}/corpus.tar.gz"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        asked = self.headers["Range"]
        server.ranges.append(asked)
        if server.redirect is not None:
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        # Before the headers: once it has them, a client may send its next request, which another thread answers.
        cut = server.cuts.pop(0) if server.cuts else None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.takes_ranges else 0
        content = server.files.get(self.path, server.content)
        body = content[start:]
        fitting = 206 if start else 200
        self.send_response(server.statuses.pop(0) if server.statuses else fitting)
        if start:
            true = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", server.says_range or true)
        if server.says_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body[:cut])
            if cut is not None and cut < len(body):
                server.before_cut()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    """Answers requests in a thread while the block runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def serve(content: bytes) -> contextlib.AbstractContextManager[FileServer]:
    return running(FileServer(content))
