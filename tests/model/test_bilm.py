"""The network, plain and fast: layers and losses against the float64 reference, and what must not matter."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.model.bilm import PlainBiLM
from elmo_tf.model.fast import BiLM
from elmo_tf.model.kernels import lstmp_training, softmax
from elmo_tf.model.variables import DIRECTIONS, relative_names
from elmo_tf.records.windows import Windows
from tests import checks, float64, helpers
from tests.helpers import MICRO, batch_char_ids, char_ids_of

NASTY = [
    [b"one"],
    [],
    [b"an", b"", b"empty", b"token"],
    [b"", b""],
    [b"long", b"x" * 60, b"y" * 48, b"z" * 49],
    [b"a", b"<S>", b"b", b"</S>", b"c", b"<UNK>"],
    ["naïve".encode(), "日本語の長い単語がここにあります本当に".encode(), b"\xff\xfe\x00", b"a b"],
    [b"the"] * 9,
]
SENTENCES = ["a b c", "d", "the cat sat on the mat", "b a", "c c c c c", "mat the a b cat"]
ANOTHER = ModelConfig(
    CharCNNConfig(embedding_dim=3, filters=((1, 4), (3, 5)), num_highway=1, activation="tanh"),
    LSTMConfig(units=9, projection_dim=9, num_layers=3, cell_clip=0.5, proj_clip=None, use_skip_connections=False),
)
CLIPPED = dataclasses.replace(MICRO, lstm=dataclasses.replace(MICRO.lstm, cell_clip=0.3, proj_clip=0.2))


both = pytest.mark.parametrize("network", [PlainBiLM, BiLM])


def _bilm(config=MICRO, vocab_size=None, network=BiLM):
    return checks.randomize(network(config, vocab_size), scale=0.4)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return helpers.write_records(tmp_path_factory.mktemp("records"), SENTENCES)


@pytest.mark.parametrize("config", [MICRO, CLIPPED, ANOTHER], ids=["micro", "clipped", "another"])
@both
def test_layers_equal_the_reference(config, network):
    bilm = _bilm(config, network=network)
    weights = float64.weights_of(bilm)
    layers, mask = bilm(batch_char_ids(NASTY))
    assert layers.shape == (8, config.lstm.num_layers + 1, 9, 2 * config.lstm.projection_dim)
    assert layers.dtype == tf.float32
    for sentence, values, real in zip(NASTY, layers, mask, strict=True):
        np.testing.assert_array_equal(real, np.arange(9) < len(sentence))
        expected = float64.layers(weights, config, sentence)
        np.testing.assert_allclose(values[:, : len(sentence)], expected, **checks.TOLERANCE)
        assert not np.any(values[:, len(sentence) :])


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0, 0)])
@both
def test_batches_without_a_word_are_fine(shape, network):
    layers, mask = _bilm(network=network)(np.zeros((*shape, 50), np.int32))
    assert layers.shape == (shape[0], 3, shape[1], 16)
    assert mask.shape == shape


def _losses(bilm, windows, **keywords):
    """Returns both directions' losses over all windows, the state carried, and the final states."""
    states = bilm.zero_states(len(windows[0].mask))
    every = []
    for window in windows:
        losses, states = bilm.language_model_losses(window, states, **keywords)
        every.append(losses)
    return [tf.concat(pieces, 1).numpy() for pieces in zip(*every, strict=True)], states


def _cut(records, batch_size, unroll_steps):
    return [window for window, _ in Windows(records, batch_size, unroll_steps, epochs=1)]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("config", [MICRO, ANOTHER], ids=["micro", "another"])
@both
def test_losses_equal_the_reference_on_whole_streams(records, config, training, network):
    bilm = _bilm(config, len(records.vocabulary), network)
    weights = float64.weights_of(bilm)
    windows = _cut(records, 2, 5)
    assert len(windows) >= 3
    assert not windows[-1].mask.all()
    losses, _ = _losses(bilm, windows, training=training)
    mask = np.concatenate([window.mask for window in windows], 1)
    for number, direction in enumerate(DIRECTIONS):
        ids = np.concatenate([char_ids_of(window, direction) for window in windows], 1)
        targets = np.concatenate([getattr(window, f"{direction}_targets") for window in windows], 1)
        for row in range(2):
            expected = float64.direction_losses(weights, config, number, ids[row], targets[row])
            np.testing.assert_allclose(losses[number][row][mask[row]], expected[mask[row]], **checks.TOLERANCE)
        assert not losses[number][~mask].any()


@pytest.mark.parametrize("keywords", [{"dropout_rate": 0.5}, {"num_sampled": 3}])
def test_the_seed_decides_dropout_and_negatives(records, keywords):
    bilm = _bilm(vocab_size=len(records.vocabulary))
    windows = _cut(records, 2, 5)[:1]
    first, again, other = (_losses(bilm, windows, seed=tf.constant((1, n)), **keywords)[0] for n in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first[0], other[0])
    assert not np.allclose(first[1], other[1])


@both
def test_every_dropout_and_draw_has_a_seed_of_its_own(records, network, monkeypatch):
    rates, keys = [], []

    def dropout(inputs, rate, seed):
        rates.append(rate)
        keys.append(tuple(seed.numpy()))
        return inputs

    monkeypatch.setattr(tf.nn.experimental, "stateless_dropout", dropout)
    bilm = _bilm(vocab_size=len(records.vocabulary), network=network)
    losses = bilm.token_losses

    def spy(inputs, targets, num_sampled, seed, training):
        keys.append(tuple(seed.numpy()))
        return losses(inputs, targets, num_sampled, seed, training)

    monkeypatch.setattr(bilm, "token_losses", spy)
    _losses(bilm, _cut(records, 2, 5)[:1], dropout_rate=0.25, num_sampled=3, seed=tf.constant((1, 2)))
    assert rates == [0.25] * 6  # per direction: two LSTM layers and the softmax
    assert len(set(keys)) == len(keys) == 8


@pytest.mark.parametrize("config", [MICRO, CLIPPED, ANOTHER], ids=["micro", "clipped", "another"])
@pytest.mark.parametrize("num_sampled", [0, 3])
def test_a_training_window_has_the_losses_states_and_gradients_of_the_plain_network(records, config, num_sampled):
    fast, plain = (_bilm(config, len(records.vocabulary), network) for network in (BiLM, PlainBiLM))
    (window, *_), results = _cut(records, 2, 5), []
    keywords = {"dropout_rate": 0.3, "num_sampled": num_sampled, "seed": tf.constant((1, 2)), "training": True}
    for bilm in (fast, plain):

        def loss(bilm=bilm):
            losses, _ = bilm.language_model_losses(window, bilm.zero_states(2), **keywords)
            return tf.reduce_sum(losses[0]) + 2.0 * tf.reduce_sum(losses[1])

        losses, states = bilm.language_model_losses(window, bilm.zero_states(2), **keywords)
        results.append(([*losses, *tf.nest.flatten(states)], checks.gradients(bilm, loss)))
    (values, gradients), (plain_values, plain_gradients) = results
    checks.assert_all_close(values, plain_values, **checks.TOLERANCE)
    for gradient, other in zip(gradients, plain_gradients, strict=True):
        np.testing.assert_allclose(gradient, other, **checks.gradient_tolerance(other))


def test_dropout_keeps_the_expectation_and_hits_what_a_skip_connection_adds(records):
    bilm = _bilm()
    bilm.lstms[0][1].set_weights([np.zeros(weight.shape) for weight in bilm.lstms[0][1].get_weights()])
    window = _cut(records, 2, 5)[0]
    window = type(window)(window.char_ids, *(np.repeat(rows, 100, 0) for rows in window[1:]))
    run = bilm.run_window(window, bilm.zero_states(200), dropout_rate=0.25, seed=tf.constant((0, 1)))
    first, second = run.layers[0]
    ratios = (second / first).numpy()  # the second layer adds nothing but its own input
    dropped = ratios == 0
    assert abs(dropped.mean() - 0.25) < 0.02
    np.testing.assert_allclose(ratios[~dropped], 1 / 0.75, **checks.FEW)


@pytest.mark.parametrize("training", [False, True])
def test_every_part_multiplies_in_the_dtype_asked_for(records, training, monkeypatch):
    dtypes, matmul = [], tf.matmul
    bilm = BiLM(MICRO, len(records.vocabulary), "bfloat16")

    def product(left, right, **transposes):
        dtypes.append(left.dtype.name)
        return tf.cast(matmul(tf.cast(left, tf.float32), tf.cast(right, tf.float32), **transposes), left.dtype)

    monkeypatch.setattr(tf, "matmul", product)
    keywords = {"num_sampled": 3, "seed": tf.constant((1, 2)), "training": training}
    for kernel in (lstmp_training._differentiable, softmax.sampled_losses):
        monkeypatch.setattr(
            f"{kernel.python_function.__module__}.{kernel.python_function.__name__}", kernel.python_function
        )
    bilm.language_model_losses(_cut(records, 2, 5)[0], bilm.zero_states(2), **keywords)
    assert set(dtypes) == {"bfloat16"}


PLAIN = ModelConfig(CharCNNConfig(4, ((1, 4), (2, 4)), num_highway=0), LSTMConfig(8, 8, num_layers=1))


@pytest.mark.parametrize("vocab_size", [None, 5])
@pytest.mark.parametrize("config", [MICRO, PLAIN, dataclasses.replace(MICRO, lstm=LSTMConfig(24, 18, 3))])
def test_every_weight_has_a_name_in_the_order_of_trainable_variables(config, vocab_size):
    bilm = BiLM(config, vocab_size)
    named = relative_names(bilm)
    assert [id(variable) for variable in named.values()] == [id(variable) for variable in bilm.trainable_variables]
    assert list(named) == [variable.path for variable in bilm.trainable_variables]
