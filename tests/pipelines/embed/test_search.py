"""The nearest uses of words in a text on disk, embedded on the fly or before."""

import bz2
import json
import pathlib
import shutil

import h5py
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.cli import jobs
from elmo_tf.errors import InputError
from elmo_tf.pipelines.embed import search as neighbors
from elmo_tf.savedmodel import vector_files
from elmo_tf.savedmodel.neighbors import Query, Use, nearest_uses
from tests import checks
from tests.helpers import slow

pytestmark = pytest.mark.usefixtures("loaded_once")

QUERY = "the bank of the wide river was green ."
TWIN = "the bank of the wide river was grey ."
LINES = [
    TWIN,
    "",
    "a bank",
    "bank bank on the bank",
    QUERY,
    "no word like it",
    "naïve bank 日本語",
    TWIN.replace(" ", "\t"),
]
TEXT = "".join(line + "\n" for line in LINES).encode()


@pytest.fixture
def search(savedmodel, corpus):
    """Searches a text, `search(TEXT, layer="1")`; returns the query and the uses."""

    def run(text: bytes | str = TEXT, name: str = "text.txt", **options):
        path = text if isinstance(text, str) else corpus(**{name: text})[0]
        given = {"savedmodel": str(savedmodel.path), "text": path, "word": "bank", "sentence": QUERY}
        return neighbors.Search(**given | options).run()

    return run


@pytest.fixture(scope="module")
def embedded(savedmodel, tmp_path_factory):
    """Embeds a text once for several tests; returns the file."""
    folder = tmp_path_factory.mktemp("embedded")
    (folder / "text.txt").write_bytes(TEXT)

    def run(*options: str) -> pathlib.Path:
        path = folder / "".join(["vectors", *options])
        if not path.exists():
            given = [f"--savedmodel={savedmodel.path}", f"--input={folder / 'text.txt'}", f"--output={path}"]
            jobs.run("embed", [*given, *options])
        return path

    return run


def expected(savedmodel, layer: str, same_word: bool) -> list[Use]:
    """Returns the best use in each line, best first; each sentence embedded alone."""
    model = tf.saved_model.load(str(savedmodel.path)).signatures["default"]

    def vectors(sentence: str) -> np.ndarray:
        outputs = model(strings=tf.constant([sentence]))
        return (outputs["elmo"] if layer == "elmo" else outputs["layers"][:, int(layer)]).numpy()[0]

    words = [line.encode().split() for line in LINES]
    taken = [number for number, line in enumerate(words) if b"bank" in line or (line and not same_word)]
    lines = [(number, words[number], vectors(LINES[number])) for number in taken]
    return nearest_uses(Query(QUERY.encode().split(), 1), vectors(QUERY)[1], lines, 10, same_word)


def assert_same(found: list[Use], wanted: list[Use]) -> None:
    assert [use[1:] for use in found] == [use[1:] for use in wanted]
    similarities, others = ([use.similarity for use in uses] for uses in (found, wanted))
    np.testing.assert_allclose(similarities, others, **checks.TOLERANCE)


@pytest.mark.parametrize(("layer", "same_word"), [slow("elmo", False), slow("elmo", True), ("1", False)])
def test_uses_are_found_at_their_places_with_the_cosine_of_their_vectors(
    savedmodel, search, embedded, layer, same_word
):
    wanted = expected(savedmodel, layer, same_word)
    assert len(wanted) == (4 if same_word else 5)
    query, uses = search(layer=layer, same_word=same_word)
    assert (query.word, query.position) == (b"bank", 1)
    packed = search(bz2.compress(TEXT), "text.bz2", layer=layer, same_word=same_word)[1]
    read = search(layer=layer, same_word=same_word, vectors=str(embedded()))[1]
    for found in (uses, packed, read):
        assert_same(found, wanted)


def test_another_place_of_the_word_has_other_neighbors(search):
    first, second = (search(sentence="bank on the bank", position=place, count=1)[1] for place in (0, 3))
    assert first[0].similarity != second[0].similarity
    assert search(sentence="bank on the bank", count=1)[1] == first


def test_the_table_is_aligned_and_marks_the_word(search):
    query, uses = search(same_word=True)
    long = uses[0]._replace(line=12_345, similarity=-0.5)
    assert neighbors.as_table([uses[0], long]).splitlines() == [
        f" {uses[0].similarity:.3f}       0  the [bank] of the wide river was grey .",
        "-0.500  12,345  the [bank] of the wide river was grey .",
    ]
    found = json.loads(neighbors.as_json(query, uses))
    assert (found["word"], found["position"], found["sentence"]) == ("bank", 1, QUERY.split())
    assert found["uses"][0] == uses[0]._asdict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "missing"}, r"expected a file, folder or glob that matches files, found no such file"),
        ({"text": b"bank\nna\xefve bank\n"}, r"bytes that are not UTF-8 on line 2"),
        ({"text": b""}, r"text.txt: expected a sentence, other than the one given, found none$"),
        ({"text": QUERY.encode()}, r"text.txt: expected a sentence, other than the one given, found none$"),
        ({"word": "green", "same_word": True, "text": b"grey\n"}, r"text.txt: expected a line with the word 'green'"),
        ({"layer": "3"}, r"^layer: expected one of elmo, 0, 1, 2, found 3"),
        ({"layer": "-1"}, r"^layer: expected one of elmo, 0, 1, 2, found -1"),
        ({"vectors": "missing"}, r"expected an HDF5 file of .*, found none"),
    ],
)
def test_what_cannot_be_used_is_refused(search, change, message):
    with pytest.raises(InputError, match=message):
        search(**change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a bank\n", r"text.txt: expected the text of .*, found 2 tokens instead of 9 on line 0"),
        (TEXT + b"more\n", r"text.txt: expected the text of .*, found 1 tokens instead of 0 on line 8"),
        (TEXT[: TEXT.rindex(b"the\tbank")], r"text.txt: expected the 8 lines of .*, found 7$"),
    ],
)
def test_vectors_of_another_text_are_refused(search, embedded, text, message):
    with pytest.raises(InputError, match=message):
        search(text, vectors=str(embedded()))


def test_vectors_of_one_layer_or_the_mix_do_for_these(search, embedded):
    for layers, layer in (("top", "2"), ("1", "1"), ("mix", "elmo")):
        read = search(vectors=str(embedded(f"--layers={layers}")), layer=layer)[1]
        assert_same(read, search(layer=layer)[1])


@pytest.mark.parametrize(
    ("change", "layer", "message"),
    [
        ({"layers": "top"}, "1", "layer 1, found elmo-tf embed --layers top$"),
        ({"layers": 1}, "2", "layer 2, found elmo-tf embed --layers 1$"),
        ({"layers": "average"}, "elmo", "all layers, found elmo-tf embed --layers average$"),
        ({"pool": "mean"}, "1", "a vector for each token, found elmo-tf embed --pool mean$"),
        ({"savedmodel_sha256": "0"}, "1", "vectors of the model .*, found those of another$"),
        ({"identifiers": True}, "1", "vectors by the numbers of lines, found elmo-tf embed --id-column$"),
        ({"layers": "bottom"}, "1", "layers to be a valid value, "),
        ({"tokenizer": "mine"}, "1", "tokenizer to be "),
        ({"line": "page"}, "1", "line to be sentence or paragraph or part, found page$"),
        ({}, "1", "the text of .*, found 2 tokens instead of 0 on line 2 "),
    ],
)
def test_vectors_of_another_kind_or_without_a_line_are_refused(search, embedded, tmp_path, change, layer, message):
    path = shutil.copy(embedded(), tmp_path / "vectors")
    with h5py.File(path, "r+") as file:
        about = json.loads(file.attrs[vector_files.INFO_ATTRIBUTE])
        file.attrs[vector_files.INFO_ATTRIBUTE] = json.dumps(about | change)
        if not change:
            del file["2"]
    with pytest.raises(InputError, match=rf"(vectors|text\.txt): expected {message}"):
        search(vectors=str(path), layer=layer)
