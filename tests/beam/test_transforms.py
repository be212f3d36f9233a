"""The transforms in a pipeline of a user's own."""

import itertools
import json
import random

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from elmo_tf.beam import CountWords, ReadSentences, WriteRecords, transforms
from elmo_tf.beam.preprocess import PreprocessConfig, preprocess
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.text.vocabulary import Vocabulary
from elmo_tf.training import loop
from tests import helpers
from tests.beam.common import contents

LINES = [f"word{number % 9} of sentence{number}" for number in range(400)] + ["Yes ."] * 50 + ["one two three four"]
TEXT = "\n".join([*LINES, ""]).encode()


def words_of(path) -> list[list[str]]:
    records = record_folder.open_folder(path)
    return [[word.decode() for word in words] for _, words in helpers.sentences_of(records)]


def test_ten_lines_make_a_folder_of_the_sentences_that_a_filter_keeps_and_train_reads_it(
    corpus, tmp_path, untraced_steps
):
    paths = corpus(TEXT)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        sentences = pipeline | ReadSentences(paths)
        short = sentences | beam.Filter(lambda tokens: len(tokens) < 4)
        vocabulary = short | CountWords(min_count=2)
        info = short | WriteRecords(f"{tmp_path}/records", vocabulary, num_shards=3)
        assert_that(info | beam.Map(lambda about: about["sentences"]), equal_to([450]))
    written = words_of(tmp_path / "records")
    assert sorted(written) == sorted(line.split() for line in LINES[:-1])
    records = record_folder.open_folder(tmp_path / "records")
    assert records.vocabulary.tokens[3:5] == [b"of", b"."]
    assert len(records.info.shards) == 3
    repeated = [position for position, words in enumerate(written) if words == ["Yes", "."]]
    assert max(b - a for a, b in itertools.pairwise(repeated)) > 1  # equal sentences are not all neighbors
    lines = []
    loop.train(helpers.MICRO_CONFIG, tmp_path / "records", tmp_path / "workdir", steps=2, on_record=lines.append)
    assert lines[-1]["step"] == 2


def test_the_vocabulary_is_that_of_the_command_whose_function_returns_the_info_file(corpus, tmp_path):
    paths = corpus(TEXT)
    info = preprocess(PreprocessConfig(input=paths, output=tmp_path / "command", min_count=2))
    assert info == json.loads((tmp_path / "command" / "info.json").read_text())
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        vocabulary = pipeline | ReadSentences(paths) | CountWords(min_count=2, max_size=100)
        assert_that(vocabulary | beam.Map(lambda words: words.to_bytes()), equal_to([
            (tmp_path / "command" / "vocab.txt").read_bytes()
        ]))  # fmt: skip


def test_the_same_sentences_give_the_same_bytes_in_any_order_and_another_seed_others(tmp_path):
    sentences = [line.split() for line in LINES]
    words = Vocabulary([b"<S>", b"</S>", b"<UNK>", b"of"])
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        random.Random(name).shuffle(sentences)
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create(sentences) | WriteRecords(f"{tmp_path}/{name}", words, num_shards=4, seed=seed)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert sorted(words_of(tmp_path / "a")) == sorted(words_of(tmp_path / "c"))
    assert words_of(tmp_path / "a") != words_of(tmp_path / "c")


def test_by_default_every_word_is_kept_and_a_hash_orders_the_sentences(tmp_path):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        sentences = pipeline | beam.Create([["a", str(number % 7)] for number in range(10)])
        _ = sentences | WriteRecords(f"{tmp_path}/records", sentences | CountWords())
    assert record_folder.open_folder(tmp_path / "records").vocabulary.tokens[3:] == b"a 0 1 2 3 4 5 6".split()
    assert "".join(words[1] for words in words_of(tmp_path / "records")) == "5231400621"


def test_what_cannot_be_used_is_refused_where_it_enters(tmp_path):
    words = Vocabulary([b"<S>", b"</S>", b"<UNK>"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(InputError, match="/full: already exists"):
        WriteRecords(f"{tmp_path}/full", words)
    with pytest.raises(InputError, match=r"^num_shards: expected at least 1, found 0$"):
        WriteRecords(f"{tmp_path}/new", words, num_shards=0)
    with pytest.raises(InputError, match=r"^min_count: expected at least 1, found 0$"):
        CountWords(min_count=0)
    with pytest.raises(InputError, match=r"^tokenizer: expected one of "):
        ReadSentences("x", tokenizer="words")
    for step, options, message in (
        (WriteRecords, {"num_shards": 1.5}, "num_shards: expected an integer, found 1.5"),
        (WriteRecords, {"seed": -1}, "seed: expected 0 to 9223372036854775807, found -1"),
        (WriteRecords, {"seed": "1"}, "seed: expected an integer, found '1'"),
        (CountWords, {"max_size": -1}, "max_size: expected at least 4, found -1"),
        (CountWords, {"max_size": 3}, "max_size: expected at least 4, found 3"),
        (CountWords, {"max_size": 1.5}, "max_size: expected an integer, found 1.5"),
        (CountWords, {"min_count": True}, "min_count: expected an integer, found True"),
        (ReadSentences, {"patterns": []}, r"patterns: expected at least one file, folder or glob, found \[\]"),
        (ReadSentences, {"patterns": ""}, "patterns: expected at least one file, folder or glob, found "),
        (ReadSentences, {"patterns": ["a", ""]}, r"patterns: expected at least one .* found \['a', ''\]"),
        (PreprocessConfig, {"input": [], "output": "x"}, r"input: expected at least one .*, found \(\)"),
        (PreprocessConfig, {"input": "a", "output": "x", "shards": 1.5}, "shards: expected an integer, found 1.5"),
    ):
        folder_and_words = (f"{tmp_path}/new", words) if step is WriteRecords else ()
        with pytest.raises(InputError, match=f"^{message}$"):
            step(*folder_and_words, **options)
    for sentence, message in (
        ([b"caf\xe9"], r"tokens in UTF-8, found b'caf\\xe9'"),
        ("a b", "lists of tokens, found 'a b'"),
        (None, "lists of tokens, found None"),
        (["", "a"], r"tokens that are not empty and have no white space, found \['', 'a'\]"),
        ([b"a b"], r"tokens that are not empty and have no white space, found \['a b'\]"),
    ):
        with pytest.raises(InputError, match=f"^sentences: expected {message}"):
            transforms._to_bytes(sentence)
    with pytest.raises(InputError, match=r"/none: no such file$"):
        _ = beam.Pipeline(runner="FnApiRunner") | ReadSentences(f"{tmp_path}/none")


def test_running_text_is_read_in_sentences_of_penn(corpus):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        sentences = pipeline | ReadSentences(corpus(b"It isn't\nso. No?\n\nYes\n"), tokenizer="penn", line="part")
        assert_that(sentences, equal_to([["It", "is", "n't", "so", "."], ["No", "?"], ["Yes"]]))


def test_two_steps_of_a_pipeline_do_not_write_one_folder(tmp_path):
    words = Vocabulary([b"<S>", b"</S>", b"<UNK>"])
    sentences = beam.Pipeline(runner="FnApiRunner") | beam.Create([["a"]])
    _ = sentences | "First" >> WriteRecords(f"{tmp_path}/a", words)
    _ = sentences | "Second" >> WriteRecords(f"{tmp_path}/b", words)
    with pytest.raises(InputError, match=f"^{tmp_path}/a: another WriteRecords of this pipeline writes it$"):
        _ = sentences | "Third" >> WriteRecords(f"{tmp_path}/c/../a", words)


@pytest.mark.parametrize(
    ("sentences", "min_count", "message"),
    [
        ([], 1, "sentences: contain no words"),
        ([["<S>", "</S>"]] * 3, 2, "sentences: contains no words but <S>, </S> and <UNK>"),
        ([["<S>", "</S>", "a"]] * 3, 4, "min_count: expected at most 3, the count of the most frequent word, found 4"),
        ([["<S>"]] * 9 + [["a"]], 4, "min_count: expected at most 1, the count of the most frequent word, found 4"),
    ],
)
def test_sentences_without_a_word_for_the_vocabulary_are_refused_with_the_reason(sentences, min_count, message):
    pipeline = beam.Pipeline(runner="FnApiRunner")
    _ = pipeline | beam.Create(sentences) | CountWords(min_count=min_count)
    with pytest.raises(Exception, match=message):
        pipeline.run()


@pytest.mark.parametrize(
    "step", [CountWords(), WriteRecords("records", Vocabulary([b"<S>", b"</S>", b"<UNK>"]))], ids=["count", "write"]
)
def test_windowed_sentences_are_refused(step):
    windows = beam.WindowInto(beam.window.FixedWindows(10))
    with pytest.raises(InputError, match=r"^sentences: expected the global window; .*, found FixedWindows$"):
        _ = beam.Pipeline(runner="FnApiRunner") | beam.Create([["a"]]) | windows | step
