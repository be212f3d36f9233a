"""Surprisal of words: the sums of `score`, states carried through a passage, ranks, and the command's table."""

import csv
import itertools
import math
import os
import unicodedata

import numpy as np
import pytest

import elmo_tf
from elmo_tf import cli, reference
from elmo_tf.errors import InputError
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests import checks, float64
from tests.helpers import run_python

pytestmark = pytest.mark.usefixtures("loaded_once")

PASSAGES = [["the cat sat", "zebras bark at the dog", "a dog"], ["cats sleep on the mat"]]
LINES = [*PASSAGES[0], "", " ", *PASSAGES[1], ""]
BIT = math.log(2)


@pytest.fixture(scope="module")
def model(workdir):
    return elmo_tf.load(workdir)


def by_sentence(words) -> list[list]:
    return [list(group) for _, group in itertools.groupby(words, lambda word: word[:2])]


def test_words_have_the_bits_that_score_gives_their_tokens(model):
    sentences = [*PASSAGES[0], *PASSAGES[1]]
    rows = by_sentence(model.surprisal(LINES))
    assert [[word.word for word in row] for row in rows] == [sentence.split() for sentence in sentences]
    assert [row[0][:2] for row in rows] == [(1, 1), (1, 2), (1, 3), (2, 1)]
    for row, score in zip(rows, model.score(sentences), strict=True):
        assert [word.known for word in row] == (~score.unknown).tolist()
        # The sentence boundaries are not words.
        assert sum(word.forward for word in row) == pytest.approx(-score.forward_log_probs[:-1].sum() / BIT, abs=1e-4)
        assert sum(word.backward for word in row) == pytest.approx(-score.backward_log_probs[1:].sum() / BIT, abs=1e-4)
        assert [word.both for word in row] == pytest.approx([word.forward + word.backward for word in row])


def carried(workdir, passage: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The probabilities of all words at each token, forward and backward, in float64, one token after the other."""
    opened = open_workdir(workdir)
    weights, sizes = float64.weights_of(checkpoints.restore(opened)[0]), opened.config.model
    bilm = reference.NumpyBiLM(sizes, weights, np.float64)
    states, sentences = bilm.zero_states(1), []
    for sentence in passage:
        tokens = [b"<S>", *sentence.encode().split(), b"</S>"]
        vectors = float64.char_cnn(weights, sizes.char_cnn, [float64.encode(token) for token in tokens])
        top = []
        for forward, backward in list(zip(vectors, vectors[::-1], strict=True))[:-1]:
            top.append(bilm.run(np.stack([forward, backward])[:, None], [1], states)[-1][:, 0])
        logits = np.stack(top, 1) @ weights["softmax/kernel"].T + weights["softmax/bias"]
        forward, backward = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        sentences.append((forward[:-1], backward[:-1][::-1]))
    return sentences


@pytest.mark.parametrize("context", ["sentence", "passage"])
def test_bits_and_ranks_are_those_of_a_full_softmax_after_the_states_of_the_sentence_before(model, workdir, context):
    vocabulary = open_workdir(workdir).vocabulary
    starts = PASSAGES if context == "passage" else [[sentence] for passage in PASSAGES for sentence in passage]
    expected = [sentence for passage in starts for sentence in carried(workdir, passage)]
    for row, (forward, backward) in zip(by_sentence(model.surprisal(LINES, context)), expected, strict=True):
        for word, before, after in zip(row, forward, backward, strict=True):
            (number,) = vocabulary.ids([word.word.encode()])
            assert word.forward == pytest.approx(-math.log2(before[number]), **tolerance())
            assert word.backward == pytest.approx(-math.log2(after[number]), **tolerance())
            assert word.rank == 1 + sum(before > before[number])


def tolerance() -> dict[str, float]:
    return {"rel": checks.TOLERANCE["rtol"], "abs": checks.TOLERANCE["atol"] / BIT}


def test_states_are_carried_in_both_directions_and_not_into_the_next_passage(model):
    apart, carried = (by_sentence(model.surprisal(LINES, context)) for context in ("sentence", "passage"))
    for direction in ("forward", "backward"):
        values = [[[getattr(word, direction) for word in row] for row in rows] for rows in (apart, carried)]
        changed = [alone != pytest.approx(in_passage, abs=1e-4) for alone, in_passage in zip(*values, strict=True)]
        assert changed == [False, True, True, False]


def test_punctuation_adds_its_bits_to_the_word_that_it_is_glued_to():
    english = elmo_tf.load("english")
    text = "“Hello,” she said; don't Zyqwxes go."
    rows = english.surprisal([text])
    assert [word.word for word in rows] == text.split()
    (score,) = english.score([text])
    assert score.tokens == ['"', "Hello", ",", '"', "she", "said", ";", "do", "n't", "Zyqwxes", "go", "."]
    parts = [slice(0, 4), slice(4, 5), slice(5, 7), slice(7, 9), slice(9, 10), slice(10, 12)]
    for word, part in zip(rows, parts, strict=True):
        assert word.forward == pytest.approx(-score.forward_log_probs[:-1][part].sum() / BIT, abs=1e-4)
        assert word.backward == pytest.approx(-score.backward_log_probs[1:][part].sum() / BIT, abs=1e-4)
    assert [word.known for word in rows] == [True, True, True, True, False, True]
    # The rank of Hello, not of the quotation mark.
    apart = english.surprisal(['" Hello , " she said ; do n\'t Zyqwxes go .'])
    assert [word.rank for word in rows] == [apart[index].rank for index in (1, 4, 5, 7, 9, 10)]
    assert english.surprisal(["Apples, pears"]) == english.surprisal([["Apples,", "pears"]])


@pytest.mark.parametrize("tokenizer", ["whitespace", "penn", "characters", "unicode"])
@pytest.mark.parametrize(
    "text",
    ["«Он, сказал», — ok!", "שלום, עולם", "「猫が座る。」 猫", "यह घर है।", unicodedata.normalize("NFD", "Äöü, naïve!")],
)
def test_words_of_any_alphabet_come_back_as_written_and_share_all_bits(workdir, tokenizer, text):
    model = elmo_tf.load(workdir, tokenizer, engine="numpy")
    rows, (score,) = model.surprisal([f"{text}\n"]), model.score([text])
    assert [word.word for word in rows] == text.split()
    assert sum(word.forward for word in rows) == pytest.approx(-score.forward_log_probs[:-1].sum() / BIT, abs=1e-4)
    assert sum(word.backward for word in rows) == pytest.approx(-score.backward_log_probs[1:].sum() / BIT, abs=1e-4)


def test_a_word_without_tokens_has_no_bits_and_no_rank():
    (first, second) = elmo_tf.load("english").surprisal(["\x01 Yes"])
    assert first == (1, 1, "\x01", 0, 0, 0, 0, False)
    assert second.forward > 0


def test_a_text_that_is_no_list_of_lines_another_context_and_a_model_without_softmax_are_refused(model, savedmodel):
    with pytest.raises(InputError, match="a list of texts"):
        model.surprisal("the cat")
    with pytest.raises(InputError, match="context: expected one of sentence, passage, found 'text'"):
        model.surprisal(["the cat"], "text")
    with pytest.raises(InputError, match="this model has no softmax; use a workdir"):
        elmo_tf.load(savedmodel.path).surprisal(["the cat"])
    assert model.surprisal([]) == model.surprisal(["", "\n"]) == []


def test_the_command_writes_what_the_method_returns(model, workdir, tmp_path, capsys):
    text, output = tmp_path / "passages.txt", tmp_path / "words.tsv"
    lines = ['the "cat" sat', "", "a dog's bark\tbarked"]
    text.write_text("\ufeff" + "\r\n".join(lines), "utf-8")
    command = ["surprisal", "--model", os.fspath(workdir), "--input", str(text), "--output", str(output)]
    assert cli.main([*command, "--context", "passage"]) == 0
    assert capsys.readouterr().out == f"{output}: 7 words, 3 not in the vocabulary\n"
    with open(output, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, dialect="excel-tab"))
    expected = model.surprisal(lines, "passage")
    assert [row["word"] for row in table] == ["the", '"cat"', "sat", "a", "dog's", "bark", "barked"]
    for row, word in zip(table, expected, strict=True):
        assert list(row) == list(word._fields)
        assert (row["passage"], row["sentence"], row["rank"]) == tuple(
            map(str, (word.passage, word.sentence, word.rank))
        )
        assert row["known"] == str(word.known).lower()
        for name in ("forward", "backward", "both"):
            assert float(row[name]) == pytest.approx(getattr(word, name), abs=1e-3)


def test_the_command_refuses_what_it_cannot_read_or_write_and_leaves_no_file(workdir, savedmodel, tmp_path, capsys):
    text, empty, latin, used = (tmp_path / name for name in ("text", "empty", "latin", "used"))
    text.write_text("the cat\n")
    empty.write_text("\n\n")
    latin.write_bytes(b"the caf\xe9\n")
    used.write_text("mine")
    for link, target in (("to_file", used), ("to_nothing", tmp_path / "nothing")):
        (tmp_path / link).symlink_to(target)
    kept = sorted(tmp_path.iterdir())
    for model, given, output, problem in [
        (workdir, text, "used", "used: already exists; name a new file"),
        (workdir, text, "to_file", "to_file: already exists; name a new file"),
        (workdir, text, "to_nothing", "to_nothing: a link to a path that does not exist; it is not followed"),
        (workdir, text, "none/new", f"none/new: there is no folder {tmp_path}/none"),
        (workdir, empty, "new", "empty: no words"),
        (workdir, latin, "new", "latin, line 1: not UTF-8 (invalid continuation byte)"),
        (workdir, tmp_path / "absent", "new", "absent: no such file"),
        (savedmodel.path, text, "new", "this model has no softmax; use a workdir, or an export made with --softmax"),
    ]:
        command = ["--model", os.fspath(model), "--input", str(given), "--output", str(tmp_path / output)]
        assert cli.main(["surprisal", *command]) == 1
        assert problem in capsys.readouterr().err.splitlines()[-1]
        assert sorted(tmp_path.iterdir()) == kept
    assert used.read_text() == "mine"


def test_the_command_and_the_method_need_no_tensorflow(tmp_path):
    (tmp_path / "text").write_text("The bank lends\nmoney again .\n")
    code = "import sys, elmo_tf.cli\nassert elmo_tf.cli.main(sys.argv[1:]) == 0\nassert 'tensorflow' not in sys.modules"
    run_python("-c", code, "surprisal", "--input", tmp_path / "text", "--output", tmp_path / "words.tsv")
    assert len((tmp_path / "words.tsv").read_text().splitlines()) == 1 + 6
