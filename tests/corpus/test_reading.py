"""Reading slices: every line, or paragraph, in exactly one of them, from every kind of file."""

import bz2
import gzip
import itertools
import lzma
import os

import pytest
from backports import zstd

from elmo_tf.corpus import corpora, reading
from elmo_tf.errors import InputError
from elmo_tf.files import stores

LINES = [b"x" * length for length in (0, 1, 5, 0, 30, 2, 2, 100, 0, 0, 7, 12, 1, 1, 1, 40)] * 3
RUNNING = b"\n \t\nOne. Two\nthree.\n\nFour\n\n\n" + b"Five " * 30 + b"\n \nSix\nseven\n \t \neight"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 16)


def blocks_of(path: str, parts: int = 1, paragraphs: bool = False, **options: bool) -> list[reading.Block]:
    file = corpora.TextFile(path, os.path.getsize(path))
    if file.is_divisible:
        edges = [file.size * part // parts for part in range(parts)] + [None]
        slices = [corpora.Slice(file, *edge) for edge in itertools.pairwise(edges)]
    else:
        slices = [corpora.Slice(file, part=part, parts=parts) for part in range(parts)]
    return [block for part in slices for block in reading.read_blocks(part, paragraphs, **options)]


@pytest.mark.parametrize("end", [b"\n", b""], ids=["line feed at the end", "none"])
@pytest.mark.parametrize("parts", [1, 2, 3, 10, 100, 1000])
def test_byte_ranges_cut_no_line(corpus, parts, end):
    text = b"\n".join(LINES) + end
    blocks = blocks_of(*corpus(text), parts)
    assert b"".join(block.data for block in blocks) == text
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    assert [block.position for block in blocks] == [0, *itertools.accumulate(len(block.data) for block in blocks)][:-1]


@pytest.mark.parametrize("parts", [1, 2, 3, 10, 60, 500])
def test_byte_ranges_cut_no_paragraph(corpus, parts):
    blocks = blocks_of(*corpus(RUNNING), parts, paragraphs=True)
    assert b"".join(block.data for block in blocks) == RUNNING
    for before, after in itertools.pairwise(blocks):
        assert before.is_cut == after.is_continuation
        assert before.is_cut or not before.data.splitlines()[-1].strip()


def test_a_slice_does_not_search_far_for_the_end_of_a_paragraph(corpus, monkeypatch):
    monkeypatch.setattr(reading, "_MAX_LOOKAHEAD", 50)
    file = corpora.TextFile(*corpus(b"some words\n" * 100), 1100)  # without any blank line
    slices = [corpora.Slice(file, 0, 300), corpora.Slice(file, 300, 310), corpora.Slice(file, 310)]
    sizes = [sum(len(block.data) for block in reading.read_blocks(part, paragraphs=True)) for part in slices]
    assert sizes == [363, 11, 726]


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("parts", [1, 3, 40])
def test_passes_over_a_compressed_file_yield_every_line_once(corpus, parts, ending):
    paths = corpus(**{f"a{ending}": PACKERS[ending](b"\n".join(LINES))})
    lines = [line for block in blocks_of(*paths, parts) for line in block.data.removesuffix(b"\n").split(b"\n")]
    assert sorted(lines) == sorted(LINES)


def test_a_line_longer_than_a_block_is_cut_at_white_space(corpus):
    text = b"short\n" + b"word " * 20 + b"\nlast\n"
    blocks = blocks_of(*corpus(text), 5)
    assert b"".join(block.data for block in blocks) == text
    assert all(block.data.endswith((b"\n", b" ")) for block in blocks)
    assert [block.is_cut for block in blocks] == [block.data.endswith(b" ") for block in blocks]
    assert [block.is_continuation for block in blocks[1:]] == [block.is_cut for block in blocks[:-1]]


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_the_beginning_of_a_token_longer_than_a_block_is_read(corpus, monkeypatch, letter):
    monkeypatch.setattr(reading, "KEPT_TOKEN_BYTES", 8)
    (path,) = corpus(f"one {letter * 1000} two\nthree\n".encode())
    blocks = blocks_of(path)
    text = b"".join(block.data for block in blocks).decode()  # no character is cut in two
    assert text.replace(letter, "") == "one  two\nthree\n"
    assert 2 <= text.count(letter) < 30
    assert reading.line_number(blocks[-1], blocks[-1].data.index(b"three")) == 2
    last = blocks_of(*corpus(b"x" * 1000 + b" a\n" + b"b\n" * 100))[-1]
    assert last.position + len(last.data) == 1203  # the skipped part counts


@pytest.mark.parametrize("paragraphs", [True, False])
@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_text_without_white_space_between_tokens_is_cut_between_characters(corpus, letter, paragraphs):
    paths = corpus((letter * 100).encode())
    blocks = [block.data.decode() for block in blocks_of(*paths, paragraphs=paragraphs, is_whitespace_tokenized=False)]
    assert "".join(blocks) == letter * 100
    assert max(map(len, blocks)) <= 2 * 16


def test_lines_are_numbered_in_their_file(corpus):
    text = b"\n".join(LINES)
    for path in corpus(**{"a.txt": text, "a.gz": gzip.compress(text)}):
        for block in blocks_of(path):
            for offset in range(len(block.data)):
                assert reading.line_number(block, offset) == 1 + text.count(b"\n", 0, block.position + offset)


GZIPPED = gzip.compress(b"some words\n" * 1000, mtime=0)
BROKEN = {
    "not gzip": ("a.gz", b"plain text\n"),
    "truncated gzip": ("a.gz", GZIPPED[:-12]),
    "damaged gzip": ("a.gz", GZIPPED[:-8] + b"\0" * 8),
    "a second stream with another header": ("a.gz", GZIPPED + b"\x1e" + GZIPPED[1:]),
    "flipped bits in a second stream of bz2": (
        "a.bz2",
        bz2.compress(b"a b\n") + b"BZh91AY&SZ" + bz2.compress(b"c d\n")[10:],
    ),
    "flipped bits in a second stream of xz": ("a.xz", lzma.compress(b"a b\n") + b"\xfc" + lzma.compress(b"c d\n")[1:]),
    "flipped bits": ("a.gz", GZIPPED[:20] + bytes([GZIPPED[20] ^ 255]) + GZIPPED[21:]),
    "truncated bz2": ("a.bz2", bz2.compress(b"some words\n" * 1000)[:-12]),
    "truncated xz": ("a.xz", lzma.compress(b"some words\n" * 1000)[:-12]),
    "truncated zstd": ("a.zst", zstd.compress(b"some words\n" * 1000)[:-3]),
    "not zstd": ("a.zst", b"plain text\n"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_and_a_wrong_header_before_anything_is_read(corpus, case):
    name, content = BROKEN[case]
    paths = corpus(**{"0.txt": b"fine\n", name: content})
    with pytest.raises(InputError, match=rf"{name}: cannot be decompressed "):
        blocks_of(paths[1])
    if case.startswith("not "):
        with pytest.raises(InputError, match=rf"{name}: cannot be decompressed "):
            reading.inspect(corpora.match(paths), "whitespace")


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"a b\n", mtime=0),
        "a b\n".encode("utf-16"),
        "The dog barked.\nHe was sad.\n".encode("utf-16le"),
        b"The dog barked.\rHe was sad.\rIt rained.",
        b"word " * 5000 + b"\rHe was sad.\rIt rained.",
        b'{"url": "http://example.org/0", "text": "The dog barked 0 times ."}\n',
    ],
)
def test_a_file_that_is_not_text_is_refused(corpus, content):
    with pytest.raises(InputError, match=r"/0\.txt: "):
        reading.inspect(corpora.match(corpus(content)), "whitespace")


@pytest.mark.parametrize("change", ["cut", "replaced", "appended to", "deleted"])
def test_a_file_that_changes_after_it_was_found_is_an_error_that_names_it(corpus, change):
    (path,) = corpus(b"some words\n" * 100)
    (file,) = corpora.match([path])
    os.utime(path, (1, 1))
    corpora.check_status(file._replace(changed=1e9), stores.status(path))
    if change == "deleted":
        os.remove(path)
    elif change != "replaced":
        os.truncate(path, 500 if change == "cut" else 5000)
        os.utime(path, ns=(file.changed, file.changed))
    expected = "No such file" if change == "deleted" else "changed while it was read"
    for look in (lambda: list(reading.read_blocks(corpora.Slice(file))), lambda: corpora.check_unchanged([file])):
        with pytest.raises((InputError, stores.ReadError), match=rf"{path}: {expected}"):
            look()


def test_a_zstd_file_of_several_frames_and_a_wide_window_is_read_to_its_end(corpus):
    parameter = zstd.CompressionParameter
    wide = {parameter.window_log: 31, parameter.enable_long_distance_matching: 1}  # as `zstd --long=31`
    texts = [b"one\n", b"", b"two words\n" * 50_000]
    frames = []
    for text in texts:
        # Only without the size of its text does a frame need the whole window.
        compressor = zstd.ZstdCompressor(options=wide)
        frames.append(compressor.compress(text) + compressor.flush())
    assert b"".join(block.data for block in blocks_of(*corpus(**{"a.zst": b"".join(frames)}))) == b"".join(texts)
