"""The configurations of the jobs: what they refuse, and that a program gets what the command writes."""

import dataclasses
import json
import math

import pytest

from elmo_tf.beam.embed import EmbedConfig
from elmo_tf.beam.preprocess import PreprocessConfig, preprocess
from elmo_tf.cli import jobs
from elmo_tf.errors import InputError


def test_a_program_gets_what_is_written(corpus, tmp_path):
    corpus(b"a b\nb c\n" * 9)
    info = preprocess(PreprocessConfig(input=tmp_path / "corpus", output=tmp_path / "program"))
    assert info == json.loads((tmp_path / "program" / "info.json").read_text())


def test_a_command_line_sets_the_fields_that_it_names():
    argv = ["--input", "a", "b", "--output=c", "--min-count=2", "--shuffle", "--direct_num_workers=2"]
    arguments = jobs.parsed("preprocess", argv)
    given = {"input": ["a", "b"], "output": "c", "min_count": 2, "shuffle": True, "beam": ["--direct_num_workers=2"]}
    assert arguments == given
    config = PreprocessConfig(**arguments)
    assert (config.input, config.beam, config.tokenizer) == (("a", "b"), ("--direct_num_workers=2",), "whitespace")
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
        ({"line": "sentence"}, "line: it needs the tokenizer unicode"),
        ({"shards": 0}, "shards: expected at least 1, found 0"),
        ({"seed": -1}, "seed: expected 0"),
        ({"min_count": 0}, "min_count: expected at least 1, found 0"),
        ({"max_vocab": 3}, "max_vocab: expected at least 4, found 3"),
        ({"vocab": "v", "min_count": 2}, "vocab: it goes without min_count, "),
        ({"vocab": "v", "max_vocab": 9}, "vocab: it goes without max_vocab, "),
        ({"heldout_fraction": 0.5}, "heldout_fraction: it needs heldout"),
        ({"heldout": "h", "heldout_fraction": 0}, "heldout_fraction: expected a number between 0 and 1"),
        ({"heldout": "h", "heldout_fraction": 1}, "heldout_fraction: expected a number between 0 and 1"),
        ({"heldout": "h", "heldout_fraction": math.nan}, "heldout_fraction: expected a number between 0 and 1"),
        ({"model": "m", "format": "hdf"}, "format: expected one of hdf5, tfrecord, npy, found hdf"),
        ({"model": "m", "format": "npy"}, "format: npy needs pool mean or max"),
        ({"model": "m", "pool": "sum"}, "pool: expected one of mean, max, found sum"),
        ({"model": "m", "id_column": 0}, "id_column: expected at least 1, found 0"),
        (
            {"model": "m", "id_column": 1, "tokenizer": "unicode"},
            "id_column: lines have to be sentences; set",
        ),
        ({"model": "m", "shards": 2}, "shards: only the format tfrecord has shards"),
        ({"model": "m", "batch_tokens": 0}, "batch_tokens: expected at least 1, found 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_where_it_enters(given, message):
    with pytest.raises(InputError, match=f"^{message}"):
        (EmbedConfig if "model" in given else PreprocessConfig)(input="a", output="b", **given)


def test_an_option_that_beam_does_not_have_is_refused(corpus, tmp_path):
    config = PreprocessConfig(input=corpus(b"a\n"), output=tmp_path / "out", beam=["--direct_num_worker=2"])
    with pytest.raises(InputError, match=r"^beam: unrecognized arguments: --direct_n"):
        preprocess(config)
    assert not (tmp_path / "out").exists()
