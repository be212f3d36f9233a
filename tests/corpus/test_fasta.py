"""FASTA files: their records become lines however they are wrapped, cut or compressed, in every command."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import dataclasses
import gzip
import os
import pathlib
import random
import threading

import pytest

from elmo_tf import cli, sources
from elmo_tf.corpus import lines, reading, sentences
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.tasks import trained
from elmo_tf.text import tokenizers
from tests import helpers
from tests.beam.common import read_sentences


def drawn(count: int, longest: int) -> list[bytes]:
    draw = random.Random(count)
    return ["".join(draw.choices("ACDEFGHIKLMNPQRSTVWXYac", k=draw.randrange(longest))).encode() for _ in range(count)]


def fasta(sequences: list[bytes], width: int = 60, end: bytes = b"\n") -> bytes:
    """Returns records `>id0 a note`, `>id1 a note`, ... with lines of `width` residues and `*` at the end."""
    wrapped = [[sequence[at : at + width] for at in range(0, len(sequence), width)] for sequence in sequences]
    return b"".join(end.join([b">id%d a > note" % number, *rows, b"*"]) + end for number, rows in enumerate(wrapped))


def read(paths: list[str], num_tasks: int, numbered: bool = True, **settings) -> list[bytes]:
    pairs = read_sentences(paths, num_tasks, numbered, tokenizer="characters", **settings)
    return [b"".join(words) for _, words in pairs]


@pytest.mark.parametrize("num_tasks", [1, 3, 50])
@pytest.mark.parametrize(
    ("name", "width", "end"), [("a.fasta", 60, b"\n"), ("a.fa", 7, b"\r\n"), ("a.faa", 999, b"\n")]
)
def test_each_record_is_one_text_in_one_task(corpus, monkeypatch, num_tasks, name, width, end):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 500)
    sequences = [*drawn(60, 200), b"", b"M" * 400, b"K"]
    paths = corpus(**{name: fasta(sequences, width, end), "b.fna.gz": gzip.compress(fasta(sequences, width, end))})
    monkeypatch.setattr(sentences, "MAX_TOKENS", 500)
    assert read(paths, num_tasks) == sequences * 2
    kept = [sequence for sequence in sequences if sequence] * 2
    if width < 400:  # preprocessing cuts records that are longer than a block
        assert sorted(b"".join(read(paths, num_tasks, numbered=False))) == sorted(b"".join(kept))
    monkeypatch.undo()
    assert sorted(read(paths, num_tasks, numbered=False)) == sorted(kept)


def test_files_are_known_by_their_first_character(corpus):
    files = {
        "a.txt": b"\n>one\nMK\nV\n",
        "b.fa": b"MK V\n\n>L\n",
        "c.FAS": b"\xef\xbb\xbf>x\nK\nL\n",
        "d.pep": b">y\nA\n",
        "e.fa": b" \r\n>y\nC\n",
        "f.fa": b" >one\nMKV\n",  # a header begins its line
    }
    assert read(corpus(**files), 1) == [b"MKV", b"MKV", b"", b">L", b"KL", b"A", b"C", b">one", b"MKV"]
    assert read(corpus(**{"e.gz": gzip.compress(files["c.FAS"])}), 1) == [b"KL"]


@pytest.mark.parametrize(
    "text",
    [
        "> Are you coming?\n\nYes, I am.\n",
        "> first\n> second\n> third\n",
        ">>> import this\nThe Zen of Python\n1. Beautiful\n",
        ">他说\n我不知道\n",
        ">نقل\nمرحبا\n",
    ],
)
def test_text_that_begins_with_a_quotation_is_no_fasta(corpus, text, caplog):
    with caplog.at_level("INFO", "elmo_tf"):
        expected = ["".join(line.split()) for line in text.split("\n")[:-1]]
        assert [sequence.decode() for sequence in read(corpus(**{"a.fa": text.encode()}), 1)] == expected
        assert not caplog.records
        assert read_sentences(corpus(**{"a.fa": text.encode()}))  # no error about a tokenizer
        (path,) = corpus(**{"b.txt": b">one two\nMKV LA-\n"})
        assert read([path], 1) == [b"MKVLA-"]
    assert caplog.messages == [f"1 file, read as FASTA: {path}"]


def test_identifiers_stand_before_numbered_sequences():
    text = b">sp|P1|X_Y first\nMK V*\n\nL\n>two\n>\xff3\xe9 x\nxXbZ\n"
    cleaner = lines.Cleaner(paragraphs=False, is_whitespace_tokenized=False, numbered=True)
    cleaned = cleaner.clean(reading.Block(text, "a.fa", 0, is_fasta=True))
    assert cleaned.lines == [b"sp|P1|X_Y\tMKVL", b"two\t", b"3\txXbZ"]
    assert cleaned.irregular == {"invalid_utf8_lines": 1}
    rest = cleaner.clean(reading.Block(b"KK\nL*\n>four\nM\n", "a.fa", 90, is_continuation=True, is_fasta=True))
    assert rest.lines == [b"KKL", b"four\tM"]


def test_a_long_record_is_cut_for_training_and_refused_for_vectors(corpus):
    sequences = [b"M", b"ACDE" * 50_000, b"K"]
    paths = corpus(**{"a.fa": fasta(sequences), "b.txt": b"ACDE" * 50_000 + b"\nK\n"})
    pieces = read(paths, 1, numbered=False)
    assert sorted(b"".join(pieces)) == sorted(b"".join(sequences) + b"ACDE" * 50_000 + b"K")
    assert max(map(len, pieces)) <= lines.MAX_LINE_BYTES < reading.BLOCK_BYTES
    for path, line in zip(paths, (4, 1), strict=True):
        with pytest.raises(InputError, match=rf"{path}: line {line} has more than 131,072 tokens; "):
            read([path], 1)


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n"])
def test_a_header_longer_than_a_block_is_no_sequence(corpus, begin):
    paths = corpus(**{"a.fa": begin + b">P1 " + b"some protein\x01" * 30_000 + b"\nMKV\n>P2\nAAA\n"})
    assert read(paths, 1) == [b"MKV", b"AAA"]


def test_fasta_by_name_and_content_needs_its_tokenizer(corpus):
    with pytest.raises(InputError, match=r"a.FA: is FASTA, which needs --tokenizer characters$"):
        read_sentences(corpus(**{"a.FA": b">a\nMKV\n"}))
    assert read_sentences(corpus(**{"b.txt": b"> quoted\n"})) == [("b.txt", [b">", b"quoted"])]


def test_records_have_a_token_for_each_residue(corpus, process):
    folder = process(corpus(**{"a.fa": fasta([b"MKVM", b"KM"], 2)}), "--tokenizer=characters")
    records = record_folder.open_folder(folder)
    assert records.vocabulary.tokens[3:] == [b"M", b"K", b"V"]
    assert sorted(words for _, words in helpers.sentences_of(records)) == [[b"K", b"M"], [b"M", b"K", b"V", b"M"]]
    assert (records.info.sentences, records.info.tokens) == (2, 6)


def test_one_file_is_read_by_the_same_rules_and_a_pipe_is_too(corpus, tmp_path):
    (path,) = corpus(**{"proteins.fas": b">P1 a\nMK\nV\n>P2\nA\n"})
    assert list(sentences.read_lines(path, "characters")) == ["MKV", "A"]
    text = "\ufeffa b\r\n\n" + "long " * 60_000 + "line\nc"
    assert list(sentences.read_lines(corpus(text.encode())[0], "whitespace")) == text[1:].replace("\r", "").split("\n")
    (path,) = corpus(**{"long.fa": b"\n>chr1\n" + b"ACGT" * 60_000 + b"\n"})
    assert list(sentences.read_lines(path, "characters")) == ["ACGT" * 60_000]
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[b">P1\nMK\n"], daemon=True).start()
    assert list(sentences.read_lines(str(tmp_path / "pipe"), "characters")) == ["MK"]
    with pytest.raises(InputError, match=r"0.txt, line 2: not UTF-8 \(invalid start byte\); .* iconv -f latin1 "):
        list(sentences.read_lines(corpus(b"a\n\xff\n")[0], "whitespace"))


class Tagger:
    """Stands in for a tagger, which takes seconds to load."""

    def predict(self, sentences: list[str], tokenizer: str) -> list[dict]:
        return [{"tokens": [word.text for word in tokenizers.words_of(text, tokenizer)]} for text in sentences]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("score --input p.fas", '"sentence": "AAV"'),
        ("neighbors --input p.fas --word V --sentence MKV --json", '"line": 2, "sentence": ["A", "A", "V"]'),
        ("look --input p.fas --word V --output page.html", "page.html"),
        ("projector --input p.fas --word V --logdir logs", "tensorboard --logdir logs"),
        ("task ner predict --input p.fas --tokenizer characters", '{"tokens": ["A", "A", "V"]'),
    ],
)
def test_every_command_that_reads_text_reads_fasta(command, expected, tmp_path, monkeypatch, capsys, loaded_once):
    model = "english-ner" if command.startswith("task") else "proteins"
    source = dataclasses.replace(sources.find("english"), tokenizer="characters")
    monkeypatch.setattr(sources, "find", lambda _: source)
    monkeypatch.setattr(trained, "load_together", lambda *_, **__: Tagger())
    monkeypatch.chdir(tmp_path)
    pathlib.Path("p.fas").write_text(">sp|P1 a VVV\nMK\nV\n>P2\nAAV*\n")
    assert cli.main([*command.split(), "--model", model]) == 0, capsys.readouterr().err
    assert expected in capsys.readouterr().out
    if command.startswith("look"):
        assert '"M","K","V"],["A","A","V"' in pathlib.Path("page.html").read_text().replace("\n", "")
    if command.startswith("projector"):
        assert pathlib.Path("logs/uses.tsv").read_text().splitlines() == ["M K [V]", "A A [V]"]
