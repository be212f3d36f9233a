"""The NumPy engine: many sentences at once, packed, with halved gates, give what the reference gives one by one."""

import itertools
import random

import numpy as np
import pytest

from elmo_tf import reference
from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.engines import numpy as engine
from elmo_tf.engines import threads
from tests import checks
from tests.helpers import MICRO

NO_PROJECTION = ModelConfig(
    CharCNNConfig(4, ((1, 3), (2, 5)), num_highway=0, activation="tanh", max_chars_per_token=10),
    LSTMConfig(units=8, projection_dim=8, num_layers=3, cell_clip=None, proj_clip=None, use_skip_connections=False),
)
CLIPPED = ModelConfig(MICRO.char_cnn, LSTMConfig(24, 8, 2, cell_clip=0.3, proj_clip=0.2))
# The engine's time steps and tokens come in pieces of 64; `<S>` and `</S>` may be tokens of a text.
WORDS = [b"the", b"cat", "naïve".encode(), b"", b"<S>", b"x" * 60, *(b"%d" % number for number in range(80))]


def sentences() -> list[list[bytes]]:
    choose = random.Random(0)
    return [choose.choices(WORDS, k=length) for length in (3, 1, 70, 3, 0, 12)]


def weights_of(config: ModelConfig) -> reference.Weights:
    generator = np.random.default_rng(0)
    shapes = config.weight_shapes()
    # Numbers that float32 holds, so that both precisions compute with the same weights.
    return {
        name: generator.uniform(-0.5, 0.5, shape).astype(np.float32).astype(float) for name, shape in shapes.items()
    }


# The tolerance of the micro network in float32, `checks.TOLERANCE`, and in float64 the same multiple of its unit.
FLOAT64 = 2.0**-29
PRECISIONS = {np.float32: 1.0, np.float64: FLOAT64}


@pytest.mark.parametrize("num_threads", [1, 2, 8])
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("config", [MICRO, CLIPPED, NO_PROJECTION], ids=["micro", "clipped", "no projection"])
def test_layers_of_many_sentences_are_those_of_each_alone(config, dtype, num_threads, monkeypatch):
    monkeypatch.setattr(threads, "num_threads", lambda: num_threads)
    monkeypatch.setattr(engine, "SENTENCES_AT_ONCE", 2)
    weights = weights_of(config)
    tolerance = {name: value * PRECISIONS[dtype] for name, value in checks.TOLERANCE.items()}
    network = engine.NumpyBiLM(config, weights, dtype)
    for tokens, layers in zip(sentences(), network.layers(sentences()), strict=True):
        expected = reference.layers(weights, config, tokens)
        assert (layers.dtype, layers.shape) == (dtype, expected.shape)
        np.testing.assert_allclose(layers, expected, **tolerance)


def test_states_go_from_sentence_to_sentence_of_a_reading():
    weights, lines = weights_of(MICRO), [[b"the", b"cat"], [b"sat"]]
    network = engine.NumpyBiLM(MICRO, weights, np.float64)
    marked = [[[b"<S>", *tokens] for tokens in lines], [[b"</S>", *tokens[::-1]] for tokens in lines]]
    (layers,) = network.read([[list(itertools.chain(*reading)) for reading in marked]])
    for number, direction in enumerate(("forward", "backward")):
        states, expected = None, []
        for tokens in marked[number]:
            x = np.array([reference.token_vector(weights, reference.char_ids(t), MICRO.char_cnn) for t in tokens])
            outputs, states = reference.read(weights, MICRO, direction, x, states)
            expected.append(outputs)
        np.testing.assert_allclose(
            layers[number], np.concatenate(expected, 1), rtol=0, atol=checks.TOLERANCE["atol"] * FLOAT64
        )


def test_log_probabilities_and_mixes_are_those_of_the_reference_where_a_plain_exponential_overflows():
    generator = np.random.default_rng(0)
    h, kernel, bias = generator.normal(size=(5, 8)), generator.normal(size=(30, 8)), generator.normal(size=30)
    expected = reference.log_softmax(h, kernel, bias)
    np.testing.assert_allclose(
        engine.log_softmax(h, kernel, bias), expected, rtol=0, atol=checks.rounding(8 + 1 + 4, 16) * FLOAT64
    )
    np.testing.assert_allclose(
        engine.log_softmax(h, kernel, bias + 5000), expected, rtol=0, atol=checks.rounding(8 + 1 + 4, 5000) * FLOAT64
    )
    layers, parameters = generator.normal(size=(3, 4, 8)), np.array([0.3, -1.0, 2.0])
    mixed, few = (
        reference.scalar_mix(layers, parameters, 1.7),
        {name: FLOAT64 * size for name, size in checks.FEW.items()},
    )
    np.testing.assert_allclose(engine.scalar_mix(layers, parameters, 1.7), mixed, **few)
    np.testing.assert_allclose(
        engine.scalar_mix(layers, parameters + 5000, 1.7), mixed, rtol=0, atol=checks.rounding(8, 5000) * FLOAT64
    )
