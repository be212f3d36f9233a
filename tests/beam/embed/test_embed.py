"""Text to vectors: their values and numbers in both formats, and what is refused."""

import gzip
import json
import os
import pathlib
import shutil
from typing import Any

import h5py
import numpy as np
import pytest

from elmo_tf import embedder, engines, sources
from elmo_tf.beam.embed import embed_task, run
from elmo_tf.cli import jobs
from elmo_tf.engines.numpy import NumpyEngine
from elmo_tf.errors import InputError
from elmo_tf.published import weights as published_weights
from elmo_tf.records import record_folder, vector_files
from elmo_tf.savedmodel import checksums
from elmo_tf.text import char_ids
from elmo_tf.workdir.folder import new_workdir
from tests import checks
from tests.beam.common import contents, files, irregular
from tests.helpers import MICRO_CONFIG

pytestmark = pytest.mark.usefixtures("loaded_once")

LINES = [
    "the cat sat",
    "",
    "a",
    "na\u00efve \u65e5\u672c on the mat , on the mat",
    "the the the the",
    "  \t",
    "\u00a0 is a token",
    "x" * 60,
]
TEXT = "".join(line + "\n" for line in LINES).encode()
PRECISION = {"float32": checks.TOLERANCE, "float16": {"rtol": 2**-10, "atol": 2**-10}}


@pytest.fixture
def embedded(savedmodel, tmp_path):
    """Embeds files in this process, `embedded(paths, "--layers=top")`; returns the output."""

    def embed(inputs: list[str], *options: str, output: str = "vectors.hdf5") -> pathlib.Path:
        path = tmp_path / output
        jobs.run("embed", ["--model", str(savedmodel.path), "--input", *inputs, "--output", str(path), *options])
        return path

    return embed


@pytest.fixture(scope="module")
def alone(savedmodel):
    """Returns the vectors of a line's tokens, computed by NumPy: `alone(line, layers)`."""
    model = embedder.load(savedmodel.path, engine="numpy")
    return lambda line, layers: model.encode([line.encode().split()], layers)[0].vectors


def described(path: pathlib.Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return json.loads(file.attrs[vector_files.INFO_ATTRIBUTE])


def content(path: pathlib.Path) -> list[np.ndarray]:
    with h5py.File(path) as file:
        assert sorted(file, key=int) == list(map(str, range(len(file))))
        return [file[str(number)][...] for number in range(len(file))]


@pytest.mark.parametrize(("layers", "dtype"), [("all", "float32"), ("1", "float16"), ("mix", "float32")])
def test_every_line_has_the_vectors_of_its_tokens_in_both_forms(alone, embedded, corpus, layers, dtype):
    options = [f"--layers={layers}", f"--dtype={dtype}", "--batch-tokens=9"]
    vectors = content(embedded(corpus(TEXT), *options))
    folder = embedded(corpus(TEXT), *options, "--format=tfrecord", "--shards=3", output="records")
    elements = list(vector_files.read_tfrecords(folder).as_numpy_iterator())
    assert [element["line"] for element in elements] == list(range(len(LINES)))
    assert [element["tokens"].tolist() for element in elements] == [line.encode().split() for line in LINES]
    wanted = [alone(line, int(layers) if layers.isdigit() else layers) for line in LINES]
    for arrays in (vectors, [element["vectors"] for element in elements]):
        assert [(array.shape, array.dtype) for array in arrays] == [(array.shape, dtype) for array in wanted]
        checks.assert_all_close(arrays, wanted, **PRECISION[dtype])


def test_the_model_computes_in_the_precision_that_is_asked_for(savedmodel, corpus, tmp_path, bfloat16_cpu):
    folder = published_weights.dump(savedmodel.bilm, tmp_path / "files")
    paths, output = corpus("".join(f"{line}\n" for line in LINES if line.split()).encode()), str(tmp_path / "records")
    options = ["--precision=bfloat16", "--format=tfrecord", "--model", str(folder), "--output", output]
    jobs.run("embed", [*options, "--input", *paths])
    assert json.loads(pathlib.Path(output, "info.json").read_text())["precision"] == "bfloat16"
    vectors = [element["vectors"] for element in vector_files.read_tfrecords(output).as_numpy_iterator()]
    lines = [line.encode().split() for line in LINES if line.split()]
    wanted, exact = (
        [encoded.vectors for encoded in embedder.load(folder, precision=precision).encode(lines, "all")]
        for precision in ("bfloat16", "float32")
    )
    # With another number of threads, sums may be in another order: few values move to the next bfloat16 number.
    near, far = (
        np.mean([np.abs(a - b).mean() for a, b in zip(vectors, given, strict=True)]) for given in (wanted, exact)
    )
    assert near < far / 4


def test_a_line_has_one_vector_and_its_identifier_in_every_form(alone, embedded, corpus):
    names = [f"line {number}".encode() for number in range(len(LINES))]
    paths = corpus(b"".join(b"%s\t%s\n" % (name, line.encode()) for name, line in zip(names, LINES, strict=True)))
    options = ["--id-column", "--layers=all", "--pool=max", "--dtype=float16"]
    outputs = [alone(line, "all") for line in LINES]
    wanted = [layers.max(1) if layers.size else np.zeros((3, 16)) for layers in outputs]
    folder = embedded(paths, *options, "--format=npy", output="matrix")
    assert sorted(os.listdir(folder)) == ["_SUCCESS", "ids.txt", "info.json", "sentences.txt", "vectors.npy"]
    matrix = np.load(folder / "vectors.npy")
    assert matrix.dtype == "float16"
    np.testing.assert_allclose(matrix, wanted, **PRECISION["float16"])
    assert (folder / "ids.txt").read_bytes().splitlines() == names
    sentences = (folder / "sentences.txt").read_text().split("\n")[:-1]
    assert sentences == [b" ".join(line.encode().split()).decode() for line in LINES]
    info = json.loads((folder / "info.json").read_text())
    assert (info["pool"], info["identifiers"], info["lines"], info["bytes"]) == ("max", True, 8, matrix.nbytes)
    with h5py.File(embedded(paths, *options)) as file:
        assert {name.encode() for name in file} == set(names)
        for name, row in zip(names, matrix, strict=True):
            np.testing.assert_array_equal(file[name], row)
    folder = embedded(paths, *options, "--format=tfrecord", "--shards=2", output="records")
    elements = list(vector_files.read_tfrecords(folder).as_numpy_iterator())
    assert [element["id"] for element in elements] == names
    np.testing.assert_array_equal([element["vectors"] for element in elements], matrix)


def test_without_identifiers_rows_have_the_numbers_of_their_lines(embedded, corpus, monkeypatch):
    monkeypatch.setattr(embed_task, "_GROUP_TOKENS", 7)
    monkeypatch.setattr(run, "_SHARD_TOKENS", 5)
    folder = embedded(corpus(TEXT, b"a\n"), "--format=npy", "--pool=mean", "--layers=mix", output="matrix")
    assert (folder / "ids.txt").read_text() == "".join(f"{number}\n" for number in range(9))
    matrix = np.load(folder / "vectors.npy")
    assert (matrix.shape, matrix.dtype) == ((9, 16), np.float32)
    np.testing.assert_allclose(matrix[8], matrix[2], **checks.TOLERANCE)


def test_an_hdf5_file_is_like_that_of_other_tools_and_says_what_it_is(embedded, corpus, savedmodel):
    path = embedded(corpus(TEXT))
    with h5py.File(path) as file:
        kinds = {name: (set(dataset.attrs), dataset.chunks, dataset.dtype) for name, dataset in file.items()}
        assert [file[str(number)].attrs["sentence"] for number in (3, 5)] == [LINES[3], ""]
    assert kinds == dict.fromkeys(map(str, range(len(LINES))), ({"sentence"}, None, np.dtype("<f4")))
    about = described(path)
    assert (about["layers"], about["token_shape"], about["lines"], about["tokens"]) == ("all", [3, 16], 8, 22)
    assert about["model_sha256"] == sources.find(savedmodel.path).sha256()
    rule = {"count": 2, "rule": "kept as a sentence without tokens", "files": {"0.txt": 2}}
    assert about["irregular"]["blank_lines"] == rule


def test_lines_are_numbered_through_all_files_whatever_becomes_of_them(embedded, corpus, tmp_path):
    texts = {"a.txt": b"a b\r\n\xff\xfe c\nlast line", "b.gz": gzip.compress(b"\n1 2 3\n")}
    corpus(**texts, **{"c.txt": b"c one\n\n"})
    path = embedded([str(tmp_path / "corpus")])
    assert [vectors.shape[1] for vectors in content(path)] == [2, 0, 2, 0, 3, 2, 0]
    about = described(path)
    ranges = [("a.txt", 0, 3), ("b.gz", 3, 2), ("c.txt", 5, 2)]
    assert [(source["name"], source["first_line"], source["lines"]) for source in about["inputs"]] == ranges
    counts = {"carriage_return_lines": 1, "invalid_utf8_lines": 1, "unterminated_lines": 1, "blank_lines": 2}
    assert irregular(about) == counts
    assert about["irregular"]["blank_lines"]["files"] == {"b.gz": 1, "c.txt": 1}


@pytest.mark.slow
def test_raw_text_gives_a_number_to_each_of_its_sentences(embedded, corpus):
    path = embedded(corpus(b"One, two. Three\nfour?\n\n \nFive!\n"), "--tokenizer=unicode", "--layers=top")
    assert [len(vectors) for vectors in content(path)] == [4, 3, 2]


def test_penn_numbers_the_sentences_of_paragraphs(embedded, corpus, caplog):
    caplog.set_level("INFO", "elmo_tf")
    path = embedded(corpus(b"It's one. Two?\n"), "--tokenizer=penn", "--line=paragraph", "--layers=top")
    assert [len(vectors) for vectors in content(path)] == [4, 2]
    assert "sentences  2, numbered from 0" in caplog.text


def test_there_are_as_many_shards_as_asked_for_but_for_those_without_lines(embedded, corpus):
    paths = corpus(b"".join(b"word " * (number % 7) + b"\n" for number in range(20)))
    for count in (3, 30):
        folder = embedded(paths, "--format=tfrecord", f"--shards={count}", output=f"records{count}")
        shards = json.loads((folder / "info.json").read_text())["shards"]
        assert sorted(os.listdir(folder)) == ["_SUCCESS", "info.json", *(shard["name"] for shard in shards)]
        assert {shard["name"] for shard in shards} <= {record_folder.shard_name(n, count) for n in range(count)}
        assert (len(shards) == count) == (count == 3)
        assert [shard["bytes"] for shard in shards] == [(folder / shard["name"]).stat().st_size for shard in shards]
        starts = np.cumsum([0, *(shard["lines"] for shard in shards)])
        assert [shard["first_line"] for shard in shards] == starts[:-1].tolist()
        assert starts[-1] == 20
        assert sum(shard["tokens"] for shard in shards) == 57
        elements = vector_files.read_tfrecords(folder).as_numpy_iterator()
        assert [element["line"] for element in elements] == list(range(20))


def test_text_is_split_by_the_model_unless_an_option_says_otherwise(savedmodel, corpus, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(engines, "make", lambda source, *_: NumpyEngine(source))  # it starts at once
    model = shutil.copytree(savedmodel.path, tmp_path / "model")
    settings = json.loads((model / "assets" / "provenance.json").read_text())
    settings["tokenizer"] = "characters"
    (model / "assets" / "provenance.json").write_text(json.dumps(settings))
    checksums.write(model)
    given = ["--model", str(model), "--input", *corpus(b"ab c\n"), "--layers=top"]
    caplog.set_level("INFO", "elmo_tf")
    for option, tokens, log in (
        ([], 3, "text is split by its tokenizer characters"),
        (["--tokenizer=whitespace"], 2, "text is split by whitespace, not by its own characters"),
    ):
        output = tmp_path / f"{tokens}.hdf5"
        jobs.run("embed", [*given, "--output", str(output), *option])
        assert [len(vectors) for vectors in content(output)] == [tokens]
        assert log in caplog.text
        assert described(output)["tokenizer"] == ("characters" if not option else "whitespace")


def test_the_vectors_of_a_line_do_not_depend_on_how_the_text_is_cut(embedded, corpus, monkeypatch):
    paths = corpus(b"".join(b"some words of sentence %d\n" % number * (number % 3) for number in range(300)))
    whole = content(embedded(paths))
    monkeypatch.setattr(embed_task, "_GROUP_BYTES", 5000)
    monkeypatch.setattr(run, "_SHARD_BYTES", 20_000)
    cut = content(embedded(paths, "--batch-tokens=64", output="cut"))
    assert len(whole) == len(cut) == 300
    checks.assert_all_close(whole, cut, **checks.TOLERANCE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output=gs://bucket/file"], r"^gs://bucket/file: expected a local path for HDF5"),
        (["--output={there}"], r"/there: is a file already; delete it to start again$"),
        (["--output={folder}"], r"/folder: is a folder already; delete it"),
        (["--output={link}"], r"/link: a link to a path that does not exist"),
        (["--output={link}", "--format=tfrecord"], r"/link: a link to a path that does not exist; "),
        (["--output={folder}", "--format=tfrecord"], r"/folder: already exists, and is not an unfinished output"),
        (["--output={there}/a"], r"there/a.unfinished: the folder cannot be made \(Not a directory\)$"),
        (["--input", "{folder}/missing"], r"no such file"),
        (["--input", "{blank}"], r"^input: contains no words"),
        (["--layers", "-1"], r"^layers: expected one of all, top, .*, mix, or a layer's number, found -1$"),
        (["--layers=3"], r"^layers: expected one of all, top, .*, mix, or 0 to 2, found 3$"),
        (["--model", "{workdir}"], r"expected an exported model or published files, .*, found a workdir"),
        (["--id-column", "--input", "{same}"], r"^input: expected a different .*, found the same in lines 0 and 2 \("),
        (
            ["--id-column", "--input", "{slash}"],
            r"^input: expected identifiers that HDF5 takes .*, found 'a/b' in ",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_left(savedmodel, tmp_path, options, message):
    (tmp_path / "folder").mkdir()
    texts = {"there": "a b\n", "blank": "\n", "folder/file": "", "same": "a\tb\nc\td\na\te\n", "slash": "a/b\tb\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with new_workdir(tmp_path / "workdir", MICRO_CONFIG, None):
        pass
    before = sorted(tmp_path.rglob("*"))
    paths = {name: tmp_path / name for name in (*texts, "folder", "link", "workdir")}
    given = [f"--model={savedmodel.path}", f"--output={tmp_path / 'out'}"]
    if "--input" not in options:
        given.append(f"--input={tmp_path / 'there'}")
    with pytest.raises(InputError, match=message):
        jobs.run("embed", [*given, *(option.format(**paths) for option in options)])
    assert sorted(tmp_path.rglob("*")) == before


def test_vectors_do_not_depend_on_what_the_process_computed_before(embedded, corpus, monkeypatch):
    computed: list[int] = []
    encode_tokens = char_ids.encode_tokens
    monkeypatch.setattr(
        char_ids, "encode_tokens", lambda tokens, size: computed.append(len(tokens)) or encode_tokens(tokens, size)
    )
    for number in range(2):
        embedded(corpus(**{"a.txt": b"a cat\nthe cat\n"}), output=f"{number}.hdf5")
    assert computed == [5] * 2  # distinct words, <S> and </S>, again each time


@pytest.mark.slow
def test_text_model_and_vectors_may_all_be_in_a_store(savedmodel, embedded, corpus, store):
    store.update({f"memory://models/mine/7/{name}": content for name, content in files(savedmodel.path).items()})
    store["memory://corpus/a.txt"] = TEXT
    for kind, option in (("tfrecord", "--shards=2"), ("npy", "--pool=max")):
        options, output = [f"--format={kind}", option], f"memory://out/{kind}"
        local = embedded(corpus(**{"a.txt": TEXT}), *options, output=kind)
        jobs.run("embed", ["--model=memory://models/mine", "--input=memory://corpus", f"--output={output}", *options])
        written = {path.removeprefix(f"{output}/"): store[path] for path in store if f"/{kind}/" in path}
        assert written == contents(local)
