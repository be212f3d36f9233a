"""The nearest uses of a word: which there are, how near, in what order, and what is refused."""

import os

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import neighbors
from elmo_tf.errors import InputError
from elmo_tf.neighbors import nearest_uses

QUERY = "the bank of the wide river was green ."
# The same up to its last word, far from "bank".
TWIN = "the bank of the wide river was grey ."
OTHERS = ["a bank", "bank bank on the bank", "no word like it", "Bank and banks", "naïve bank 日本語"]
MANY = [f"{'so ' * (number % 7)}many{number} bank lines" for number in range(40)]  # more than a batch


@pytest.fixture
def text(tmp_path):
    """Writes lines as a file; returns its path."""

    def write(lines, end="\n"):
        path = tmp_path / "text.txt"
        path.write_bytes("".join(line + end for line in lines).encode())
        return path

    return write


def expected_uses(savedmodel, lines, word):
    """Returns every use as `(similarity, tokens, position)`, best first, each sentence embedded alone, in float64."""
    model = tf.saved_model.load(str(savedmodel.path))

    def vectors(sentence):
        return model.signatures["default"](strings=tf.constant([sentence]))["elmo"].numpy()[0].astype(np.float64)

    target = vectors(QUERY)[QUERY.split().index(word)]
    uses = []
    for line in lines:
        tokens = line.split()
        for position, (token, vector) in enumerate(zip(tokens, vectors(line), strict=True)):
            if token == word:
                cosine = vector @ target / np.sqrt((vector @ vector) * (target @ target))
                uses.append((cosine, tokens, position))
    return sorted(uses, key=lambda use: -use[0])


def test_every_use_is_found_at_its_place_with_the_cosine_of_its_vector_best_first(savedmodel, text):
    lines = [*MANY, *OTHERS, TWIN]
    found = nearest_uses(savedmodel.path, text(lines), "bank", QUERY, count=100)
    expected = expected_uses(savedmodel, lines, "bank")
    assert len(found) == len(expected) == 40 + 1 + 3 + 1 + 1
    assert (found[0].sentence, found[0].position) == (TWIN.split(), 1)
    similarities = [use.similarity for use in found]
    assert similarities == sorted(similarities, reverse=True)
    assert -1 <= similarities[-1] < similarities[1] < similarities[0] <= 1
    np.testing.assert_allclose(similarities, [use[0] for use in expected], rtol=0, atol=1e-5)
    own = {(" ".join(use.sentence), use.position): use.similarity for use in found}
    assert len(own) == len(found)
    for cosine, tokens, position in expected:
        assert own[" ".join(tokens), position] == pytest.approx(cosine, abs=1e-5)
    assert {use.position for use in found if use.sentence == OTHERS[1].split()} == {0, 1, 4}


def test_no_more_uses_than_asked_for_and_these_are_the_best(savedmodel, text):
    path = text([*OTHERS, TWIN])
    every = nearest_uses(savedmodel.path, path, "bank", QUERY, count=100)
    assert nearest_uses(savedmodel.path, path, "bank", QUERY, count=2) == every[:2]


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_the_sentences_own_line_is_left_out_and_a_repeated_one_comes_once_however_spaced(savedmodel, text, end):
    lines = [
        QUERY,
        f"  {QUERY.replace(' ', '  ')}",
        TWIN,
        QUERY.replace(" ", "\t"),
        TWIN.replace(" ", "\t"),
        f" {TWIN}",
    ]
    found = nearest_uses(savedmodel.path, text(lines, end), "bank", QUERY)
    assert [(use.sentence, use.position) for use in found] == [(TWIN.split(), 1)]


def test_words_are_between_ascii_white_space_and_lines_end_at_line_feeds(savedmodel, text):
    found = nearest_uses(savedmodel.path, text(["a\rbank\x0bhere", "no\u00a0bank", "no\u2028bank"]), "bank", QUERY)
    assert [(use.sentence, use.position) for use in found] == [(["a", "bank", "here"], 1)]


def test_of_a_word_twice_in_the_sentence_the_first_use_counts(savedmodel, text):
    path = text([TWIN, *OTHERS])
    twice = nearest_uses(savedmodel.path, path, "the", "the bank of the river")
    vectors = tf.saved_model.load(str(savedmodel.path)).signatures["default"]
    query, twin = (vectors(strings=tf.constant([one]))["elmo"].numpy()[0] for one in ("the bank of the river", TWIN))
    best = {use.position: use.similarity for use in twice if use.sentence == TWIN.split()}
    assert best[0] == pytest.approx(neighbors._cosine(query[0], twin[0]), abs=1e-5)
    assert best[3] == pytest.approx(neighbors._cosine(query[0], twin[3]), abs=1e-5)


def foreign_model(folder):
    """A SavedModel of somebody else."""
    module = tf.Module()
    module.double = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec((), tf.float32)])
    tf.saved_model.save(module, str(folder))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"savedmodel": "missing"}, "--savedmodel: expected a folder with saved_model.pb, found none: .*missing"),
        ({"savedmodel": "above"}, "--savedmodel: expected a folder with saved_model.pb, found none: .*micro"),
        (
            {"savedmodel": "foreign"},
            r"--savedmodel: expected a model of `elmo-tf export` .*, found \['serving_default'\]: .*foreign",
        ),
        ({"savedmodel": "damaged"}, "--savedmodel: expected an intact SavedModel, found .*damaged"),
        ({"text": "missing"}, "--text: expected a file, found No such file or directory: .*missing"),
        ({"text": "."}, "--text: expected a file, found Is a directory: .*"),
        ({"text": "latin1"}, "--text: expected UTF-8, found .* in .*latin1"),
        ({"text": "empty"}, "--text: expected a line with the word 'bank', found none in .*empty"),
        ({"word": "the bank"}, "--sentence: expected the word 'the bank' in it, found 'the bank of "),
        ({"word": ""}, "--sentence: expected the word '' in it"),
        ({"word": "Bank"}, "--sentence: expected the word 'Bank' in it"),
        ({"word": "b\udcff"}, "--sentence: expected the word 'b\\\\udcff' in it"),
        ({"sentence": ""}, "--sentence: expected the word 'bank' in it, found ''"),
        ({"sentence": "zebra", "word": "zebra"}, "--text: expected a line with the word 'zebra', found none"),
    ],
)
def test_what_cannot_be_used_is_refused(savedmodel, text, tmp_path, change, message):
    (tmp_path / "latin1").write_bytes("bank\nna\u00efve bank\n".encode("latin-1"))
    (tmp_path / "empty").touch()
    places = {"above": savedmodel.path.parent} | {name: tmp_path / name for name in ("missing", "foreign", "damaged")}
    if change.get("savedmodel") == "foreign":
        foreign_model(places["foreign"])
    if change.get("savedmodel") == "damaged":
        os.makedirs(places["damaged"])
        (places["damaged"] / "saved_model.pb").write_bytes((savedmodel.path / "saved_model.pb").read_bytes()[:999])
    arguments = {"savedmodel": savedmodel.path, "text": text([TWIN]), "word": "bank", "sentence": QUERY} | change
    arguments["savedmodel"] = places.get(arguments["savedmodel"], arguments["savedmodel"])
    arguments["text"] = tmp_path / arguments["text"]
    with pytest.raises(InputError, match=f"(?s)^{message}"):
        nearest_uses(**arguments)
