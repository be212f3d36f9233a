"""Downloads from a server that breaks connections, sends wrong files or does not answer."""

import copy
import hashlib
import pathlib
import random
import re
import resource
import socket
import threading
import urllib.request

import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import download
from tests.files.file_server import serve

CONTENT = random.Random(0).randbytes(400_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
KNOWN, UNKNOWN = (len(CONTENT), SHA256), (None, None)
WRONG_SHA256 = rf"its SHA-256 is \w+, but should be {SHA256}; the file was removed$"
WAITS = (0, 0, 0)
REST = "bytes=150000-"


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


def part_of(path: pathlib.Path) -> pathlib.Path:
    return path.with_name("file.part")


def assert_only(path: pathlib.Path, content: bytes) -> None:
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == content


def fetch(server, path: pathlib.Path, size: int | None = len(CONTENT), sha256: str | None = SHA256) -> None:
    """Downloads the file, which then is all there is in its folder."""
    download.download(server.url, size, sha256, path)
    assert_only(path, CONTENT)


def refused(server, message: str):
    return pytest.raises(InputError, match=f"^{server.url}: {message}")


@pytest.mark.parametrize("size_and_sha256", [KNOWN, UNKNOWN])
@pytest.mark.parametrize(
    ("attributes", "ranges"),
    [
        pytest.param({}, [None], id="nothing breaks"),
        pytest.param({"cuts": [150_000, 0]}, [None, REST, REST], id="it breaks"),
        pytest.param({"cuts": [150_000], "takes_ranges": False}, [None, REST], id="a server without ranges"),
    ],
)
def test_a_file_arrives_whole_and_a_broken_connection_is_resumed(server, path, attributes, size_and_sha256, ranges):
    vars(server).update(copy.deepcopy(attributes))
    fetch(server, path, *size_and_sha256)
    assert server.ranges == ranges


def test_it_gives_up_when_nothing_comes_and_the_next_call_resumes(server, path, caplog):
    server.cuts = [150_000] + [0] * 99
    with refused(server, r"cannot be fetched \(the connection ended early\)$"):
        fetch(server, path)
    assert server.ranges == [None, *[REST] * len(WAITS)]
    assert caplog.messages == ["the download has stopped (the connection ended early); next attempt in 0 s"] * len(
        WAITS
    )
    assert_only(part_of(path), CONTENT[:150_000])
    server.cuts, server.ranges = [], []
    fetch(server, path)
    assert server.ranges == [REST]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_server_that_cannot_answer_now_is_asked_again(server, path, status):
    server.statuses = [status]
    fetch(server, path)
    assert server.ranges == [None, None]
    path.unlink()
    server.statuses, server.ranges = [status] * 99, []
    with refused(server, rf"cannot be fetched \({status} "):
        fetch(server, path)
    assert len(server.ranges) == 1 + len(WAITS)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("total", [399_999, 150_000, 1001])
def test_more_bytes_than_announced_are_refused_and_not_kept(server, path, total):
    part_of(path).write_bytes(CONTENT[:1000])
    server.says_range = f"bytes 1000-{total - 1}/{total}"
    with refused(server, f"the server sends more than the {total:,} bytes that it announced$"):
        fetch(server, path, *UNKNOWN)
    assert len(part_of(path).read_bytes()) <= total


def test_a_silent_server_counts_as_a_broken_connection(server, path, monkeypatch):
    monkeypatch.setattr(download, "_TIMEOUT", 0.5)
    over = threading.Event()
    server.cuts, server.before_cut = [150_000], lambda: over.wait(60)
    fetch(server, path)
    over.set()
    assert server.ranges == [None, REST]


@pytest.mark.parametrize(
    ("size_and_sha256", "attributes", "message"),
    [
        (KNOWN, {"statuses": [404]}, r"cannot be fetched \(404 Not Found\)$"),
        (KNOWN, {"content": CONTENT[1:]}, "expected 400,000 bytes, found 399,999$"),
        (KNOWN, {"content": CONTENT + b"!"}, "expected 400,000 bytes, found 400,001$"),
        (KNOWN, {"content": bytes(len(CONTENT))}, WRONG_SHA256),
        (KNOWN, {"cuts": [0]}, r"cannot be fetched \(the connection ended early\)$"),
        (UNKNOWN, {"says_length": False}, "the file is empty, or the server does not say its size"),
        (UNKNOWN, {"content": b""}, "the file is empty, or the server does not say its size"),
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


def test_a_part_is_kept_when_the_server_has_another_file_now(server, path):
    part_of(path).write_bytes(CONTENT[:1000])
    server.content = b"<html>Log in to this network first</html>"
    server.takes_ranges = False
    with refused(server, "expected 400,000 bytes, found 41$"):
        fetch(server, path)
    server.content, server.takes_ranges, server.says_range = CONTENT, True, "bytes 999-399999/400000"
    with refused(server, f"the server cannot send the file from byte 1,000 on; delete {part_of(path)}$"):
        fetch(server, path, *UNKNOWN)
    assert_only(part_of(path), CONTENT[:1000])


def test_a_server_that_sends_less_than_was_asked_for_is_asked_for_the_rest(server, path):
    part_of(path).write_bytes(CONTENT[:1000])
    server.says_range = "bytes 1000-399999/500000"
    with refused(server, f"the server cannot send the file from byte 400,000 on; delete {part_of(path)}$"):
        fetch(server, path, *UNKNOWN)
    assert server.ranges == ["bytes=1000-", "bytes=400000-"]
    assert_only(part_of(path), CONTENT)


def test_a_complete_part_needs_no_connection_and_a_wrong_one_is_removed_or_downloaded_again(server, path):
    part_of(path).write_bytes(CONTENT)
    fetch(server, path)
    fetch(server, path)
    assert server.ranges == []  # nor does a complete file, which is checked again
    path.unlink()
    part_of(path).write_bytes(bytes(150_000))
    with refused(server, WRONG_SHA256):
        fetch(server, path.with_name("file"))
    assert server.ranges == [REST]
    for part in (CONTENT, bytes(400_001)):  # the server refuses such a range
        part_of(path).write_bytes(part)
        server.statuses = [416]
        fetch(server, path, *UNKNOWN)


def test_a_part_that_is_a_link_is_refused_and_its_target_left_alone(server, path):
    target = path.parent / "target"
    target.write_bytes(CONTENT[:1000])
    part_of(path).symlink_to(target)
    with pytest.raises(InputError, match=r"^/.*/file\.part: a link, which is not followed$"):
        fetch(server, path)
    assert target.read_bytes() == CONTENT[:1000]


def test_no_connection_is_reported_at_once(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(InputError, match=r"^http.*/file: cannot be fetched \(Connection refused\)$"):
        download.download(f"http://127.0.0.1:{port}/file", *KNOWN, path)
    assert list(path.parent.iterdir()) == []


def test_what_is_no_address_is_reported_and_a_password_in_one_is_refused_and_not_shown(path):
    for url in ("file", "file:///etc/hosts", "http://", "http://a b/", "http://[a/", "http://a:x/"):
        with pytest.raises(InputError, match=rf"^{re.escape(url)}: not an http:// or https:// address"):
            download.download(url, *KNOWN, path)
    for url in ("http://user:secret@host/file", "ftp://user:secret@host/file"):
        with pytest.raises(InputError, match=r"://host/file: not an .* without user name and password$") as caught:
            download.download(url, *KNOWN, path)
        assert "secret" not in str(caught.value)
    assert list(path.parent.iterdir()) == []


def test_a_redirect_is_followed_but_not_to_other_protocols(server, path):
    with serve(b"") as first:
        first.redirect = server.url
        download.download(first.url, *KNOWN, path)
        assert_only(path, CONTENT)
        first.redirect = "ftp://127.0.0.1:1/file"
        with refused(first, "the server redirects from http:// to ftp://, which is not encrypted; not followed$"):
            download.download(first.url, *UNKNOWN, path.with_name("other"))
    assert_only(path, CONTENT)


@pytest.mark.parametrize(
    ("address", "target", "is_followed"),
    [("https", "http", False), ("https", "ftp", False), ("https", "https", True), ("http", "https", True)],
)
def test_a_redirect_does_not_leave_https(address, target, is_followed):
    redirects = download._Redirects(f"{address}://host/file")
    answer = (None, 302, "Found", {}, f"{target}://other/file")
    request = urllib.request.Request(f"{address}://host/file")
    if is_followed:
        assert redirects.redirect_request(request, *answer).full_url == f"{target}://other/file"
    else:
        with pytest.raises(InputError, match=rf"^https://host/file: the server redirects from https:// to {target}://"):
            redirects.redirect_request(request, *answer)


def test_a_full_disk_is_reported_and_the_part_kept(server, path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a write beyond it fails as on a full disk
    try:
        with pytest.raises(InputError, match=r"^/.*file.part: cannot be written \(File too larg"):
            fetch(server, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_only(part_of(path), CONTENT[:200_000])
    fetch(server, path)
    assert server.ranges == [None, "bytes=200000-"]
