"""Text as numbered sentences: one per line of any length; chunks hold each once."""

import pytest

from elmo_tf.beam.embed import text_chunks
from elmo_tf.beam.running.journal import Journal
from elmo_tf.beam.text import corpora, sentences
from elmo_tf.errors import InputError
from tests.beam.common import SETTINGS, read_sentences


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("ending", [b"", b"\n", b" \n", b"\n\n"])
def test_a_line_of_any_length_is_one_sentence(corpus, count, ending):
    long = b" ".join([b"words" * 30] * 1800)  # 270 kB: it continues in the next block of text, twice
    paths = corpus(b"before\n\n" + long + ending, b"after it\n" + long)
    expected = [("0.txt", 1), ("0.txt", 0), ("0.txt", 1800), ("1.txt", 2), ("1.txt", 1800)]
    if ending == b"\n\n":
        expected.insert(3, ("0.txt", 0))
    assert [(source, len(words)) for source, words in read_sentences(paths, count)] == expected


def test_a_line_that_ends_where_a_block_is_cut_is_not_lost(corpus):
    text = (b"x" * 31 + b" ") * (1 << 12)  # 128 kB, as much as a block
    paths = corpus(text, text + b"\n", b"after it\n")
    expected = [("0.txt", 4096), ("1.txt", 4096), ("2.txt", 2)]
    assert [(source, len(words)) for source, words in read_sentences(paths)] == expected


def test_sentences_of_raw_text_have_tokens(corpus):
    paths = corpus(b"One. Two\nthree!\n\n \n\0\n\nFive\n")
    found = [words for _, words in read_sentences(paths, tokenizer="unicode", line=sentences.PART)]
    assert found == [[b"One", b"."], [b"Two", b"three", b"!"], [b"Five"]]
    lines = [len(words) for _, words in read_sentences(paths, tokenizer="unicode", line=sentences.SENTENCE)]
    assert lines == [3, 2, 0, 0, 0, 0, 1]


def test_a_file_that_is_one_endless_line_is_refused(corpus, monkeypatch):
    monkeypatch.setattr(sentences, "MOST_TOKENS", 1500)
    paths = corpus(b"fine\n" * 7 + b"words" * 30 + (b" " + b"words" * 30) * 1800)
    with pytest.raises(InputError, match=r"expected one sentence per line, .* 1,500 tokens on line 8"):
        read_sentences(paths)


@pytest.fixture
def kept(corpus, notes):
    """Copies a text to the journal of a folder, in `count` tasks; returns the journal and the tokens of each line."""

    def run(text: bytes, count: int, **settings: object) -> tuple[Journal, list[list[bytes]]]:
        step = text_chunks.KeepText(notes, SETTINGS._replace(**settings))
        step.setup()
        for task in corpora.plan_in_order(corpora.match(corpus(text)), count):
            assert [number for number, _ in step.process(task)] == [task.number]
        return notes, [line.split() for line in text.splitlines()]

    return run


def test_lines_without_tokens_are_divided_among_chunks_if_lines_count(kept):
    notes, lines = kept(b"word\n" * 5 + b"\n" * 50, 1)
    assert [chunk.lines for chunk in text_chunks.cut(notes, 1, 6, 5 + len(lines), 1)] == [5, 10, 10, 10, 10, 10]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("num_chunks", [1, 2, 5, 11, 60])
def test_chunks_hold_every_line_once_in_order_and_about_as_many_tokens(kept, count, num_chunks):
    notes, lines = kept(b"".join(b"word " * (number % 7) + b"\n" for number in range(40)) + b"\n\n", count)
    num_tokens = sum(map(len, lines))
    cut = list(text_chunks.cut(notes, count, num_chunks, num_tokens))
    assert [chunk.number for chunk in cut] == list(range(num_chunks))
    blocks = list(text_chunks.named_lengths(notes, count, False))
    lengths = [length for _, block in blocks for length in block]
    assert lengths == list(map(len, lines))
    assert [name for names, _ in blocks for name in names] == [b"%d" % number for number in range(len(lines))]
    first = 0
    for chunk in cut:
        assert (chunk.first_line, chunk.tokens) == (first, sum(lengths[first : first + chunk.lines]))
        assert text_chunks.read(notes, chunk) == ([b""] * chunk.lines, lines[first : first + chunk.lines])
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


@pytest.mark.parametrize("column", [1, 2])
def test_identifiers_are_a_column_beside_the_text(kept, column):
    text = b"".join(b"\t".join([b"name %d" % number, b"of it"][:: (1, -1)[column - 1]]) + b" \n" for number in range(9))
    notes, _ = kept(text + b"last\tlast\tone\r\n", 2, id_column=column)
    names = [*(b"name %d" % number for number in range(9)), b"last"]
    blocks = list(text_chunks.named_lengths(notes, 2, True))
    assert [name for found, _ in blocks for name in found] == names
    assert [length for _, lengths in blocks for length in lengths] == [2] * 10
    (chunk,) = text_chunks.cut(notes, 2, 1, 20)
    assert text_chunks.read(notes, chunk) == (names, [[b"of", b"it"]] * 9 + [[b"last", b"one"]])


def test_a_long_line_has_one_identifier(corpus):
    paths = corpus(b"a\tb\nlong\t" + b"words\t" * 50_000 + b"\nend\tc\n")  # 300 kB: it continues in two more blocks
    found = [words for _, words in read_sentences(paths, id_column=1)]
    assert found == [[b"a", b"b"], [b"long"] + [b"words"] * 50_000, [b"end", b"c"]]


@pytest.mark.parametrize(
    ("line", "column"), [(b"no tab", 1), (b"", 1), (b"\ttext", 1), (b"a\tb", 3), (b"a\t ", 2), (b"a\t\xff", 1)]
)
def test_a_line_without_its_identifier_is_named(corpus, line, column):
    paths = corpus(b"a\tb\tc\n" + line + b"\na\tb\tc\n")
    message = rf"0.txt: expected an identifier in column {column}, and a tab beside it, found none on line 2$"
    with pytest.raises(InputError, match=message):
        read_sentences(paths, id_column=column)
