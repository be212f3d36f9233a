"""Downloads from a server that breaks connections, sends wrong files or does not answer."""

import hashlib
import pathlib
import random
import re
import resource
import socket
import threading
import time
import urllib.request

import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import download, intact
from elmo_tf.files.progress import ByteProgress, ProgressLine
from tests.files.file_server import serve

CONTENT = random.Random(0).randbytes(400_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
KNOWN = (len(CONTENT), SHA256)
WRONG_SHA256 = rf"the file's SHA-256 is \w+, but should be {SHA256}; the file was removed$"
WAITS = (0, 0, 0)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(download, "_RETRY_SECONDS", WAITS)


@pytest.fixture
def server():
    with serve(CONTENT) as running:
        yield running


@pytest.fixture
def path(tmp_path) -> pathlib.Path:
    (tmp_path / "downloads").mkdir()
    return tmp_path / "downloads" / "file"


def assert_only(path: pathlib.Path, content: bytes) -> None:
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == content


def fetch(server, path: pathlib.Path, size: int | None = len(CONTENT), sha256: str | None = SHA256) -> None:
    """Downloads the file, which then is all there is in its folder."""
    download.download(server.url, size, sha256, path)
    assert_only(path, CONTENT)


def begin(path: pathlib.Path, content: bytes) -> None:
    download.part_of(path).write_bytes(content)


def refused(server, message: str):
    return pytest.raises(InputError, match=f"^{server.url}: {message}")


REST = "bytes=150000-"
SLOW = [20_000, *[0, 20_000] * 6]
assert len(SLOW) > len(WAITS) + 1


@pytest.mark.parametrize(
    ("attributes", "size_and_sha256", "ranges"),
    [
        pytest.param({}, KNOWN, [None], id="nothing breaks"),
        pytest.param({"cuts": [0, 150_000]}, (None, None), [None, None, REST], id="size as the server says"),
        pytest.param({"cuts": SLOW}, KNOWN, None, id="as long as bytes arrive"),
        pytest.param({"cuts": [150_000, 0], "statuses": [200, 429]}, KNOWN, [None, REST, REST], id="429"),
        pytest.param({"cuts": [150_000, 0], "statuses": [200, 503]}, KNOWN, [None, REST, REST], id="503"),
        pytest.param(
            {"takes_ranges": False, "cuts": [150_000, 100_000, 300_000]},
            KNOWN,
            [None, REST, REST, "bytes=300000-"],
            id="a server without ranges is read from the start and the part is kept",
        ),
    ],
)
def test_a_file_arrives_whole_and_a_broken_connection_is_resumed(server, path, attributes, size_and_sha256, ranges):
    vars(server).update(attributes)
    fetch(server, path, *size_and_sha256)
    assert ranges in (None, server.ranges)
    intact.check(path, None, None)


def test_it_gives_up_when_nothing_comes_and_the_next_call_goes_on(server, path):
    server.cuts = [150_000] + [0] * 99
    with refused(server, "expected 400,000 bytes, found a connection that ended after 150,000"):
        fetch(server, path)
    assert server.ranges == [None, *["bytes=150000-"] * len(WAITS)]
    assert download.part_of(path).read_bytes() == CONTENT[:150_000]
    server.cuts, server.ranges = [], []
    fetch(server, path)
    assert server.ranges == ["bytes=150000-"]


def test_a_server_without_ranges_that_always_breaks_at_the_same_place_makes_no_progress(server, path):
    server.takes_ranges, server.cuts = False, [150_000] * 99
    with refused(server, "expected 400,000 bytes, found a connection that ended after 150,000"):
        fetch(server, path)
    assert len(server.ranges) == 1 + len(WAITS)
    assert_only(download.part_of(path), CONTENT[:150_000])


def test_a_silent_server_counts_as_a_broken_connection(server, path, monkeypatch):
    monkeypatch.setattr(download, "_TIMEOUT", 0.5)
    over = threading.Event()
    server.cuts, server.before_cut = [150_000], lambda: over.wait(60)
    fetch(server, path)
    over.set()
    assert len(server.ranges) == 2


@pytest.mark.parametrize(
    ("size_and_sha256", "attributes", "message"),
    [
        (KNOWN, {"statuses": [404]}, r"cannot be fetched \(404 Not Found\)$"),
        (KNOWN, {"statuses": [503]}, "expected 400,000 bytes, found 503 Service Unavailable$"),
        (KNOWN, {"content": CONTENT[1:]}, "expected 400,000 bytes, found 399,999$"),
        (KNOWN, {"content": CONTENT + b"!"}, "expected 400,000 bytes, found 400,001$"),
        (KNOWN, {"says_length": False}, "expected 400,000 bytes, found an unknown number$"),
        (KNOWN, {"cuts": [0]}, "expected 400,000 bytes, found a connection that ended$"),
        (KNOWN, {"content": bytes(len(CONTENT))}, WRONG_SHA256),
        ((None, None), {"statuses": [404]}, r"cannot be fetched \(404 Not Found\)$"),
        ((None, None), {"statuses": [503]}, r"cannot be fetched \(503 Service Unavailable\)$"),
        ((None, None), {"says_length": False}, r"the server does not say the file's size \(no Content-Length\)$"),
    ],
)
def test_an_answer_that_is_not_the_file_ends_it_at_once_and_leaves_nothing(
    server, path, size_and_sha256, attributes, message
):
    vars(server).update(attributes)
    with refused(server, message):
        fetch(server, path, *size_and_sha256)
    assert len(server.ranges) == 1
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"content": CONTENT[1:], "statuses": [206]}, "expected 400,000 bytes, found 399,999$"),
        ({"content": b"", "statuses": [416]}, r"cannot be fetched \(416 "),
        ({"says_range": "bytes 999-399999/400000"}, "the server sends the file from byte 999 on instead of 1,000$"),
    ],
    ids=["other", "shorter", "elsewhere"],
)
def test_a_file_that_is_another_when_resuming_is_refused_and_the_part_kept(server, path, attributes, message):
    begin(path, CONTENT[:1000])
    vars(server).update(attributes)
    with refused(server, message):
        fetch(server, path)
    assert_only(download.part_of(path), CONTENT[:1000])


def test_a_complete_part_needs_no_connection_a_wrong_one_is_reported_and_one_too_long_downloaded_again(server, path):
    begin(path, CONTENT)
    fetch(server, path)
    assert server.ranges == []
    begin(path, bytes(150_000))
    with refused(server, WRONG_SHA256):
        download.download(server.url, *KNOWN, path)
    begin(path, bytes(400_001))
    fetch(server, path)


def test_a_part_that_is_a_link_is_refused_and_its_target_left_alone(server, path):
    target = path.parent / "target"
    target.write_bytes(CONTENT[:1000])
    download.part_of(path).symlink_to(target)
    with pytest.raises(InputError, match=r"^/.*/file\.part: a link, which is not followed$"):
        fetch(server, path)
    assert target.read_bytes() == CONTENT[:1000]


def test_no_connection_is_reported_at_once(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(InputError, match=r"^http.*/file: expected 9 bytes, found a connection that failed .*refused"):
        download.download(f"http://127.0.0.1:{port}/file", 9, SHA256, path)
    assert list(path.parent.iterdir()) == []


def test_what_is_no_address_is_reported_and_a_password_in_one_is_refused_and_not_shown(path):
    for url in ("file", "file:///etc/hosts", "http://", "http://a b/", "http://[a/", "http://a:x/"):
        with pytest.raises(InputError, match=rf"^{re.escape(url)}: not an .*address"):
            download.download(url, *KNOWN, path)
    for url in ("http://user:secret@host/file", "ftp://user:secret@host/file"):
        with pytest.raises(InputError, match="://host/file: ") as caught:
            download.download(url, *KNOWN, path)
        assert "secret" not in str(caught.value)
    assert list(path.parent.iterdir()) == []


def test_a_redirect_is_followed_but_not_from_https_to_http_nor_to_another_scheme(server, path):
    with serve(b"") as first:
        first.redirect = server.url
        download.download(first.url, *KNOWN, path)
        assert_only(path, CONTENT)
        path.unlink()
        first.redirect = "ftp://user:secret@127.0.0.1/file"
        with pytest.raises(InputError, match=r"the server redirects to ftp://127.0.0.1/file, which is not encrypted"):
            download.download(first.url, *KNOWN, path)
    request = urllib.request.Request("https://host/file")
    with pytest.raises(InputError, match=r"^https://host/file: the server redirects to http://host/file, "):
        download._SafeRedirects().redirect_request(request, None, 302, "", {}, "http://user:secret@host/file")
    assert list(path.parent.iterdir()) == []


def test_a_full_disk_is_reported_and_the_part_kept(server, path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a write beyond it fails as on a full disk
    try:
        with pytest.raises(InputError, match=r"^/.*file.part: cannot be written \(File too larg"):
            fetch(server, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_only(download.part_of(path), CONTENT[:200_000])
    fetch(server, path)
    assert server.ranges == [None, "bytes=200000-"]


def test_progress_shows_megabytes_speed_and_time_left(monkeypatch, capsys):
    now = iter([100.0, 100.0, 104.0])
    monkeypatch.setattr(ProgressLine, "due", lambda _: True)
    monkeypatch.setattr(ProgressLine, "show", lambda _, text: print(text))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    with ByteProgress("downloading", 1_792_209_805, 992_209_805) as progress:
        progress.show(1_032_209_805)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["downloading 992/1,792 MB", "downloading 1,032/1,792 MB  10.0 MB/s  0:01:16 left"]
