"""What a language model finds likely: scores of sentences, and words for a place."""

import concurrent.futures
import json
import math
import os

import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import api, cli, embedder, engines, sources
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import verification
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests import checks, float64
from tests.helpers import slow

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = ["the cat sat on the mat", "zebras bark", "", "a dog", " ".join(["the dog sat"] * 200)]


@pytest.fixture(scope="module")
def model(workdir):
    return elmo_tf.load(workdir)


def log_probs(workdir, sentences: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The scores of sentences in NumPy float64."""
    opened = open_workdir(workdir)
    weights = float64.weights_of(checkpoints.restore(opened)[0])
    scores = []
    for sentence in sentences:
        tokens = [b"<S>", *sentence.encode().split(), b"</S>"]
        ids, chars = opened.vocabulary.ids(tokens), [float64.encode(token) for token in tokens]
        forward, backward = (
            float64.direction_losses(weights, opened.config.model, number, chars[::step][:-1], ids[::step][1:])
            for number, step in enumerate((1, -1))
        )
        scores.append((-forward, -backward[::-1]))
    return scores


def test_scores_are_those_of_a_reference_in_float64(model, workdir):
    expected = log_probs(workdir, SENTENCES)
    for sentence, score, (forward, backward) in zip(SENTENCES, model.score(SENTENCES), expected, strict=True):
        assert score.tokens == sentence.split()
        np.testing.assert_allclose(score.forward_log_probs, forward, **checks.TOLERANCE)
        np.testing.assert_allclose(score.backward_log_probs, backward, **checks.TOLERANCE)
        assert score.total == pytest.approx(forward.sum() + backward.sum(), rel=1e-5)
        assert score.mean == pytest.approx(np.mean([*forward, *backward]), rel=1e-5)
        assert score.unknown.tolist() == [token in ("zebras", "bark") for token in score.tokens]


def test_nothing_and_unknown_words_alone_have_scores(model):
    assert model.score([]) == []
    unknown, *empty = model.score(["zebras", "", " \t", []])
    assert (unknown.unknown.tolist(), unknown.tokens) == ([True], ["zebras"])
    assert math.isfinite(unknown.mean) and unknown.mean < 0
    assert [score.tokens for score in empty] == [[], [], []]
    for score in empty:
        assert (score.forward_log_probs.shape, score.backward_log_probs.shape, score.unknown.shape) == (
            (1,),
            (1,),
            (0,),
        )
        assert score.total == pytest.approx(empty[0].total, rel=1e-6)


def test_threads_that_score_at_once_from_the_start_get_the_same_and_read_the_softmax_once(model, workdir, monkeypatch):
    made, read = [], sources.Workdir.softmax
    monkeypatch.setattr(sources.Workdir, "softmax", lambda source: made.append(0) or read(source))
    expected = [score.total for score in model.score(SENTENCES)]
    for engine in ("numpy", "tensorflow"):
        made.clear()
        fresh = embedder.Embedder(model.source)
        fresh._engine = engines.make.__wrapped__(model.source, engine)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for scores in threads.map(fresh.score, [SENTENCES] * 8):
                assert [score.total for score in scores] == pytest.approx(expected, rel=1e-5)
        assert len(made) == 1


def test_words_are_ranked_by_both_directions_over_their_own_probability(model, workdir):
    vocabulary = open_workdir(workdir).vocabulary
    words = [token.decode() for token in vocabulary.tokens[3:]]
    sums = []
    for rank, word in enumerate(words, 3):
        (score,) = model.score([f"the {word} sat"])
        zipf = math.log(math.log((rank + 2) / (rank + 1)))
        sums.append(float(score.forward_log_probs[1] + score.backward_log_probs[2]) - zipf)
    filled = model.fill("the [MASK] sat", top=len(words))
    assert [candidate.token for candidate in filled[:3]] == [words[index] for index in np.argsort(sums)[::-1][:3]]
    assert sum(candidate.score for candidate in filled) == pytest.approx(1)
    assert filled[0].sequence == f"the {filled[0].token} sat"
    assert filled[0].score / filled[1].score == pytest.approx(math.exp(np.diff(np.sort(sums)[-2:])[0]), rel=1e-4)
    assert model.fill("the cat sat", word="cat", top=2) == model.fill(["the", "[MASK]", "sat"], top=2) == filled[:2]


@pytest.mark.parametrize(("text", "word"), [("no place", None), ("[MASK] [MASK]", None), ("the cat the", "the")])
def test_a_sentence_without_exactly_one_mask_is_refused(model, text, word):
    with pytest.raises(InputError, match=r"text: the token .* occurs \d times in the sentence; it must occur once"):
        model.fill(text, word=word)


@pytest.mark.parametrize("top", [0, 2.5, "3"])
def test_the_number_of_words_is_checked(model, top):
    with pytest.raises(InputError, match=r"^top: expected a whole number, at least 1, found "):
        model.fill("a [MASK]", top)


@pytest.mark.parametrize("verified", [False, slow(True)])
def test_an_export_with_the_softmax_scores_with_tensorflow_alone(model, workdir, tmp_path, monkeypatch, verified):
    if not verified:
        monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    path = api.export(workdir, tmp_path / "scored", softmax=True)
    (expected, unknown, empty) = model.score(SENTENCES[:3])
    outputs = {
        k: v.numpy() for k, v in tf.saved_model.load(str(path)).signatures["score"](tf.constant(SENTENCES[:3])).items()
    }
    assert outputs["log_probs"].shape == (3, 2, 8)
    np.testing.assert_allclose(outputs["log_probs"][0, 0], [0, *expected.forward_log_probs], **checks.TOLERANCE)
    np.testing.assert_allclose(outputs["log_probs"][0, 1], [*expected.backward_log_probs, 0], **checks.TOLERANCE)
    np.testing.assert_allclose(outputs["log_probs"][1, 1, :3], unknown.backward_log_probs, **checks.TOLERANCE)
    assert not outputs["log_probs"][1, :, 4:].any()
    np.testing.assert_allclose(outputs["total"], [expected.total, unknown.total, empty.total], rtol=1e-5)
    assert outputs["tokens"][1].tolist() == [b"zebras", b"bark", b"", b"", b"", b""]
    exported = elmo_tf.load(path)
    for score, original in zip(exported.score(SENTENCES), model.score(SENTENCES), strict=True):
        np.testing.assert_allclose(score.forward_log_probs, original.forward_log_probs, **checks.TOLERANCE)
    assert exported.fill("the [MASK] sat", top=1)[0].token == model.fill("the [MASK] sat", top=1)[0].token


def test_the_model_that_comes_with_the_package_prefers_grammar_and_knows_who_lends_money():
    english = elmo_tf.load("english")
    good, bad = english.score([f"The keys to the cabinet {verb} on the table ." for verb in ("are", "is")])
    assert good.total > bad.total + 2
    words = [word.token for word in english.fill("He [MASK] to London yesterday .", top=5)]
    assert "went" in words[:2]


def test_the_users_dtype_policy_changes_no_score(dtype_policy):
    totals = []
    for policy in ("float32", "mixed_float16"):
        dtype_policy(policy)
        totals += [score.total for score in elmo_tf.load("english").score(["They talk ."])]
    assert totals[0] == pytest.approx(totals[1], abs=1e-3)


def test_a_source_without_a_softmax_is_refused(savedmodel):
    with pytest.raises(InputError, match="this model has no softmax; use a workdir"):
        elmo_tf.load(savedmodel.path).score(["a dog"])


def test_the_commands_print_what_the_functions_return(model, workdir, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    assert cli.main(["score", "--model", os.fspath(workdir), "--input", str(text), "--tokens"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line, score in zip(lines, model.score(SENTENCES), strict=True):
        assert (line["sentence"].split(), line["tokens"]) == (score.tokens, score.tokens)
        assert line["unknown"] == score.unknown.tolist()
        assert (line["num_tokens"], line["num_unknown"]) == (len(score.tokens), score.unknown.sum())
        assert line["total"] == pytest.approx(score.total, abs=1e-3)
        assert line["forward_log_probs"] == pytest.approx(score.forward_log_probs, abs=1e-3)
    assert cli.main(["score", "--model", os.fspath(workdir), "--input", str(text)]) == 0
    sums = json.loads(capsys.readouterr().out.splitlines()[0])
    assert sums == {name: lines[0][name] for name in sums}
    assert sums.keys() == {"sentence", "num_tokens", "num_unknown", "forward", "backward", "total", "mean"}
    assert cli.main(["fill", "a [MASK] sat", "--model", os.fspath(workdir), "--top", "2"]) == 0
    words = [json.loads(line)["token"] for line in capsys.readouterr().out.splitlines()]
    assert words == [word.token for word in model.fill("a [MASK] sat", top=2)]
