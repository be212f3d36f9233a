"""Preprocessing from text to a finished folder: what is written, and that it does not depend on how it is run."""

import collections
import gzip
import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest

from elmo_tf.beam.preprocess import shards
from elmo_tf.cli import jobs
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from tests import helpers
from tests.beam.common import PROCESSES, irregular, read_sentences

# Only a line feed ends a line. Carriage returns and form feeds are white space; U+00A0 is a character.
ODD = "\ufeffThe cat\r\n\n \t\r\nsat\x0bon\x0c the mat .\nno\u00a0break caf\u00e9\x00\x1c\n<S> x </S> <UNK>\nlast one"
ODD_SENTENCES = ["The cat", "sat on the mat .", "no\u00a0break caf\u00e9\x00\x1c", "<S> x </S> <UNK>", "last one"]


def many_lines(count: int, seed: int = 0) -> bytes:
    """Returns sentences of different words and lengths, a few of them equal."""
    random = np.random.default_rng(seed)
    words = [f"word{number}" for number in range(200)]
    return b"".join(" ".join(random.choice(words, random.integers(1, 12))).encode() + b"\n" for _ in range(count))


def read(folder: pathlib.Path) -> list[list[bytes]]:
    return [words for _, words in helpers.sentences_of(record_folder.open_folder(folder))]


def split(sentences: list[str]) -> list[list[bytes]]:
    return [sentence.encode().split() for sentence in sentences]


def multiset(sentences: list[list[bytes]]) -> collections.Counter:
    return collections.Counter(map(tuple, sentences))


def info_of(folder: pathlib.Path) -> dict[str, Any]:
    return json.loads((folder / "info.json").read_text())


def test_records_hold_ids_and_the_beginnings_of_words_as_tensorflow_reads_them(corpus, process):
    long = "x" * 47 + "\u00e9z"  # 50 bytes; the cut falls inside the character
    folder = process(corpus(f"the {long} saw the cat\n".encode()))
    # the: 3; cat, saw and the long word occur once and are sorted by their bytes
    assert (folder / "vocab.txt").read_text() == f"<S>\n</S>\n<UNK>\nthe\ncat\nsaw\n{long}\n"
    words = [b"the", b"x" * 47 + b"\xc3", b"saw", b"the", b"cat"]
    assert helpers.sentences_of(record_folder.open_folder(folder)) == [([0, 3, 6, 5, 3, 4, 1], words)]


@pytest.mark.parametrize(("kind", "num_shards"), [("gzip", 5), ("mixed", 11)])
def test_shards_hold_every_sentence_once(corpus, process, monkeypatch, kind, num_shards):
    monkeypatch.setattr("elmo_tf.corpus.reading.BLOCK_BYTES", 256)
    texts = {"a": ODD.encode(), "b": many_lines(40), "c": b"\n", "d": many_lines(3, seed=1).removesuffix(b"\n")}
    zipped = {"gzip": "abcd", "mixed": "bd"}[kind]
    packed = {f"{name}.gz": gzip.compress(texts[name]) for name in zipped}
    plain = {f"{name}.txt": text for name, text in texts.items() if name not in zipped}
    folder = process(corpus(**packed, **plain), f"--shards={num_shards}")
    others = [line.split() for name in "bd" for line in texts[name].splitlines()]
    assert multiset(read(folder)) == multiset(split(ODD_SENTENCES) + others)
    shards = record_folder.open_folder(folder).info.shards
    assert [shard.name for shard in shards] == sorted(path.name for path in folder.glob("*.tfrecord"))
    assert 0 < len(shards) <= num_shards
    assert kind != "gzip" or len(shards) == num_shards  # a task distributes its blocks over its shards
    assert min(shard.sentences for shard in shards) > 0  # a shard without sentences is not written
    assert irregular(info_of(folder)) == {
        "blank_lines": 3,
        "byte_order_marks": 1,
        "carriage_return_lines": 2,
        "nul_lines": 1,
        "unterminated_lines": 2,
    }


def test_info_counts_what_was_written(corpus, process):
    folder = process(corpus(b"a a b\n\n" + b"x" * 60 + b" <S> b\na\n"), "--min-count=2")
    info = info_of(folder)
    assert (info["sentences"], info["tokens"], info["characters"]) == (3, 7, 1 + 1 + 1 + 48 + 3 + 1 + 1)
    assert (info["unknown_tokens"], info["reserved_tokens"], info["cut_tokens"]) == (1, 1, 1)
    assert (info["vocabulary"]["size"], info["split"]) == (5, "train")
    (shard,) = info["shards"]
    assert (shard["sentences"], shard["tokens"], shard["bytes"]) == (3, 7, (folder / shard["name"]).stat().st_size)
    assert str(folder.parent) not in json.dumps(info)  # no path, so that it is the same wherever it was made


@pytest.mark.parametrize("options", [["--shards=1"], ["--shards=7"], ["--shards=3", *PROCESSES]])
def test_the_first_files_with_irregular_text_and_copies_are_named(corpus, process, caplog, monkeypatch, options):
    monkeypatch.setattr("elmo_tf.corpus.reading.BLOCK_BYTES", 16)
    caplog.set_level("INFO", "elmo_tf")
    texts = {"d.txt": b"\xff\na b\n", "b/e.txt": b"a b\n" + b"\xff\n" * 20, "c\x1b.txt": b"\xff\n\xff\nb\n"}
    texts |= {
        "a.txt": b"a b\n",
        "c.txt": b"e\xcc\x81\n\xff\n",
        "z.txt": texts["d.txt"],
        "d.gz": gzip.compress(b"\xff\n"),
    }
    folder = process([str(pathlib.Path(corpus(**texts)[0]).parent)], *options)
    info = info_of(folder)
    files = {"b/e.txt": 20, "c\x1b.txt": 2, "c.txt": 1}
    rule = "dropped; to keep them, convert the file, for example with iconv"
    assert info["irregular"]["invalid_utf8_lines"] == {"count": 26, "rule": rule, "files": files}
    assert list(info["irregular"]["invalid_utf8_lines"]["files"]) == list(files)
    assert info["irregular"]["non_nfc_lines"]["files"] == {"c.txt": 1}
    assert {file["name"]: file["same_as"] for file in info["inputs"] if "same_as" in file} == {"z.txt": "d.txt"}
    assert f"\n  invalid utf8 lines: 26, {rule}\n    b/e.txt: 20, c\\x1b.txt: 2, c.txt: 1, ...\n" in caplog.text
    assert "one form\n    c.txt: 1\ncopies of other files: 1, kept\n  z.txt of d.txt\n" in caplog.text


@pytest.mark.parametrize("tokenizer", ["whitespace", "penn"])
def test_a_vocabulary_of_words_with_glued_punctuation_brings_a_hint(corpus, process, caplog, tokenizer):
    caplog.set_level("INFO", "elmo_tf")
    hint = "hint: 5 of 10 words are another word plus punctuation; if the text is not tokenized, use --tokenizer penn"
    raw = corpus(b"it rained, and rained. why? it rained; rained\nwhy it, not?\n")
    process(raw, f"--tokenizer={tokenizer}", output="raw")
    assert (hint in caplog.text) == (tokenizer == "whitespace")
    caplog.clear()
    process(corpus(b"It rained , and rained . Mr. Why ? ... Mr\n" + many_lines(90)), output="tokenized")
    assert "vocabulary: " in caplog.text
    assert "if the text is not tokenized" not in caplog.text


def test_words_that_spaces_do_not_separate_bring_a_hint(corpus, process, caplog):
    caplog.set_level("INFO", "elmo_tf")
    text = "我們每天早上都去學校裡學習中文和數學。\n我 們 去 學 校\n"
    process(corpus(text.encode()), output="raw")
    hint = "hint: 1 of 6 tokens were cut; if the text has no spaces between words, use --tokenizer unicode"
    assert hint in caplog.text
    caplog.clear()
    process(corpus(text.encode()), "--tokenizer=penn", output="split")
    assert "vocabulary: " in caplog.text
    assert "hint: " not in caplog.text


def test_names_of_files_and_folders_need_not_be_utf8(process, tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    pathlib.Path(os.fsdecode(path)).write_bytes(b"a b\n")
    folder = process([os.fsdecode(path)], output=os.fsdecode(b"caf\xe9"))
    assert os.fsencode(info_of(folder)["inputs"][0]["name"]) == b"caf\xe9.txt"
    damaged = pathlib.Path(os.fsdecode(path[:-3] + b"gz"))
    damaged.write_bytes(b"no gzip")
    with pytest.raises(InputError, match=r"caf\\udce9\.gz: cannot be decompressed"):
        process([str(damaged)], *PROCESSES, output="other")


def test_a_text_that_changes_during_the_last_task_is_an_error_and_nothing_is_left(
    corpus, process, tmp_path, monkeypatch
):
    (path,) = corpus(b"a b c\n" * 1000)
    written = shards.written

    def appending(*arguments):
        with open(path, "ab") as file:
            file.write(b"more\n")
        return written(*arguments)

    monkeypatch.setattr(shards, "written", appending)
    with pytest.raises(InputError, match=r"0.txt: changed while it was read; run the command again"):
        process([path], "--shards=1")
    assert sorted(os.listdir(tmp_path)) == ["corpus"]


def test_max_vocab_keeps_the_most_frequent_words(corpus, process):
    folder = process(corpus(b"c c c b b a a d\n"), "--max-vocab=5")
    assert (folder / "vocab.txt").read_text() == "<S>\n</S>\n<UNK>\nc\na\n"


def test_a_given_vocabulary_is_used_and_kept_with_our_first_lines(corpus, process, tmp_path):
    given = tmp_path / "given.txt"
    given.write_bytes(b"</S>\r\n<S>\r\n<UNK>\r\nz\r\ncat\r\n")
    folder = process(corpus(b"the cat z\n"), f"--vocab={given}")
    assert helpers.sentences_of(record_folder.open_folder(folder))[0][0] == [0, 2, 4, 3, 1]
    assert (folder / "vocab.txt").read_bytes() == b"<S>\n</S>\n<UNK>\nz\ncat\n"
    assert info_of(folder)["vocabulary"]["source"] == "given.txt"


def test_an_alphabetical_vocabulary_is_refused_before_anything_is_written(corpus, process, tmp_path):
    words = [f"w{number:03d}".encode() for number in range(100)]
    text = b"".join(word + b"\n" for rank, word in enumerate(reversed(words)) for _ in range(200 // (rank + 1)))
    given = tmp_path / "given.txt"
    given.write_bytes(b"\n".join([b"<S>", b"</S>", b"<UNK>", *words]))
    with pytest.raises(InputError, match=r"^/.*given.txt: its words are not in the order of their counts"):
        process(corpus(text), f"--vocab={given}")
    assert sorted(os.listdir(tmp_path)) == ["corpus", "given.txt"]


def test_heldout_sentences_are_in_no_other_split_and_do_not_move(corpus, process, tmp_path):
    once = b"".join(b"only%d here\n" % number for number in range(100))
    halves = [many_lines(250) + once, many_lines(250, seed=1)]
    paths = corpus(*halves, b"".join(halves))
    heldout = tmp_path / "heldout"
    train = process(paths, f"--heldout={heldout}", "--heldout-fraction=0.2")
    held, kept = multiset(read(heldout)), multiset(read(train))
    assert not set(held) & set(kept)
    whole = b"".join(pathlib.Path(path).read_bytes() for path in paths)
    assert held + kept == multiset([line.split() for line in whole.splitlines()])
    assert 0.15 < len(held) / (len(held) + len(kept)) < 0.25
    assert (heldout / "vocab.txt").read_bytes() == (train / "vocab.txt").read_bytes()
    assert info_of(heldout)["split"] == "heldout"
    seen = {word for sentence in kept for word in sentence}
    assert set(record_folder.open_folder(train).vocabulary.tokens[3:]) == seen
    assert seen != {word for sentence in held + kept for word in sentence}

    again = ["--shards=3", f"--heldout={tmp_path / 'heldout2'}", "--heldout-fraction=0.2"]
    process(paths[2:], *again, output="other_files")
    assert set(multiset(read(tmp_path / "heldout2"))) == set(held)
    process(paths, f"--heldout={tmp_path / 'heldout3'}", "--heldout-fraction=0.2", "--seed=1", output="other_seed")
    assert set(multiset(read(tmp_path / "heldout3"))) != set(held)


def test_penn_splits_each_line_and_unicode_makes_sentences_of_running_text(corpus, process):
    folder = process(corpus(b"The king's men don't.\n\nYes\n"), "--tokenizer=penn", output="penn")
    assert read(folder) == split(["The king 's men do n't .", "Yes"])
    assert info_of(folder)["line"] == "sentence"
    text = "Mr. X didn't\nstop! Now\u00a0\n\nA title\n\n中文abcカー👍🏽".encode()
    running = process(corpus(text), "--tokenizer=unicode")
    expected = ["Mr. X didn 't stop !", "Now", "A title", "中 文 abc カ ー 👍🏽"]
    assert read(running) == split(expected)
    assert info_of(running)["line"] == "part"
    assert "blank_lines" not in info_of(running)["irregular"]
    paragraphs = read_sentences(corpus(text), numbered=False, tokenizer="unicode", line="paragraph")
    assert [len(words) for _, words in paragraphs] == [4, 2, 1, 2, 6]


def test_penn_splits_the_sentences_of_running_text(corpus, process):
    text = b'Mr. X\ndidn\'t stop! "Who?" he\nsaid.\n\nNow\n'
    parts = process(corpus(text), "--tokenizer=penn", "--line=part")
    assert read(parts) == split(["Mr. X did n't stop !", '" Who ? " he said .', "Now"])
    assert info_of(parts)["line"] == "part"
    paragraphs = process(corpus(text), "--tokenizer=penn", "--line=paragraph", output="paragraphs")
    expected = ["Mr. X", "did n't stop !", '" Who ? " he', "said .", "Now"]
    assert read(paragraphs) == split(expected)


def test_a_misspelt_option_is_a_usage_error(corpus, capsys):
    for wrong in (["--shard", "3"], ["--direct_num_worker=2"], ["--shards=x"], ["--direct_num_workers=x"]):
        with pytest.raises(SystemExit) as error:
            jobs.run("preprocess", ["--input", *corpus(b"a\n"), "--output", "unused", *wrong])
        assert error.value.code == 2
        assert wrong[0].split("=")[0] in capsys.readouterr().err.splitlines()[-1]
