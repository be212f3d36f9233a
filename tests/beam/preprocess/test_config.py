"""The configurations of the jobs, wrong arguments and files, and that a program gets what the command writes."""

import dataclasses
import gzip
import math
import os
import sys

import pytest

from elmo_tf.beam.embed import EmbedConfig
from elmo_tf.beam.preprocess import PreprocessConfig
from elmo_tf.cli import jobs
from elmo_tf.errors import InputError


def test_a_command_line_sets_the_fields_that_it_names():
    argv = ["--input", "a", "b", "--output=c", "--input", "d", "--min-count=2", "--direct_num_workers=2"]
    arguments = jobs.parsed("preprocess", argv)
    beam = ["--direct_num_workers=2"]
    assert arguments == {"input": ["a", "b", "d"], "output": "c", "min_count": 2, "beam": beam}
    config = PreprocessConfig(**arguments)
    assert (config.input, config.beam, config.tokenizer) == (("a", "b", "d"), ("--direct_num_workers=2",), "whitespace")
    config = PreprocessConfig(input="a", output="b", tokenizer="unicode", line="paragraph")
    assert config.settings()[:2] == ("unicode", "paragraph")


@pytest.mark.parametrize(("name", "config"), [("preprocess", PreprocessConfig), ("embed", EmbedConfig)])
def test_each_field_has_a_flag_of_its_name(name, config):
    fields = {field.name for field in dataclasses.fields(config)} - {"beam"}
    assert fields == {field for field in fields if jobs.flags(name)[field] == f"--{field.replace('_', '-')}"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokenizer": "words"}, "tokenizer: expected one of whitespace, penn, unicode, characters, found words"),
        ({"line": "sentence"}, "line: only works with the tokenizers penn and unicode, not with whitespace"),
        ({"model": "m", "tokenizer": "characters", "line": "part"}, "line: only works with .*, not with characters"),
        ({"shards": 0}, "shards: expected at least 1, found 0"),
        ({"seed": -1}, "seed: expected 0"),
        ({"min_count": 0}, "min_count: expected at least 1, found 0"),
        ({"max_vocab": 3}, "max_vocab: expected at least 4, found 3"),
        ({"vocab": "v", "min_count": 2}, "vocab: cannot be combined with min_count, "),
        ({"vocab": "v", "max_vocab": 9}, "vocab: cannot be combined with max_vocab, "),
        ({"heldout_fraction": 0.5}, "heldout_fraction: requires heldout"),
        ({"heldout": "h", "heldout_fraction": 0}, "heldout_fraction: expected a number between 0 and 1"),
        ({"heldout": "h", "heldout_fraction": 1}, "heldout_fraction: expected a number between 0 and 1"),
        ({"heldout": "h", "heldout_fraction": math.nan}, "heldout_fraction: expected a number between 0 and 1"),
        ({"model": "m", "format": "hdf"}, "format: expected one of hdf5, tfrecord, npy, found hdf"),
        ({"model": "m", "format": "npy"}, "format: npy requires pool mean or max"),
        ({"model": "m", "pool": "sum"}, "pool: expected one of mean, max, found sum"),
        ({"model": "m", "id_column": 0}, "id_column: expected at least 1, found 0"),
        ({"model": "m", "id_column": 1, "tokenizer": "unicode"}, "id_column: lines have to be sentences; set"),
        ({"model": "m", "id_column": 1, "line": "part"}, "id_column: lines have to be sentences; set"),
        ({"model": "m", "shards": 2}, "shards: only applies to the format tfrecord"),
        ({"model": "m", "batch_tokens": 0}, "batch_tokens: expected at least 1, found 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_where_it_enters(given, message):
    with pytest.raises(InputError, match=f"^{message}"):
        (EmbedConfig if "model" in given else PreprocessConfig)(input="a", output="b", **given)


@pytest.mark.parametrize(("tokenizer", "default"), [("penn", "sentence"), ("unicode", "part")])
def test_a_run_is_resumed_with_the_default_line_written_out(tokenizer, default):
    options = [
        PreprocessConfig(input="a", output="b", tokenizer=tokenizer, line=line).plan_options()
        for line in (None, default, "paragraph")
    ]
    assert options[0] == options[1] != options[2]


def test_penn_needs_tensorflow_text_only_for_running_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    config = PreprocessConfig(input="a", output="b", tokenizer="penn")
    assert not config.settings().needs_tensorflow
    with pytest.raises(ModuleNotFoundError, match=r"needs tensorflow-text: install elmo-tf with the extra \[text\]"):
        dataclasses.replace(config, line="part").settings()


BLANK = {"a.txt": b"\n \r\n", "b.gz": gzip.compress(b"")}
TEXT = {"a.txt": b"a b b\nc\n"}


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (BLANK, ["--heldout={new}/heldout", "--shards=3"], "input: contains no words"),
        ({"a.txt": b"\xff\n\n"}, [], r"input: .*irregular: invalid utf8 lines: 1, dropped.*; blank lines: 1, dropped$"),
        (TEXT, ["--vocab={words}"], r"/.*vocab\.txt.*line 5: the word b'a' is already in line 4"),
        (TEXT, ["--min-count=3"], "min_count: expected at most 2, .* found 3"),
        (TEXT, ["--heldout={new}", "--heldout-fraction=1e-9"], "heldout_fraction: .* found none of 2 sentences held"),
        (TEXT, ["--heldout={new}", "--heldout-fraction=0.999999"], "heldout_fraction: .* of 2 sentences left"),
        (TEXT, ["--runner=PortableRunner"], "job_endpoint: give the address of a job service"),
        (TEXT, ["--heldout={new}/../output"], "heldout: expected a folder that neither contains the output nor is"),
        (TEXT, ["--heldout={new}/../output/heldout"], "heldout: expected a folder that neither contains the output"),
        (TEXT, ["--heldout={new}/.."], "/.*: already exists, and is not an unfinished output"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_left(corpus, process, tmp_path, files, options, message):
    words = tmp_path / "vocab.txt"
    words.write_bytes(b"<S>\n</S>\n<UNK>\na\na\n")
    with pytest.raises(InputError, match=f"^{message}"):
        process(corpus(**files), *(option.format(new=tmp_path / "new", words=words) for option in options))
    assert sorted(os.listdir(tmp_path)) == ["corpus", "vocab.txt"]
