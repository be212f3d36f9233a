"""The nearest uses of words: in a text on disk, and among given vectors."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import bz2
import json
import random

import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.cli import main
from elmo_tf.errors import InputError
from elmo_tf.probes import neighbors
from elmo_tf.probes.neighbors import Use, nearest_uses
from tests import checks
from tests.helpers import slow

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCE = "the bank of the wide river was green ."
TOKENS = SENTENCE.encode().split()
TWIN = "the bank of the wide river was grey ."
LINES = [TWIN, "", "a bank", "bank bank on the bank", SENTENCE, "no word like it", "naïve bank 日本語"]
LINES += [TWIN.replace(" ", "\t")]
TEXT = "".join(line + "\n" for line in LINES).encode()


@pytest.fixture
def find(savedmodel, tmp_path):
    """Searches a text, `find(TEXT, layers=1)`; returns the uses."""

    def run(
        text: bytes = TEXT, name: str = "text.txt", sentence: str = SENTENCE, word: bytes = b"bank", **options
    ) -> list[Use]:
        (tmp_path / name).write_bytes(text)
        return neighbors.search(elmo_tf.load(savedmodel.path), tmp_path / name, sentence, word, **options)

    return run


@pytest.fixture(scope="module")
def model(savedmodel):
    return tf.saved_model.load(str(savedmodel.path)).signatures["default"]


def expected(model, layers: str | int, same_word: bool) -> list[Use]:
    """Returns the best use in each line, best first; each sentence embedded alone."""

    def vectors(sentence: str) -> np.ndarray:
        outputs = model(strings=tf.constant([sentence]))
        return (outputs["elmo"] if layers == "mix" else outputs["layers"][:, layers]).numpy()[0]

    words = [line.encode().split() for line in LINES]
    taken = [number for number, line in enumerate(words) if b"bank" in line or (line and not same_word)]
    lines = [(number + 1, words[number], vectors(LINES[number])) for number in taken]
    return nearest_uses(TOKENS, vectors(SENTENCE)[1], lines, 10, b"bank" if same_word else None)


@pytest.mark.parametrize(("layers", "same_word"), [slow("mix", False), slow("mix", True), (1, False)])
def test_uses_are_found_at_their_places_with_the_cosine_of_their_vectors(model, find, layers, same_word):
    wanted = expected(model, layers, same_word)
    assert len(wanted) == (4 if same_word else 5)
    options = {"layers": layers, "same_word": same_word}
    for results in (find(**options), find(bz2.compress(TEXT), "text.bz2", **options)):
        assert [use[1:] for use in results] == [use[1:] for use in wanted]
        similarities, others = ([use.similarity for use in uses] for uses in (results, wanted))
        np.testing.assert_allclose(similarities, others, **checks.TOLERANCE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "text.zst"}, r"text.zst: cannot be decompressed \("),
        ({"text": b""}, r"text.txt: the file is empty$"),
        ({"text": SENTENCE.encode()}, r"text.txt: it has no sentence other than the given one$"),
        ({"text": b"grey\n", "same_word": True}, r"text.txt: it has no other line with the word 'bank'$"),
        ({"text": b"bank\n\xff\n"}, r"text.txt, line 2: not UTF-8 "),
        ({"word": b"sea"}, r"^sentence: it does not contain the word 'sea': 'the bank of"),
        (
            {"sentence": "the bank of The river", "word": b"the"},
            r"^sentence: it has the word 'the' 2 times; give one that has it once: 'the bank of The river'$",
        ),
        ({"count": 0}, r"^count: expected a whole number, at least 1, found 0$"),
        ({"word": b"wide river"}, r"^word: the tokenizer whitespace splits it: 'wide river'"),
        ({"layers": 3}, r"^layers: expected one of .*, or 0 to 2, found 3"),
        ({"layers": -1}, r"^layers: expected one of .*, or 0 to 2, found -1"),
        ({"layers": "all"}, r"^layers: expected one vector per token: mix, .*found all"),
    ],
)
def test_what_cannot_be_used_is_refused(find, change, message):
    with pytest.raises(InputError, match=message):
        find(**change)


def drawn_text(count: int, seed: int = 0) -> list[tuple[int, list[bytes], np.ndarray]]:
    """Returns lines of random words with random vectors; some lines come twice."""
    choose, draw = random.Random(seed), np.random.default_rng(seed)
    lines = []
    for number in range(count):
        if number % 5 == 4:
            _, words, vectors = lines[number // 2]
        else:
            words = [choose.choice([b"bank", b"money", b"na\xc3\xafve"]) for _ in range(choose.randrange(7))]
            words.append(b"%d" % number)
            vectors = draw.normal(size=(len(words), 4)).astype(np.float32)
        lines.append((number, words, vectors))
    return lines


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    first, second = first.astype(np.float64), second.astype(np.float64)
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


@pytest.mark.parametrize("same_word", [False, True])
@pytest.mark.parametrize("count", [1, 7, 500])
def test_the_best_use_of_each_sentence_is_found_best_first(same_word, count):
    lines, target = drawn_text(200), np.array([1, -2, 0.5, 3], np.float32)
    uses = nearest_uses(TOKENS, target, lines, count, b"bank" if same_word else None)
    mean = np.concatenate([vectors for _, _, vectors in lines]).astype(np.float64).mean(axis=0)
    best = {}
    for number, words, vectors in lines:
        positions = [position for position, word in enumerate(words) if word == b"bank" or not same_word]
        if positions and tuple(words) not in best:
            position = max(positions, key=lambda position: cosine(vectors[position] - mean, target - mean))
            best[tuple(words)] = (-cosine(vectors[position] - mean, target - mean), number, list(words), position)
    expected = sorted(best.values())[:count]
    assert [(use.line, [word.encode() for word in use.sentence], use.position) for use in uses] == [
        use[1:] for use in expected
    ]
    np.testing.assert_allclose([use.similarity for use in uses], [-use[0] for use in expected], **checks.FEW)


@pytest.mark.parametrize("same_word", [False, True])
def test_upper_and_lower_case_are_one_word(find, same_word):
    text = "A Bank\nno use\nthe BANK and a bank\nÉtude bank".encode()
    lines = [use.line for use in find(text, word=b"BANK", same_word=same_word)]
    assert sorted(lines) == ([1, 3, 4] if same_word else [1, 2, 3, 4])
    (use,) = find("Étude a".encode(), sentence="the étude", word="ÉTUDE".encode(), same_word=True)
    assert (use.line, use.sentence, use.position) == (1, ["Étude", "a"], 0)
    for word, other in (("STRASSE", "Straße"), ("İstanbul", "istanbul"), ("ışık", "Işık")):
        (use,) = find(f"a {other}\nkiz".encode(), sentence=f"b {word}", word=word.encode(), same_word=True)
        assert (use.line, use.position) == (1, 1)


def test_the_mean_is_of_the_start_of_a_long_text():
    vectors = np.array([[1, 0], [-1, 0]] * (neighbors.MEAN_TOKENS // 2), np.float32)
    lines = [(0, [b"a"] * len(vectors), vectors), (1, [b"b"], np.array([[0, 1e9]], np.float32))]
    uses = nearest_uses(TOKENS, np.array([0, 1], np.float32), iter(lines))
    assert [(use.similarity, use.line) for use in uses] == [(1, 1), (0, 0)]


def test_the_querys_own_sentence_is_left_out_and_the_mean_itself_is_no_error():
    ones = np.ones((1, 4), np.float32)
    lines = [(0, TOKENS, np.zeros((8, 4), np.float32)), (2, [b"a"], ones), (3, [b"b"], -ones), (4, [b"c"], 0 * ones)]
    uses = nearest_uses(TOKENS, ones[0], lines)
    assert [(use.similarity, use.line) for use in uses] == [(1, 2), (0, 4), (-1, 3)]


def test_neighbors_prints_the_nearest_words_of_a_file_of_vectors_as_well(tmp_path, monkeypatch, capsys):
    path = tmp_path / "vectors.txt"
    path.write_text("play 1 0\ngame 2 0.2\nactor 1 1\nstone -1 0\n")
    assert [name for name, _ in neighbors.nearest_words(path, "Play", 2)] == ["game", "actor"]
    uses = [Use(0.5, 3, ["to", "play"], 1), Use(-0.5, 12_345, ["play", "it"], 0)]
    monkeypatch.setattr(neighbors, "search", lambda *_, **__: uses)
    command = f"neighbors --model english --input t --word play --sentence play --glove {path}".split()
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "word vectors: game 0.995, actor 0.707, stone -1.000",
        " 0.500       3  to [play]",
        "-0.500  12,345  [play] it",
    ]
    assert main([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert [name for name, _ in output["words"]] == ["game", "actor", "stone"]
    assert output["uses"][0]["line"] == 3
    with pytest.raises(InputError, match=r"vectors.txt: it has no vector for 'absent'$"):
        neighbors.nearest_words(path, "absent")
