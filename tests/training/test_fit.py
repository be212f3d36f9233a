"""Keras's `fit` of the language model: the steps of the training loop, the carried states, saving, export, errors."""

import dataclasses
import functools
import itertools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import config as config_lib
from elmo_tf import sources
from elmo_tf.errors import InputError
from elmo_tf.records.windows import Windows
from elmo_tf.savedmodel import verification
from elmo_tf.training import evaluation, loop
from tests import checks
from tests.conftest import SENTENCES
from tests.helpers import MICRO_CONFIG, ONE_LAYER, batch_char_ids, run_python, slow, two_cpus, write_records

STEPS = 20


def with_train(model=ONE_LAYER, **changes):
    recipe = {"batch_size": 4, "unroll_steps": 20, "num_sampled": 0, "dropout_rate": 0.0} | changes
    return config_lib.Config(model, dataclasses.replace(MICRO_CONFIG.train, **recipe))


SMALL = with_train(unroll_steps=5)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A text of which the first windows have large gradients."""
    return write_records(tmp_path_factory.mktemp("text") / "data", SENTENCES * 3)


def compiled(config, data, strategy=None, optimizer=None):
    """Returns a model with the initial weights of the loop."""
    strategy = strategy or tf.distribute.get_strategy()
    keras.utils.set_random_seed(config.train.seed)
    with strategy.scope():
        model = elmo_tf.LanguageModel(config, data)
        model.compile(
            optimizer or keras.optimizers.Adagrad(config.train.learning_rate, config.train.initial_accumulator)
        )
    return model


def windows(data, config, **options):
    return elmo_tf.windows(data, config.train.batch_size, config.train.unroll_steps, config.train.seed, **options)


def step_losses(model, data, steps):
    """Trains; returns the loss of each step: an epoch's loss is the mean of its steps."""
    return model.fit(data, epochs=steps, steps_per_epoch=1, verbose=0).history["loss"]


LOOP = with_train(learning_rate=0.4, clip_norm=3.0)  # other rates amplify the rounding of the first steps
RANDOM = with_train(learning_rate=0.2, num_sampled=4, dropout_rate=0.1, reset_rate=0.5)


@functools.cache
def lines_of_the_loop(config, data, folder):
    """Returns the lines of `metrics.jsonl` of a run of the training loop."""
    lines = []
    loop.train(config, data, folder, steps=STEPS, on_record=lines.append)
    return lines


@pytest.mark.parametrize(("config", "replicas"), [(LOOP, 1), (LOOP, 2), slow(RANDOM, 1)], ids=["one", "two", "random"])
def test_the_first_steps_have_the_losses_of_the_training_loop(config, replicas, text):
    lines = lines_of_the_loop(config, text.path, text.path.parent / f"workdir_{config.train.num_sampled}")
    clipped = [line["gradient_norm"] > config.train.clip_norm for line in lines]
    assert 3 <= sum(clipped) <= STEPS - 3
    assert 3 * text.num_tokens / 80 < STEPS  # in several passes over the text
    expected = [(line["forward_loss"] + line["backward_loss"]) / 2 for line in lines]
    model = compiled(config, text.path, two_cpus() if replicas == 2 else None)
    np.testing.assert_allclose(step_losses(model, windows(text.path, config), STEPS), expected, rtol=1e-5)


def by_hand(model, data, count):
    """Returns the mean losses of windows of `data`, and the states after the last, for the weights of `model`."""
    losses, states = [], model.bilm.zero_states(SMALL.train.batch_size)
    cut = Windows(data, SMALL.train.batch_size, SMALL.train.unroll_steps, seed=SMALL.train.seed)
    for window, _ in itertools.islice(cut, count):
        directions, states = model.bilm.language_model_losses(window, states)
        losses.append(float(tf.reduce_mean(directions)))
    assert float(tf.reduce_max(tf.abs(states[0][0][1]))) > 0.01
    return losses, states


@pytest.mark.parametrize("replicas", [1, 2])
def test_each_replica_carries_the_states_of_its_rows_until_fit_begins_again(replicas, records):
    model = compiled(SMALL, records.path, two_cpus() if replicas == 2 else None, keras.optimizers.SGD(0.0))
    data = windows(records.path, SMALL)
    expected, states = by_hand(model, records, 3)
    local = model.distribute_strategy.experimental_local_results
    for _ in range(2):
        np.testing.assert_allclose(step_losses(model, data, 3), expected, **checks.TOLERANCE)
        for variable, state in zip(tf.nest.flatten(model.train_states), tf.nest.flatten(states), strict=True):
            parts = [part.numpy() for part in local(variable)]
            assert len(parts) == replicas
            np.testing.assert_allclose(np.concatenate(parts), state, **checks.TOLERANCE)
            assert replicas == 1 or not np.allclose(*parts)


def test_evaluate_counts_every_token_once_and_leaves_the_states_of_training(records):
    model = compiled(SMALL, records.path)
    heldout = windows(records.path, SMALL, heldout=True)
    history = model.fit(windows(records.path, SMALL), validation_data=heldout, epochs=2, verbose=0).history
    states = [state.numpy() for state in tf.nest.flatten(model.train_states)]
    found = model.evaluate(heldout, verbose=0, return_dict=True)
    expected = evaluation.evaluate(model.bilm, records, SMALL.train.batch_size, SMALL.train.unroll_steps)
    assert found["perplexity"] == pytest.approx(expected.perplexity, rel=checks.PERPLEXITY)
    assert history["val_perplexity"][-1] == pytest.approx(expected.perplexity, rel=checks.PERPLEXITY)
    assert history["perplexity"] == pytest.approx(np.exp(history["loss"]))
    assert model.optimizer.iterations.numpy() == 2 * windows(records.path, SMALL).steps_per_epoch
    checks.assert_all_close(tf.nest.flatten(model.train_states), states, atol=0)


@pytest.mark.parametrize("replicas", [1, slow(2)])
def test_a_file_of_keras_has_all_that_training_and_export_need(replicas, records, tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])
    model = compiled(SMALL, records.path, two_cpus() if replicas == 2 else None)
    data = windows(records.path, SMALL)
    callbacks = [keras.callbacks.ModelCheckpoint(tmp_path / "m.keras")]
    if replicas == 2:  # takes seconds
        callbacks.append(keras.callbacks.TensorBoard(tmp_path / "logs"))
    model.fit(data, epochs=1, steps_per_epoch=2, callbacks=callbacks, verbose=0)
    loaded = keras.models.load_model(tmp_path / "m.keras")
    checks.assert_all_close(loaded.weights, model.weights, atol=0)
    checks.assert_all_close(loaded.optimizer.variables, model.optimizer.variables, atol=0)
    path = elmo_tf.export(loaded if replicas == 1 else model, tmp_path / "exported", softmax=True)
    (sentence,) = elmo_tf.load(path).encode([["the", "cat"]], layers="all")
    layers, _ = loaded.bilm(batch_char_ids([[b"the", b"cat"]]))
    np.testing.assert_allclose(sentence.vectors[None], layers, **checks.TOLERANCE)
    assert sources.find(path).softmax().vocabulary.tokens == records.vocabulary.tokens
    if replicas == 2:
        assert list((tmp_path / "logs" / "train").iterdir())
        np.testing.assert_allclose(step_losses(loaded, data, 2), step_losses(model, data, 2), **checks.TOLERANCE)


EXPORTED = """
import sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
print(model.signatures["default"](strings=tf.constant(["the cat sat"]))["elmo"].shape)
"""


@pytest.mark.slow
def test_the_export_of_a_fitted_model_is_verified_and_loads_with_tensorflow_alone(records, tmp_path):
    model = compiled(SMALL, records.path)
    step_losses(model, windows(records.path, SMALL), 1)
    path = elmo_tf.export(model, tmp_path / "exported")
    assert run_python("-c", EXPORTED, path).stdout == "(1, 3, 8)\n"


def test_a_folder_or_a_dataset_that_does_not_fit_is_one_sentence(records, tmp_path):
    two = compiled(SMALL, records.path, two_cpus())
    others = write_records(tmp_path / "others", ["a cat sleeps"])
    refused = {
        "x: expected a dataset of elmo_tf.windows, found str": str(records.path),
        "unroll_steps: expected 5, as in the model's recipe, found 6": elmo_tf.windows(records.path, 4, 6),
        "batch_size: expected a multiple of 2, the number of replicas, found 3": elmo_tf.windows(records.path, 3, 5),
        "max_chars_per_token: expected 50, as in the model, found 20": (
            elmo_tf.windows(records.path, 4, 5, max_chars_per_token=20)
        ),
        f"{others.path}: these records have a different vocabulary, of 6 words; the model has "
        f"{len(records.vocabulary)}: use elmo-tf preprocess --vocab {records.path / 'vocab.txt'}": elmo_tf.windows(
            others.path, 4, 5
        ),
        "steps_per_epoch: this dataset has no end; set a number, or use elmo_tf.windows(..., heldout=True)": (
            windows(records.path, SMALL).prefetch(1)
        ),
    }
    for message, data in refused.items():
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            two.fit(data, verbose=0)
    with pytest.raises(InputError, match=r"^steps: this dataset has no end"):
        two.evaluate(windows(records.path, SMALL))
    with pytest.raises(InputError, match=r"^checkpoint: expected \"latest\", as only a workdir has others,"):
        elmo_tf.export(two, tmp_path / "exported", checkpoint="best")
    assert two.optimizer.iterations.numpy() == 0


def test_a_wrong_folder_and_records_with_shorter_tokens_than_the_model_are_refused(records, tmp_path):
    missing = rf"^{tmp_path}/none: no such folder$"
    with pytest.raises(InputError, match=missing):
        elmo_tf.windows(tmp_path / "none", 4)
    with pytest.raises(InputError, match=missing):
        elmo_tf.LanguageModel(SMALL, tmp_path / "none")
    with pytest.raises(InputError, match=r"^batch_size, unroll_steps: expected at least 1, found 0, 20$"):
        elmo_tf.windows(records.path, 0)
    longer = dataclasses.replace(ONE_LAYER, char_cnn=dataclasses.replace(ONE_LAYER.char_cnn, max_chars_per_token=60))
    with pytest.raises(InputError, match=r"these records have 50 characters per token, but the model needs 60$"):
        elmo_tf.LanguageModel(with_train(longer), records.path)
