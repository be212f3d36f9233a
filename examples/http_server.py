"""ELMo vectors over HTTP, for programs on this machine: sentences in, tokens and vectors out, both as JSON.

    python examples/http_server.py english            # or another model, and a port
    curl http://127.0.0.1:8000 --data '["The bank lends money .", "A bank of the river ."]'

The server has no authentication, so it listens on 127.0.0.1 only, and refuses pages of other sites (`Origin`). The
sizes and times below bound its memory and its threads. For production, use TensorFlow Serving
(docs/from-other-programs.md).
"""

import argparse
import contextlib
import http.server
import json
import socket
import sys
import threading

import elmo_tf
from elmo_tf.errors import InputError

MAX_BYTES = 1 << 16  # of a request; the answer can be a thousand times as large
MAX_CLIENTS = 8  # that are served at a time; others wait in the system's queue
SECONDS = 10.0  # to send a request; twice as many to take the answer


class Server(http.server.ThreadingHTTPServer):
    """Serves at most `MAX_CLIENTS` clients at a time."""

    def __init__(self, address: tuple[str, int], handler: type[http.server.BaseHTTPRequestHandler]):
        super().__init__(address, handler)
        self._free = threading.Semaphore(MAX_CLIENTS)

    def process_request(self, request, client_address):
        self._free.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that has gone, or was too slow
            super().handle_error(request, client_address)


def server(source: str, port: int = 8000) -> Server:
    """Returns a server, bound and ready for `serve_forever`.

    Args:
        source: a model, as for `elmo_tf.load`.
        port: on 127.0.0.1; 0: any free one.
    """
    elmo = elmo_tf.load(source)

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 2 * SECONDS  # to write an answer; the clock ends a slow request before

        def setup(self):
            super().setup()
            self.clock = threading.Timer(SECONDS, self.expire)
            self.clock.daemon = True
            self.clock.start()

        def finish(self):
            self.clock.cancel()
            super().finish()

        def expire(self):
            """Ends a connection whose request is not complete in time."""
            with contextlib.suppress(OSError):
                self.connection.sendall(b"HTTP/1.0 408 Request Timeout\r\n\r\n")
                self.connection.shutdown(socket.SHUT_RDWR)

        def do_POST(self):
            port, length = self.server.server_port, self.headers.get("Content-Length", "")
            if self.headers.get("Origin") not in (None, f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
                self.send_error(403, "pages of other sites are not served")
                return
            if not (length.isascii() and length.isdigit()):
                self.send_error(400, "expected a Content-Length")
                return
            if len(length) > len(str(MAX_BYTES)) or int(length) > MAX_BYTES:
                self.send_error(413, f"expected at most {MAX_BYTES:,} bytes")
                return
            body = self.rfile.read(int(length))
            self.clock.cancel()
            try:
                texts = json.loads(body)
                if not isinstance(texts, list):
                    raise TypeError
                encoded = elmo.encode(texts)
            except (TypeError, ValueError, RecursionError):  # an InputError is a ValueError
                self.send_error(400, 'expected a list of sentences, ["...", "..."]')
                return
            answer = [{"tokens": text.tokens, "vectors": text.vectors.tolist()} for text in encoded]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer, allow_nan=False).encode())

    return Server(("127.0.0.1", port), Handler)


def main() -> None:
    """Serves the model that the command line names."""
    parser = argparse.ArgumentParser(description="ELMo vectors over HTTP on 127.0.0.1.")
    parser.add_argument("source", help="a model, as for elmo_tf.load")
    parser.add_argument("port", nargs="?", type=int, default=8000, help="on 127.0.0.1 (8000; 0: any free one)")
    arguments = parser.parse_args()
    running = server(arguments.source, arguments.port)
    print(f"listening on http://127.0.0.1:{running.server_port}", flush=True)
    running.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"http_server.py: error: {error}")
    except KeyboardInterrupt:
        pass
