"""Minimal pairs, by the real command."""

import json
import os

import pytest

import elmo_tf
from elmo_tf import cli
from elmo_tf.errors import InputError
from elmo_tf.probes.blimp import MinimalPair, read_minimal_pairs

pytestmark = pytest.mark.usefixtures("loaded_once")
PAIRS = [
    ("the dog barked.", "the dog sat.", "verbs", "s-selection"),
    ("a cat sat.", "sat a cat.", "order", "word_order"),
    ("a cat sat.", "a cat sat.", "order", "word_order"),  # a tie
    ("the zebra sat.", "the gnu sat.", "unknown", "word_order"),  # the softmax sees the same unknown word
]


@pytest.fixture
def data(tmp_path):
    keys = ("sentence_good", "sentence_bad", "UID", "linguistics_term")
    lines = [json.dumps(dict(zip(keys, pair, strict=True)) | {"pairID": "0"}) for pair in PAIRS]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_accuracies_are_those_of_the_scores_by_paradigm_and_by_term(workdir, data, tmp_path, capsys):
    arguments = ["--model", os.fspath(workdir), "--data", str(data), "--output", str(tmp_path / "out")]
    assert cli.main(["probe", "blimp", *arguments, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    model = elmo_tf.load(workdir)

    def wins(measure, rounding) -> list[float]:
        split = [[text.replace(".", " .") for text in pair[:2]] for pair in PAIRS]
        scores = [[measure(score) for score in model.score(pair)] for pair in split]
        return [0.5 if abs(good - bad) < rounding else float(good > bad) for good, bad in scores]

    # Rounding: 1e-5 nats of each prediction, of which a sentence has up to 5 in each direction.
    for name, measure, rounding in [
        ("both", lambda s: s.forward + s.backward, 2 * 2 * 5e-5),
        ("forward/token", lambda s: s.forward / len(s[1]), 2e-5),
    ]:
        expected = wins(measure, rounding)
        order = (expected[1] + expected[2]) / 2
        assert expected[2] == 0.5
        assert results["paradigms"]["order"][name] == order
        assert results["scores"]["word_order"][name] == pytest.approx((order + expected[3]) / 2)
        assert results["scores"]["all"][name] == pytest.approx((expected[0] + order + expected[3]) / 3)
        if name == "both":  # whether two unknown words are a tie depends on how they were trained
            assert results["ties"] == expected.count(0.5) < 3
    assert (results["pairs"], results["num_paradigms"]) == (4, 3)
    assert set(results["scores"]) == {"all", "argument_structure", "word_order"}
    assert results["pairs_that_differ_in_unknown_words_alone"] == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"blimp.json", "blimp.png", "blimp.txt"}


def test_a_line_that_is_no_pair_is_named(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"sentence_good": "a", "sentence_bad": "b", "UID": "c", "linguistics_term": "d"}\n{"UID": 3}\n')
    message = "it has 'UID', but no sentence_good, and no sentence_bad, and no linguistics_term"
    with pytest.raises(InputError, match=rf"pairs\.jsonl, line 2: {message}$"):
        read_minimal_pairs(path)
    path.write_text('{"sentence_good": "a", "sentence_bad": "b", "UID": 3, "linguistics_term": "d"}\n')
    with pytest.raises(InputError, match=r"pairs\.jsonl, line 1: expected UID to be str, found 3"):
        read_minimal_pairs(path)


def test_help_names_the_keys_of_a_pair(capsys):
    with pytest.raises(SystemExit):
        cli.main(["probe", "blimp", "--help"])
    printed = capsys.readouterr().out
    assert all(key in printed for key in MinimalPair.__struct_fields__)
