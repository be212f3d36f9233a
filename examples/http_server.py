"""ELMo vectors over HTTP, for programs on this machine: sentences in, tokens and vectors out, both as JSON.

    python examples/http_server.py english            # or another model, and a port
    curl http://127.0.0.1:8000 --data '["The bank lends money .", "A bank of the river ."]'

The server has no authentication, so it listens on 127.0.0.1 only. For production, use TensorFlow Serving
(docs/from-other-programs.md).
"""

import argparse
import http.server
import json
import sys

import elmo_tf
from elmo_tf.errors import InputError


def server(source: str, port: int = 8000) -> http.server.ThreadingHTTPServer:
    """Returns a server, bound and ready for `serve_forever`.

    Args:
        source: a model, as for `elmo_tf.load`.
        port: on 127.0.0.1; 0: any free one.
    """
    elmo = elmo_tf.load(source)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not isinstance(texts, list):
                    raise TypeError
                encoded = elmo.encode(texts)
            except (TypeError, ValueError):  # an InputError is a ValueError
                self.send_error(400, 'expected a list of sentences, ["...", "..."]')
                return
            answer = [{"tokens": text.tokens, "vectors": text.vectors.tolist()} for text in encoded]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

    return http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)


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
