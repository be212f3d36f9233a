"""Perplexity: against the float64 reference, whatever the streams and windows; what is refused."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import api, precision
from elmo_tf.errors import InputError
from elmo_tf.files import progress
from elmo_tf.model.fast import BiLM
from elmo_tf.records.windows import Windows
from elmo_tf.training import loop
from elmo_tf.training.evaluation import evaluate, unigram_perplexity
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import Workdir
from tests import checks, float64
from tests.conftest import SENTENCES
from tests.helpers import MICRO, MICRO_CONFIG, char_ids_of, run_python, slow, write_records

TEXT = [*SENTENCES, "the <UNK> of the"]
TOKENS = sum(len(sentence.split()) + 1 for sentence in TEXT)


@pytest.fixture(scope="module")
def heldout(tmp_path_factory):
    """Records in which the four `slept`, `<UNK>` and `of` are unknown."""
    known = ["the", "cat", "sat", "on", "mat", "a", "dog", "barked", "and", "at", "cats", "sleep"]
    return write_records(tmp_path_factory.mktemp("heldout") / "data", TEXT, known)


@pytest.fixture(scope="module")
def bilm(heldout):
    return checks.randomize(BiLM(MICRO, len(heldout.vocabulary)), scale=0.4)


@pytest.mark.parametrize(("batch_size", "unroll_steps"), [(3, 4), *map(slow, (1, 1, 1, 32), (1, 7, 200, 20))])
def test_several_streams_count_every_token_with_the_state_of_its_stream(
    bilm, heldout, batch_size, unroll_steps, monkeypatch, capsys
):
    monkeypatch.setattr(progress.ProgressLine, "due", lambda _: True)
    result = evaluate(bilm, heldout, batch_size, unroll_steps)
    counts = (result.tokens, result.words, result.streams, result.unknown_rate)
    assert counts == (TOKENS, TOKENS - len(TEXT), batch_size, 6 / TOKENS)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"evaluating {TOKENS}/{TOKENS} tokens, sentence boundaries included"
    weights, totals = float64.weights_of(bilm), np.zeros(2)
    windows = [window for window, _ in Windows(heldout, batch_size, unroll_steps, epochs=1)]
    for row in range(batch_size):
        real = np.concatenate([window.mask[row] for window in windows])
        for number, name in enumerate(["forward", "backward"]):
            parts = [
                np.concatenate([char_ids_of(window, name)[row] for window in windows])[real],
                np.concatenate([getattr(window, f"{name}_targets")[row] for window in windows])[real],
            ]
            if real.any():
                totals[number] += float64.direction_losses(weights, MICRO, number, *parts).sum()
    means = totals / TOKENS
    assert abs(means[0] - means[1]) > 0.01
    perplexities = [result.forward_perplexity, result.backward_perplexity, result.perplexity]
    np.testing.assert_allclose(perplexities, np.exp([*means, means.mean()]), rtol=checks.PERPLEXITY)


def test_numbers_below_the_least_are_refused(records, workdir, tmp_path):
    with pytest.raises(InputError, match=r"^batch_size: expected at least 1, found 0$"):
        api.evaluate(workdir, records.path, batch_size=0)
    with pytest.raises(InputError, match=r"^steps: expected int >= 0, found -1$"):
        loop.train(MICRO_CONFIG, records.path, tmp_path / "new", steps=-1)


@pytest.mark.slow
def test_evaluate_computes_on_all_gpus_or_those_it_is_given(records, workdir):
    expected = evaluate(checkpoints.restore(workdir)[0], records, 3, 5)
    command = ["evaluate", "--workdir", str(workdir.path), "--data", str(records.path), "--batch-size", "3"]
    ran = run_python("-m", "tests.training.pretended_gpus", *command, "--gpus", "0,2")
    assert ran.stderr.splitlines()[-1].endswith(", float32 products, on CPU:0, CPU:1")
    printed = json.loads(ran.stdout)
    assert printed["perplexity"] == pytest.approx(expected.perplexity, rel=checks.PERPLEXITY)
    assert (printed["tokens"], printed["streams"]) == (records.num_tokens, 3)


@pytest.mark.parametrize(
    ("capability", "allowed", "expected"),
    [((8, 0), True, "TF32"), ((7, 5), True, "float32"), ((9, 0), False, "float32")],
)
def test_float32_products_are_tf32_on_gpus_that_have_it(capability, allowed, expected, monkeypatch):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: ["a GPU"] * (kind == "GPU"))
    details = {"compute_capability": capability}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _: details)
    monkeypatch.setattr(tf.config.experimental, "tensor_float_32_execution_enabled", lambda: allowed)
    assert precision.float32_products() == expected


def test_the_unigram_model_counts_words_and_sentence_ends_plus_one_each(tmp_path):
    seen = write_records(tmp_path / "seen", ["a a b", "a"], ["a", "b"])
    heldout = write_records(tmp_path / "heldout", ["b new", "", "a"], ["a", "b"], num_shards=4)
    # Counts of 6 + 5 in all: a 3 + 1, b 1 + 1, </S> 2 + 1, <UNK> 0 + 1, <S> 0 + 1.
    probabilities = [2 / 11, 1 / 11, 3 / 11, 3 / 11, 4 / 11, 3 / 11]
    assert unigram_perplexity(seen, heldout) == pytest.approx(np.exp(-np.mean(np.log(probabilities))), rel=1e-12)


def test_records_that_do_not_fit_the_network_are_refused(records, tmp_path):
    def check(texts, model=MICRO, vocabulary=records.vocabulary):
        Workdir(tmp_path, dataclasses.replace(MICRO_CONFIG, model=model), vocabulary).check_records(texts)

    check(records)
    other = write_records(tmp_path / "other", ["another text"])
    longer = dataclasses.replace(MICRO, char_cnn=dataclasses.replace(MICRO.char_cnn, max_chars_per_token=60))
    with pytest.raises(InputError, match=f"^{tmp_path}: this model has no softmax; "):
        check(records, vocabulary=None)
    message = rf"^{other.path}: these records have a different vocabulary, of 5 words; the model has 16: use "
    with pytest.raises(InputError, match=message):
        check(other)
    with pytest.raises(InputError, match=rf"^{records.path}: these records have 50 characters per token, and"):
        check(records, longer)
