"""The small benchmark programs: what they compute and print."""

import collections
import json
import sys

import numpy as np
import pytest

from benchmarks import encoder_scores, encoders, kills, learning, noise, precision, probes, splitting, zipf_text
from elmo_tf.annotated.columns import Tagged
from elmo_tf.embedder import Encoded
from tests.helpers import write_records


def test_a_recipe_is_a_run_for_each_seed_and_a_line_with_their_mean(tmp_path, monkeypatch, capsys):
    commands = []

    def result(name, command, output, resumes):
        commands.append(command[-1])
        return {"perplexity": 90.0 + 2 * len(commands), "cpu_seconds": 100 * len(commands)}

    monkeypatch.setattr(probes, "result", result)
    monkeypatch.setattr(learning, "preprocess", lambda _: learning.Records(tmp_path / "records", tmp_path / "heldout"))
    recipes = ["--recipe", "preset", "--recipe", "less --steps 7 --set train.dropout_rate=0"]
    texts = ["--train", "train.txt", "--heldout", "valid.txt"]
    learning.main([*texts, "--output", str(tmp_path / "out"), "--seeds", "0", "1", *recipes])
    assert len(commands) == 4 and "--seed 1 --steps 3000 && " in commands[1]
    # If an option is given twice, the last one counts.
    assert "--seed 0 --steps 3000 --steps 7 --set train.dropout_rate=0 && " in commands[2]
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [
        "recipe  perplexity  by seed    CPU seconds",
        "preset  93.0        92.0 94.0  150",
        "less    97.0        96.0 98.0  350",
    ]
    assert [run["recipe"] for run in json.loads(last)] == ["preset", "preset", "less", "less"]


CONLLU = """# text = They don't know the well-known e-mail a@b.org now.
1\tThey\tthey
2-3\tdon't\t_
2\tdo\tdo
3\tn't\tnot
4\tknow\tknow
5\tthe\tthe
6\twell\twell
7\t-\t-
8\tknown\tknown
9\te-mail\te-mail
10\ta@b.org\ta@b.org
11\tnow\tnow
12\t.\t.
"""


def test_words_of_annotators_are_compared_by_kind_of_difference(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.conllu").write_text(CONLLU)
    monkeypatch.setattr(sys, "argv", ["splitting.py", "--data", str(tmp_path / "text.conllu")])
    splitting.main()
    out = capsys.readouterr().out
    # 8 of our 14 and their 12 words are the same.
    assert out.startswith("1 sentences: F1 of words 61.54%, the same words 0.00%\n")
    assert "1  hyphens: 'well-known' / 'well - known'" in out
    assert "1  addresses and file names: 'a @ b . org' / 'a@b.org'" in out


def test_lines_that_change_are_counted(tmp_path, monkeypatch, capsys):
    (tmp_path / "text").write_text("He did n't .\nChapter I.\n")
    monkeypatch.setattr(sys, "argv", ["splitting.py", "--input", str(tmp_path / "text")])
    splitting.main()
    assert capsys.readouterr().out.startswith("1 of 2 lines change\n")


def test_the_lowest_cosine_of_each_layer_is_that_of_its_worst_token():
    exact, rounded = [[1.0, 0.0], [0.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]]
    texts = [Encoded(["a", "b"], np.array([exact, exact], np.float32)), Encoded([], np.zeros((2, 0, 2), np.float32))]
    others = [Encoded(["a", "b"], np.array([exact, rounded], np.float32)), texts[1]]
    np.testing.assert_allclose(precision.lowest_cosines(texts, others), [1.0, 0.6])


def encode(sentences):
    """An encoder of two layers, the length of a token and its negative, that answers in another order."""
    for number in reversed(range(len(sentences))):
        lengths = np.array([[len(token)] for token in sentences[number]], np.float32)
        yield number, np.stack([lengths, -lengths])


def test_a_span_has_the_mean_of_its_tokens_and_sentences_without_spans_are_not_encoded():
    sentences = [["a", "bcd", "ef"], ["not", "asked"], ["ghij"]]
    vectors = encoder_scores.spans_of(encode, sentences, [[(0, 2), (2, 3)], [], [(0, 1)]])
    np.testing.assert_array_equal(vectors[..., 0], [[2, -2], [2, -2], [4, -4]])


def test_entities_are_counted_by_their_spans_and_kinds():
    sentences = [Tagged(["a", "b", "c"], ["B-PER", "I-PER", "O"]), Tagged(["d", "e"], ["B-LOC", "B-ORG"])]
    # One entity is right, one has another kind, and one begins with an I-.
    assert encoder_scores.entity_f1(sentences, ["B-PER", "I-PER", "I-LOC", "B-PER", "O"]) == 2 * 1 / (3 + 3)
    assert encoder_scores.entity_f1(sentences, ["B-PER", "I-PER", "O", "B-LOC", "I-ORG"]) == 1


def test_words_of_glove_are_found_by_their_lower_case(tmp_path):
    (tmp_path / "glove_small").mkdir()
    (tmp_path / encoders._GLOVE).write_text("the 1 2\ncat 3 4\n")
    ((number, vectors),) = encoders.glove(tmp_path)[0]([["The", "CAT", "dog"]])
    assert number == 0
    np.testing.assert_array_equal(vectors, [[[1, 2], [3, 4], [0, 0]]])


def test_an_error_is_one_of_four_kinds_and_changes_the_word():
    random, kinds = np.random.default_rng(0), collections.Counter()
    for _ in range(400):
        word = noise.misspelled("Word", random)
        assert word != "Word"
        if len(word) == 4:
            kinds["swapped" if sorted(word) == sorted("Word") else "neighbor"] += 1
        else:
            kinds["dropped" if len(word) == 3 else "doubled"] += 1
    assert min(kinds.values()) > 50 and len(kinds) == 4
    assert {noise.misspelled("a", random) for _ in range(100)} == {"aa", "s"}


def test_a_share_of_the_words_has_errors_the_same_ones_among_more():
    sentences = [Tagged(["The", "3", "dogs", "bark", "."], ["D", "N", "N", "V", "P"])] * 10
    changed, chosen = zip(*(noise.with_errors(sentences, percent, 0) for percent in (0, 10, 20)), strict=True)
    assert [int(part.sum()) for part in chosen] == [0, 3, 6]
    assert (chosen[1] <= chosen[2]).all()
    tokens = [[token for sentence in part for token in sentence.tokens] for part in (sentences, *changed)]
    for words, part in zip(tokens[1:], chosen, strict=True):
        assert [a != b for a, b in zip(tokens[0], words, strict=True)] == part.tolist()
    assert all(tokens[2][n] == tokens[3][n] for n in np.flatnonzero(chosen[1]))
    assert [sentence.labels for sentence in changed[2]] == [sentence.labels for sentence in sentences]


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_run_that_is_killed_at_random_moments_ends_with_the_same_bits(tmp_path, replicas):
    write_records(tmp_path / "records", zipf_text.sentences(200, 5000), zipf_text.words(200))
    result = kills.run(tmp_path, kills=5, replicas=replicas, steps=120, seed=replicas)
    assert result["different"] == []
    assert result["kills"] > 0
