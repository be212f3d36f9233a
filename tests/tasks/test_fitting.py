"""Epochs, schedules and moving averages. Of resuming after a kill, test_runs.py has more."""

import urllib.parse

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.annotated.classes import Classified
from elmo_tf.config import override
from elmo_tf.errors import InputError
from elmo_tf.tasks import fitting
from elmo_tf.tasks.recipe import Fit
from elmo_tf.tasks.token_vectors import TokenVectors, word_table
from tests import checks
from tests.helpers import MICRO, answered, hparams_of, tensorboard
from tests.tasks import toy

WORDS = {"good": ["fine", "great", "warm"], "bad": ["poor", "dull", "cold"]}
DATA = [
    Classified(["a", word, "film", *["x"] * number], label)
    for label, words in WORDS.items()
    for number, word in enumerate(words)
]


def fitted(folder, *assignments):
    """Returns the history and the weights of a run on `DATA`: two steps in each epoch."""
    keras.utils.set_random_seed(0)
    system = toy.Task(override(toy.Task.recipes["paper"], assignments), ["bad", "good"])
    table = word_table(system.recipe, [example.tokens for example in DATA], [])
    network = system.network(TokenVectors(system.recipe, table, None))
    folder.mkdir(exist_ok=True)
    history = fitting.fit(system, network, DATA, DATA, folder)
    epochs = [{name: value for name, value in epoch.items() if name != "seconds"} for epoch in history]
    return epochs, network.get_weights()


def scripted(monkeypatch, *scores):
    """Has the epochs score so; returns the list of the weights that are scored, one entry for each epoch."""
    left, scored = iter(scores), []

    def score(self, _):
        scored.append(self.networks[0].get_weights())
        return {"accuracy": next(left)}

    monkeypatch.setattr(fitting.Predictor, "scores", score)
    return scored


@pytest.mark.parametrize(
    ("scores", "options", "history_scores", "kept", "last_rate"),
    [
        ((10, 30, 20, 30, 40), ("fit.patience=2", "fit.halve_after=1"), (10, 30, 20, 30), 1, 0.05),
        # Patience counts from the first score above 0.
        ((0, 0, 0, 5, 4, 3, 9), ("fit.patience=2",), (0, 0, 0, 5, 4, 3), 3, 0.1),
        # Some epochs are not scored, but the last one always is.
        ((10, 30, 20), ("fit.judge_every=2", "fit.epochs=5"), (None, 10, None, 30, 20), 1, 0.1),
        # Patience ends at a scored epoch.
        ((10, 5, 4, 40), ("fit.judge_every=2", "fit.patience=3"), (None, 10, None, 5, None, 4), 0, 0.1),
    ],
)
def test_it_ends_when_patience_does_and_keeps_the_best_epoch(
    tmp_path, monkeypatch, scores, options, history_scores, kept, last_rate
):
    scored = scripted(monkeypatch, *map(float, scores))
    history, weights = fitted(tmp_path, "fit.epochs=9", "fit.patience=9", *options)
    assert [epoch.get("dev", {}).get("accuracy") for epoch in history] == [*history_scores]
    assert history[-1]["learning_rate"] == pytest.approx(last_rate)
    assert fitting.best_epoch(history, "accuracy") == history_scores.index(scores[kept])
    checks.assert_all_close(weights, scored[kept])
    assert not all(np.array_equal(*pair) for pair in zip(weights, scored[-1], strict=True))
    assert list((tmp_path / "logs" / "train").iterdir())


def test_a_run_that_learned_nothing_is_an_error_that_says_what_to_try(tmp_path, monkeypatch):
    scripted(monkeypatch, *[0.0] * 3)
    message = "0 after 3 epochs: nothing was learned. Try, .*\\(--set fit.epochs=N\\), .*--model, or more data"
    with pytest.raises(InputError, match=f"^dev accuracy: {message}$"):
        fitted(tmp_path, "fit.patience=1", "fit.epochs=3")


def test_the_moving_average_is_scored_and_kept(tmp_path, monkeypatch):
    """With one step per epoch, the average follows from the weights of a run without averaging."""
    options = ("fit.batch_size=6", "fit.epochs=3")
    plain = scripted(monkeypatch, 10.0, 30.0, 20.0)
    fitted(tmp_path / "plain", *options)
    averaged = scripted(monkeypatch, 10.0, 30.0, 20.0)
    _, weights = fitted(tmp_path / "average", "fit.ema=0.75", *options)
    checks.assert_all_close(weights, averaged[1])
    indices = [index for index, array in enumerate(weights) if array.dtype == np.float32]
    assert len(indices) == 3
    for index in indices:
        expected = plain[0][index]
        for epoch in range(3):
            expected = 0.75 * expected + 0.25 * plain[epoch][index] if epoch else expected
            # Keras swaps by adding and subtracting, which rounds.
            np.testing.assert_allclose(averaged[epoch][index], expected, **checks.FEW)


def test_an_epoch_that_comes_out_differently_after_a_kill_leaves_the_best_weights_as_they_were(tmp_path, monkeypatch):
    scored = scripted(monkeypatch, 30.0, 40.0)
    toy.kill(monkeypatch, 2)
    with pytest.raises(toy.Killed):
        fitted(tmp_path, "fit.epochs=2")
    monkeypatch.undo()
    scripted(monkeypatch, 10.0)
    history, weights = fitted(tmp_path, "fit.epochs=2")
    assert [epoch["dev"]["accuracy"] for epoch in history] == [30, 10]
    checks.assert_all_close(weights, scored[0])


@pytest.mark.parametrize(
    ("recipe", "scores", "rates"),
    [
        (Fit(learning_rate=8, halve_after=1), (1, 3, 2, 3, 4, 4), [8, 8, 8, 4, 2, 2, 1]),
        (Fit(learning_rate=8, halve_after=2), (1, 3, 2, 3, 4, 4), [8, 8, 8, 8, 4, 4, 4]),
        # Not every epoch is scored.
        (Fit(learning_rate=8, halve_after=1), (None, 1, None, 3, None, 2, None, 4), [8, 8, 8, 8, 8, 8, 4, 4, 4]),
    ],
)
def test_the_rate_is_halved_after_scores_that_are_no_better(recipe, scores, rates):
    history = [{} if score is None else {"dev": {"f1": score}} for score in scores]
    assert [fitting.learning_rate(recipe, history[:number], "f1") for number in range(len(scores) + 1)] == rates
    decaying = Fit(learning_rate=8, decay_rate=0.5, decay_steps=10)
    assert [fitting.learning_rate(decaying, [], "f1", step) for step in (0, 9, 10, 25)] == [8, 8, 4, 2]


def test_an_optimizer_has_the_options_of_the_recipe():
    made = fitting.optimizer(Fit(optimizer="adadelta", learning_rate=1.0, epsilon=1e-6, clip_value=1.0))
    assert isinstance(made, keras.optimizers.Adadelta)
    assert (made.rho, made.epsilon, made.clipvalue, made.global_clipnorm) == (0.95, 1e-6, 1.0, None)
    made = fitting.optimizer(Fit(clip_norm=5.0, ema=0.99))
    assert isinstance(made, keras.optimizers.Adam)
    assert (made.global_clipnorm, made.use_ema, made.ema_momentum) == (5.0, True, 0.99)


def test_a_loss_that_is_not_finite_ends_it(tmp_path):
    with pytest.raises(InputError, match=r"^fit.learning_rate: the loss is (nan|-?inf) in epoch \d; set a lower rate$"):
        fitted(tmp_path, "fit.learning_rate=1e38", "fit.epochs=9")


@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_sum])
def test_the_loss_of_an_epoch_is_the_mean_over_examples_also_if_that_of_a_batch_is_a_sum(tmp_path, monkeypatch, reduce):
    """Batches of four and two, in which the examples' losses are 1 and 2."""

    def loss(system, network, outputs, targets):
        return reduce(1.0 + tf.cast(targets["label"], tf.float32) + 0 * outputs[:, 0])

    monkeypatch.setattr(toy.Task, "loss", loss)
    monkeypatch.setattr(toy.Task, "sums_loss", reduce is tf.reduce_sum)
    scripted(monkeypatch, 50.0)
    ((epoch,), _) = fitted(tmp_path, "fit.epochs=1")
    assert epoch["loss"] == pytest.approx(1.5, rel=checks.FEW["rtol"])


def test_tensorboard_has_the_recipe_and_the_best_score_for_its_comparison_of_runs(tmp_path, monkeypatch):
    scripted(monkeypatch, 10, 30, 20)
    fitted(tmp_path, "fit.epochs=3", "fit.learning_rate=0.25")
    found = hparams_of(tmp_path / "logs" / "train")
    assert (found["task"], found["fit.learning_rate"], found["words.lower"]) == ("toy", 0.25, True)
    assert "elmo.gamma" not in found  # null
    best = {}
    for file in (tmp_path / "logs" / "train").glob("events.*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if value.tag == "epoch_best_dev_accuracy":
                    best[event.step] = tf.make_ndarray(value.tensor)
    assert best == {0: 10, 1: 30, 2: 30}


@pytest.mark.slow
def test_tensorboard_has_the_mix_at_each_place_after_each_epoch(tmp_path, monkeypatch):
    scripted(monkeypatch, 10, 20, 30)  # the last epoch is the best, so its weights are the network's in the end
    recipe = override(toy.Task.recipes["small"], ["words.min_count=1", "fit.epochs=3", "fit.learning_rate=0.1"])
    system = toy.Task(recipe, ["bad", "good"])
    vectors = TokenVectors(recipe, word_table(recipe, [example.tokens for example in DATA], []), MICRO)
    fitting.fit(system, system.network(vectors), DATA, DATA, tmp_path)
    names = ["gamma", "layer_0", "layer_1", "layer_2"]
    tags = [f"epoch_elmo_{place}/{name}" for place in ("input", "output") for name in names]
    address = f"{tensorboard(tmp_path / 'logs')}data/plugin/scalars"
    runs = answered(f"{address}/tags", lambda runs: set(tags) <= runs.get("train", {}).keys())
    assert sorted(tag for tag in runs["train"] if "elmo" in tag) == tags
    curves = {}
    for tag in tags:
        query = urllib.parse.urlencode({"run": "train", "tag": tag})
        points = answered(f"{address}/scalars?{query}", lambda points: len(points) == 3)
        assert [step for _, step, _ in points] == [0, 1, 2]
        curves[tag] = np.array([value for *_, value in points])
    for place, mix in zip(("input", "output"), vectors.elmo.mixes, strict=True):
        gamma, *weights = (curves[f"epoch_elmo_{place}/{name}"] for name in names)
        assert gamma[-1] == pytest.approx(float(mix.gamma)) and len(set(gamma)) == 3
        assert [weight[-1] for weight in weights] == pytest.approx(tf.nn.softmax(mix.scalar_parameters).numpy())
        np.testing.assert_allclose(np.sum(weights, axis=0), 1, **checks.FEW)
        assert len(set(weights[0])) == 3
