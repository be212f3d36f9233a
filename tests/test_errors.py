"""What stands in names of files, in files and in a server's answer reaches a terminal as escapes."""

import http.server
import json
import logging
import threading

import pytest

from elmo_tf import cli
from elmo_tf.beam import output_folder
from elmo_tf.errors import InputError, printable
from elmo_tf.files import download, progress, stores

HOSTILE = "a\x1b]0;title\x07\x9b2J\r\n\u202eb"
SHOWN = r"a\x1b]0;title\x07\x9b2J\r\n\u202eb"


def test_control_characters_become_escapes_and_other_text_stays():
    assert printable(HOSTILE) == SHOWN
    assert printable("a\nb\n", kept="\n") == "a\nb\n"
    for text in ("na\u00efve \u65e5\u672c", "\u0646\u0645\u06cc\u200c\u062f", "\U0001f468\u200d\U0001f469"):
        assert printable(text) == text
    assert printable("\udce9") == r"\udce9"


@pytest.mark.parametrize(
    "error",
    [InputError(HOSTILE, "x"), InputError("x", HOSTILE), stores.ReadError(HOSTILE), stores.WriteError(HOSTILE)],
)
def test_an_error_says_escapes(error):
    assert SHOWN in str(error)


def test_a_log_line_has_escapes_and_only_the_lines_of_its_format(caplog):
    caplog.set_level("INFO", "elmo_tf")
    log = logging.getLogger("elmo_tf")
    log.info("read %s, %d lines\nof %s", HOSTILE, 3, OSError("a\nb"))
    log.info("%s", "a table\nof two lines\x1b")
    assert caplog.messages == [f"read {SHOWN}, 3 lines\nof a\\nb", "a table\nof two lines\\x1b"]


def test_commands_and_progress_lines_show_escapes(capsys, tmp_path):
    assert cli.main(["score", "--input", str(tmp_path / HOSTILE)]) == 1
    for arguments in (["score", "--input", "x", f"--{HOSTILE}"], ["preprocess", f"--{HOSTILE}"]):
        with pytest.raises(SystemExit):
            cli.main(arguments)
    progress.ProgressLine().leave(f"waiting for {HOSTILE}")
    shown = capsys.readouterr().err
    assert shown.count(r"a\x1b]0;title\x07\x9b2J") == 4
    assert {"\x1b", "\x07", "\x9b", "\u202e"}.isdisjoint(shown)


def test_a_foreign_plan_is_escaped(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps({"command": "test", "shards": HOSTILE, "folder": "train"}))
    plan = {"command": "test", "shards": 2}
    with pytest.raises(InputError) as caught, output_folder.claim({"train": str(tmp_path)}, plan):
        pass
    assert SHOWN in str(caught.value)


class _Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404, "\x1b[31mno\x9b2J")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_what_a_server_says_is_escaped(tmp_path):
    with http.server.HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(InputError) as caught:
            download.download(f"http://127.0.0.1:{server.server_port}/a", None, None, tmp_path / "a")
        server.shutdown()
    assert r"404 \x1b[31mno\x9b2J" in str(caught.value)
