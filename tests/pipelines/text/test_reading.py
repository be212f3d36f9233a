"""Reading slices: every line, or paragraph, in exactly one of them, from every kind of file."""

import bz2
import gzip
import io
import itertools
import lzma
import tarfile

import pytest
import zstandard

from elmo_tf.errors import InputError
from elmo_tf.pipelines.text import corpora, reading

LINES = [b"x" * length for length in (0, 1, 5, 0, 30, 2, 2, 100, 0, 0, 7, 12, 1, 1, 1, 40)] * 3
RUNNING = b"\n \t\nOne. Two\nthree.\n\nFour\n\n\n" + b"Five " * 30 + b"\n \nSix\nseven\n \t \neight"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 16)


def blocks_of(path, parts: int = 1, members: str = "", paragraphs: bool = False) -> list[reading.Block]:
    file = corpora.TextFile(str(path), path.stat().st_size, members)
    if file.is_divisible:
        edges = [file.size * part // parts for part in range(parts)] + [None]
        slices = [corpora.Slice(file, *edge) for edge in itertools.pairwise(edges)]
    else:
        slices = [corpora.Slice(file, part=part, parts=parts) for part in range(parts)]
    return [block for part in slices for block in reading.read_blocks(part, paragraphs)]


@pytest.mark.parametrize("end", [b"\n", b""], ids=["line feed at the end", "none"])
@pytest.mark.parametrize("parts", [1, 2, 3, 10, 100, 1000])
def test_byte_ranges_cut_no_line(tmp_path, parts, end):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n".join(LINES) + end)
    blocks = blocks_of(path, parts)
    assert b"".join(block.data for block in blocks) == path.read_bytes()
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    assert [block.position for block in blocks] == [0, *itertools.accumulate(len(block.data) for block in blocks)][:-1]


@pytest.mark.parametrize("parts", [1, 2, 3, 10, 60, 500])
def test_byte_ranges_cut_no_paragraph(tmp_path, parts):
    path = tmp_path / "a.txt"
    path.write_bytes(RUNNING)
    blocks = blocks_of(path, parts, paragraphs=True)
    assert b"".join(block.data for block in blocks) == RUNNING
    for one, other in itertools.pairwise(blocks):
        assert one.is_cut == other.is_continuation
        assert one.is_cut or not one.data.splitlines()[-1].strip()


def test_a_slice_does_not_search_far_for_the_end_of_a_paragraph(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_FAR", 50)
    path = tmp_path / "a.txt"
    path.write_bytes(b"some words\n" * 100)  # without any blank line
    file = corpora.TextFile(str(path), 1100)
    slices = [corpora.Slice(file, 0, 300), corpora.Slice(file, 300, 310), corpora.Slice(file, 310)]
    sizes = [sum(len(block.data) for block in reading.read_blocks(part, paragraphs=True)) for part in slices]
    assert sizes == [363, 11, 726]


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("parts", [1, 3, 40])
def test_passes_over_a_compressed_file_yield_every_line_once(tmp_path, parts, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(PACKERS[ending](b"\n".join(LINES)))
    lines = [line for block in blocks_of(path, parts) for line in block.data.removesuffix(b"\n").split(b"\n")]
    assert sorted(lines) == sorted(LINES)


def archive(path, members: dict[str, bytes], mode: str) -> None:
    if mode == "w:zst":
        archive(path, members, "w")
        path.write_bytes(zstandard.compress(path.read_bytes()))
        return
    with tarfile.open(path, mode) as file:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            file.addfile(header, io.BytesIO(content))


MODES = {"a.tar": "w", "a.tar.gz": "w:gz", "a.tgz": "w:gz", "a.tar.bz2": "w:bz2", "a.txz": "w:xz", "a.tar.zst": "w:zst"}


@pytest.mark.parametrize("name", MODES)
def test_an_archive_is_read_member_by_member(tmp_path, name):
    members = {"r/README": b"not text\n", "r/train/1": b"a b\nc", "r/train/2": b"d\n", "./r/test/1": b"e\n"}
    archive(tmp_path / name, members, MODES[name])
    data = [(block.source, block.position, block.data) for block in blocks_of(tmp_path / name, members="r/train/*")]
    path = str(tmp_path / name)
    assert data == [(f"{path}/r/train/1", 0, b"a b\nc"), (f"{path}/r/train/2", 0, b"d\n")]
    assert [block.data for block in blocks_of(tmp_path / name, members="r/t*/1")] == [b"a b\nc", b"e\n"]
    assert len(blocks_of(tmp_path / name, members="*")) == 4
    with pytest.raises(InputError, match=rf"{name}: expected members that match x/\*, found r/README, "):
        blocks_of(tmp_path / name, members="x/*")


def test_compressed_members_are_decompressed(tmp_path):
    members = {f"{number}{ending}": pack(b"some words\n") for number, (ending, pack) in enumerate(PACKERS.items())}
    archive(tmp_path / "a.tar.gz", {**members, "plain": b"and more\n"}, "w:gz")
    data = b"".join(block.data for block in blocks_of(tmp_path / "a.tar.gz", members="*"))
    assert data == b"some words\n" * len(PACKERS) + b"and more\n"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_cut_short_anywhere_is_an_error(tmp_path, mode):
    path = tmp_path / f"a.tar.{mode[2:]}".removesuffix(".")
    archive(path, {str(number): b"some words\n" * 40 for number in range(3)}, mode)
    whole = path.read_bytes()
    texts = 3 * 1024  # what follows in a plain archive are zeros, which nobody needs
    for size in range(0, texts + 1 if mode == "w" else len(whole), 16):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="expected an intact compressed file or archive"):
            blocks_of(path, members="*")


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_damaged_archive_is_an_error(tmp_path, mode):
    path = tmp_path / f"a.tar.{mode[2:]}".removesuffix(".")
    archive(path, {str(number): b"some words\n" * 40 for number in range(3)}, mode)
    whole = path.read_bytes()
    if mode == "w":  # has checksums of its headers only
        damaged = whole[:1034] + b"?" + whole[1035:]
    else:
        text = bytearray(gzip.decompress(whole))
        text[600] ^= 1
        damaged = gzip.compress(bytes(text))[:-8] + whole[-8:]
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="expected an intact compressed file or archive"):
        blocks_of(path, members="*")


def test_at_most_one_member_of_an_archive_is_in_memory(tmp_path, monkeypatch):
    archive(tmp_path / "a.tar", {str(number): b"x\n" for number in range(50)}, "w")
    opened = []
    take = tarfile.open
    monkeypatch.setattr(tarfile, "open", lambda **options: opened.append(take(**options)) or opened[-1])
    assert len(blocks_of(tmp_path / "a.tar", members="*")) == 50
    assert len(opened[0].members) <= 1


def test_a_line_longer_than_a_block_is_cut_at_white_space(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"short\n" + b"word " * 20 + b"\nlast\n")
    blocks = blocks_of(path, 5)
    assert b"".join(block.data for block in blocks) == path.read_bytes()
    assert all(block.data.endswith((b"\n", b" ")) for block in blocks)
    assert [block.is_cut for block in blocks] == [block.data.endswith(b" ") for block in blocks]
    assert [block.is_continuation for block in blocks[1:]] == [block.is_cut for block in blocks[:-1]]


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_the_beginning_of_a_token_longer_than_a_block_is_read(tmp_path, monkeypatch, letter):
    monkeypatch.setattr(reading, "LONGEST_BYTES", 8)
    path = tmp_path / "a.txt"
    path.write_text("one " + letter * 1000 + " two\nthree\n")
    text = b"".join(block.data for block in blocks_of(path)).decode()  # no character is cut in two
    assert text.replace(letter, "") == "one  two\nthree\n"
    assert 2 <= text.count(letter) < 30
    last = blocks_of(path)[-1]
    assert reading.line_number(corpora.TextFile(str(path), 1), last, last.data.index(b"three")) == 2
    path.write_bytes(b"x" * 1000 + b" a\n" + b"b\n" * 100)
    last = blocks_of(path)[-1]
    assert last.position + len(last.data) == 1203  # the skipped part counts


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_running_text_without_white_space_is_cut_between_characters(tmp_path, letter):
    path = tmp_path / "a.txt"
    path.write_text(letter * 100)
    blocks = [block.data.decode() for block in blocks_of(path, paragraphs=True)]
    assert "".join(blocks) == letter * 100
    assert max(map(len, blocks)) <= 2 * 16


def test_lines_are_numbered_in_their_file_or_member(tmp_path):
    text = b"\n".join(LINES)
    (tmp_path / "a.txt").write_bytes(text)
    archive(tmp_path / "a.tar.gz", {"1": b"x\n" * 100, "2": text}, "w:gz")
    for path, members in ((tmp_path / "a.txt", ""), (tmp_path / "a.tar.gz", "2")):
        file = corpora.TextFile(str(path), path.stat().st_size, members)
        for block in blocks_of(path, members=members):
            for offset in range(len(block.data)):
                expected = 1 + text.count(b"\n", 0, block.position + offset)
                assert reading.line_number(file, block, offset) == expected


GZIPPED = gzip.compress(b"some words\n" * 1000, mtime=0)
BROKEN = {
    "not gzip": ("a.gz", b"plain text\n"),
    "truncated gzip": ("a.gz", GZIPPED[:-12]),
    "damaged gzip": ("a.gz", GZIPPED[:-8] + b"\0" * 8),
    "flipped bits": ("a.gz", GZIPPED[:20] + bytes([GZIPPED[20] ^ 255]) + GZIPPED[21:]),
    "truncated bz2": ("a.bz2", bz2.compress(b"some words\n" * 1000)[:-12]),
    "truncated xz": ("a.xz", lzma.compress(b"some words\n" * 1000)[:-12]),
    "truncated zstd": ("a.zst", zstandard.compress(b"some words\n" * 1000)[:-3]),
    "not zstd": ("a.zst", b"plain text\n"),
    "not an archive": ("a.tar.gz", GZIPPED),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named(tmp_path, case):
    name, content = BROKEN[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: expected an intact compressed file or archive, found "):
        blocks_of(tmp_path / name, members="*" if ".tar" in name else "")


def test_a_zstd_file_of_several_frames_and_a_wide_window_is_read_to_its_end(tmp_path):
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    )
    texts = [b"one\n", b"", b"two words\n" * 50_000]
    (tmp_path / "a.zst").write_bytes(b"".join(wide.compress(text) for text in texts))
    assert b"".join(block.data for block in blocks_of(tmp_path / "a.zst")) == b"".join(texts)
