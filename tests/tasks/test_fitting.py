"""Epochs, schedules, moving averages, and going on after a kill."""

import json

import keras
import numpy as np
import pytest

from elmo_tf.annotated.classes import Classified
from elmo_tf.config import override
from elmo_tf.errors import InputError
from elmo_tf.tasks import fitting
from elmo_tf.tasks.recipe import Fit
from elmo_tf.tasks.token_vectors import TokenVectors, word_table
from tests.tasks import toy

WORDS = {"good": ["fine", "great", "warm"], "bad": ["poor", "dull", "cold"]}
DATA = [
    Classified(["a", word, "film", *["x"] * number], label)
    for label, words in WORDS.items()
    for number, word in enumerate(words)
]


def built(*assignments):
    keras.utils.set_random_seed(0)
    system = toy.Task(override(toy.Task.recipes["paper"], assignments), ["bad", "good"])
    return system, system.network(
        TokenVectors(system.recipe, word_table(system.recipe, [one.tokens for one in DATA], []), None)
    )


def fitted(folder, *assignments):
    system, network = built(*assignments)
    folder.mkdir(exist_ok=True)
    history = fitting.fit(system, network, DATA, DATA, folder)
    return [{name: value for name, value in one.items() if name != "seconds"} for one in history], network.get_weights()


class Killed(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize(
    "options", [(), ("fit.ema=0.5", "fit.decay_rate=0.9", "fit.decay_steps=1")], ids=["plain", "average"]
)
def test_a_killed_run_ends_as_one_that_was_not_killed(tmp_path, monkeypatch, options):
    expected, weights = fitted(tmp_path / "whole", *options)
    assert len(expected) == 4
    save_last = fitting._State.save_last

    def killed(state, history):
        if len(history) == 3:
            raise Killed
        save_last(state, history)

    monkeypatch.setattr(fitting._State, "save_last", killed)
    with pytest.raises(Killed):
        fitted(tmp_path / "killed", *options)
    monkeypatch.undo()
    history, found = fitted(tmp_path / "killed", *options)
    assert history == expected
    for one, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_ends_when_patience_does_and_keeps_the_best_epoch(tmp_path, monkeypatch):
    scores = iter([10.0, 30.0, 20.0, 30.0, 40.0])
    kept = []

    def keep(state, _):
        kept.append(state)

    monkeypatch.setattr(fitting.Judge, "scores", lambda judge, _: {"accuracy": next(scores)})
    monkeypatch.setattr(
        fitting._State, "save_best", lambda state, history: kept.append([np.asarray(one) for one in state._weights])
    )
    monkeypatch.setattr(fitting._State, "use_best", lambda state: None)
    history, _ = fitted(tmp_path, "fit.patience=2", "fit.epochs=9")
    assert [epoch["dev"]["accuracy"] for epoch in history] == [10, 30, 20, 30]
    assert len(kept) == 2
    assert fitting.best_epoch(history, "accuracy") == 1
    assert list((tmp_path / "logs" / "train").iterdir())


def test_the_rate_is_halved_after_epochs_without_a_better_score():
    history = [{"dev": {"f1": score}} for score in (1, 3, 2, 3, 4, 4)]
    rates = [fitting.learning_rate(Fit(learning_rate=8, halve_after=1), history[:number], "f1") for number in range(7)]
    assert rates == [8, 8, 8, 4, 2, 2, 1]
    rates = [fitting.learning_rate(Fit(learning_rate=8, halve_after=2), history[:number], "f1") for number in range(7)]
    assert rates == [8, 8, 8, 8, 4, 4, 4]


def test_the_rate_decays_by_steps():
    recipe = Fit(learning_rate=8, decay_rate=0.5, decay_steps=10)
    assert [fitting.learning_rate(recipe, [], "f1", step) for step in (0, 9, 10, 25)] == [8, 8, 4, 2]


def test_an_optimizer_has_the_options_of_the_recipe():
    made = fitting.optimizer(Fit(optimizer="adadelta", learning_rate=1.0, epsilon=1e-6, clip_value=1.0))
    assert isinstance(made, keras.optimizers.Adadelta)
    assert (made.rho, made.epsilon, made.clipvalue, made.global_clipnorm) == (0.95, 1e-6, 1.0, None)
    made = fitting.optimizer(Fit(clip_norm=5.0, ema=0.99))
    assert (type(made), made.global_clipnorm, made.use_ema, made.ema_momentum) == (
        keras.optimizers.Adam,
        5.0,
        True,
        0.99,
    )


def test_a_loss_that_is_not_finite_ends_it(tmp_path):
    with pytest.raises(InputError, match=r"^fit.learning_rate: expected .* finite, found .* in epoch \d"):
        fitted(tmp_path, "fit.learning_rate=1e38", "fit.epochs=9")


def test_a_state_of_another_network_is_refused(tmp_path):
    np.savez(tmp_path / fitting.LAST, history=np.array(json.dumps([])), **{"0": np.zeros(3)})
    with pytest.raises(InputError, match=r"^workdir: expected the state of the same network, found another.*last.npz"):
        fitted(tmp_path)
