"""Text as numbered sentences: one per line of any length; chunks hold each once."""

import io
import pathlib
import tarfile

import pytest

from elmo_tf.errors import InputError
from elmo_tf.pipelines.embed import text_chunks
from elmo_tf.pipelines.running.journal import Journal
from elmo_tf.pipelines.text import corpora, sentences

SETTINGS = sentences.Settings("whitespace", sentences.SENTENCE, strict=False, seed=0, heldout_fraction=None)


def numbered(
    paths: list[str], count: int = 1, settings: sentences.Settings = SETTINGS
) -> list[tuple[str, list[bytes]]]:
    """Returns source and tokens of each sentence, read in `count` tasks."""
    reader = sentences.Reader(settings, numbered=True)
    return [
        (pathlib.Path(block.source).name, words)
        for task in corpora.plan_in_order(corpora.match(paths), count)
        for block in reader.read(task)
        for words in block.sentences
    ]


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("ending", [b"", b"\n", b" \n", b"\n\n"])
def test_a_line_of_any_length_is_one_sentence(corpus, count, ending):
    long = b" ".join([b"words" * 30] * 1800)  # 270 kB: it continues in the next block of text, twice
    paths = corpus(b"before\n\n" + long + ending, b"after it\n" + long)
    expected = [("0.txt", 1), ("0.txt", 0), ("0.txt", 1800), ("1.txt", 2), ("1.txt", 1800)]
    if ending == b"\n\n":
        expected.insert(3, ("0.txt", 0))
    assert [(source, len(words)) for source, words in numbered(paths, count)] == expected


def test_a_line_that_ends_where_a_block_is_cut_is_not_lost(corpus):
    text = (b"x" * 31 + b" ") * (1 << 12)  # 128 kB, as much as a block
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in (("one", text), ("two", b"of it")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    paths = corpus(text, text + b"\n", b"after it\n") + corpus(**{"a.tar": archive.getvalue()})
    expected = [("0.txt", 4096), ("1.txt", 4096), ("2.txt", 2), ("one", 4096), ("two", 2)]
    assert [(source, len(words)) for source, words in numbered(paths)] == expected


def test_sentences_of_raw_text_have_tokens(corpus):
    settings = SETTINGS._replace(tokenizer="unicode", line=sentences.PART)
    assert [words for _, words in numbered(corpus(b"One. Two\nthree!\n\n \n\0\n\nFive\n"), settings=settings)] == [
        [b"One", b"."],
        [b"Two", b"three", b"!"],
        [b"Five"],
    ]


def test_a_file_that_is_one_endless_line_is_refused(corpus, monkeypatch):
    monkeypatch.setattr(sentences, "MOST_TOKENS", 1500)
    paths = corpus(b"fine\n" * 7 + b"words" * 30 + (b" " + b"words" * 30) * 1800)
    with pytest.raises(InputError, match=r"expected one sentence per line, .* 1,500 tokens on line 8"):
        numbered(paths)


@pytest.fixture
def kept(corpus, tmp_path):
    """Copies a text to the journal of a folder, in `count` tasks; returns the journal and the tokens of each line."""

    def run(text: bytes, count: int) -> tuple[Journal, list[list[bytes]]]:
        notes = Journal(str(tmp_path / "output"), "run")
        pathlib.Path(notes.path("")).mkdir(parents=True)
        step = text_chunks.KeepText(notes, SETTINGS)
        step.setup()
        for task in corpora.plan_in_order(corpora.match(corpus(text)), count):
            assert [number for number, _ in step.process(task)] == [task.number]
        return notes, [line.split() for line in text.splitlines()]

    return run


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("num_chunks", [1, 2, 5, 11, 60])
def test_chunks_hold_every_line_once_in_order_and_about_as_many_tokens(kept, count, num_chunks):
    notes, lines = kept(b"".join(b"word " * (number % 7) + b"\n" for number in range(40)) + b"\n\n", count)
    num_tokens = sum(map(len, lines))
    cut = list(text_chunks.cut(notes, count, num_chunks, num_tokens))
    assert [chunk.number for chunk in cut] == list(range(num_chunks))
    lengths = [length for text in text_chunks.line_lengths(notes, count) for length in text.tolist()]
    assert lengths == list(map(len, lines))
    first = 0
    for chunk in cut:
        assert (chunk.first_line, chunk.tokens) == (first, sum(lengths[first : first + chunk.lines]))
        assert text_chunks.read(notes, chunk) == lines[first : first + chunk.lines]
        assert chunk.tokens < num_tokens / num_chunks + 6
        first += chunk.lines
    assert first == len(lines)


def test_the_result_has_lines_tokens_and_what_was_irregular(kept, monkeypatch):
    monkeypatch.setattr(text_chunks, "PIECE_TOKENS", 3)
    notes, _ = kept(b"a b c d\n\n\xff\na b c", 1)
    result = notes.result(text_chunks.PHASE, 0, text_chunks.Kept)
    (source,) = result.lines
    assert (result.lines, result.tokens) == ({source: 4}, 7)
    found = {name: count for name, count in result.irregular.items() if count}
    assert found == dict.fromkeys(("blank_lines", "invalid_utf8_lines", "long_sentences", "unterminated_lines"), 1)
    assert text_chunks.rules(SETTINGS).keys() >= found.keys()
