"""CharCNN with its highway layers, plain and fast: values, gradients, and what need not be computed."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.config import CharCNNConfig
from elmo_tf.model.bilm import CharCNN
from elmo_tf.model.kernels import char_cnn
from elmo_tf.text import char_ids as char_ids_lib
from tests import checks, float64

FILTERS = ((1, 4), (2, 6), (3, 8))
HIGHWAY = ("gate_kernel", "gate_bias", "transform_kernel", "transform_bias")
TOKENS = [b"the", b"", b"a", b"x" * 60, b"<S>", "naïve".encode(), b"the", b"12345678", b"123456789", b"y" * 46]


def plain(layer, ids):
    return layer(ids)


def fast(layer, ids, dtype="float32"):
    return char_cnn.token_vectors(layer, ids, None, dtype)


both = pytest.mark.parametrize("encode", [plain, fast])


def new_layer(num_highway=2, activation="relu", output_dim=5, filters=FILTERS, max_chars=50):
    layer = CharCNN(CharCNNConfig(4, filters, num_highway, activation, max_chars), output_dim)
    layer.build((None, max_chars))
    return checks.randomize(layer)


def _reference(layer, ids):
    highways = {
        f"{highway.name}/{variable.name}": variable for highway in layer.highways for variable in highway.variables
    }
    projection = {} if layer.projection is None else {"projection/kernel": layer.projection.kernel}
    projection |= {} if layer.projection is None else {"projection/bias": layer.projection.bias}
    own = {variable.name: variable for variable in [layer.embedding, *layer.kernels, *layer.biases]}
    weights = {name: np.asarray(variable, np.float64) for name, variable in (own | highways | projection).items()}
    return _vectors(layer, weights, ids)


def _vectors(layer, weights, ids):
    """The vectors of tokens in float64, given the layer's weights by name."""
    return float64.char_cnn({f"char_cnn/{name}": array for name, array in weights.items()}, layer.config, ids)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("output_dim", [5, 18])
@pytest.mark.parametrize("num_highway", [0, 2])
@both
def test_values_equal_the_reference(num_highway, output_dim, activation, encode):
    layer = new_layer(num_highway, activation, output_dim)
    ids = np.array([float64.encode(token) for token in TOKENS], np.int32)
    outputs = encode(layer, ids)
    assert outputs.shape == (len(TOKENS), output_dim)
    assert outputs.dtype == tf.float32
    assert (layer.projection is None) == (output_dim == 18)
    np.testing.assert_allclose(outputs, _reference(layer, ids), **checks.TOLERANCE)


@both
def test_values_equal_the_reference_with_tokens_of_every_length(encode):
    layer = new_layer(filters=(*FILTERS, (7, 3)))
    ids = char_ids_lib.encode_tokens([b"q" * length for length in range(50)])
    expected = _reference(layer, ids)
    np.testing.assert_allclose(encode(layer, ids), expected, **checks.TOLERANCE)
    few = char_ids_lib.encode_tokens([b"", b"a", b"abcdef"], 8)
    np.testing.assert_allclose(encode(layer, few), _reference(layer, few), **checks.TOLERANCE)
    for length in (0, 6, 7, 10, 11, 46, 49):  # alone, at the ends of the groups and of the ids
        np.testing.assert_allclose(encode(layer, ids[length][None]), expected[length][None], **checks.TOLERANCE)


@pytest.mark.parametrize("seed", range(6))
def test_random_tokens_and_sizes_have_the_values_and_gradients_of_the_plain_layer(seed):
    random = np.random.default_rng(seed)
    filters = tuple((int(width), int(count)) for width, count in random.integers(1, 6, (random.integers(1, 4), 2)))
    output_dim, max_chars = int(random.integers(1, 9)), int(random.integers(6, 30))
    activation = ("relu", "tanh")[seed % 2]
    layer = new_layer(int(random.integers(0, 3)), activation, output_dim, filters, max_chars)
    tokens = [bytes(random.integers(97, 100, random.integers(0, 40))) for _ in range(random.integers(1, 30))]
    ids = char_ids_lib.encode_tokens(tokens * 2, max_chars)
    upstream = random.normal(size=(len(ids), output_dim)).astype(np.float32)
    outputs, expected = fast(layer, ids), layer(ids)
    np.testing.assert_allclose(outputs, expected, **checks.TOLERANCE)
    pair = (
        checks.gradients(layer, lambda encode=encode: tf.reduce_sum(encode(layer, ids) * upstream))
        for encode in (fast, plain)
    )
    for gradient, other in zip(*pair, strict=True):
        np.testing.assert_allclose(gradient, other, **checks.gradient_tolerance(other))


@both
def test_leading_dimensions_are_kept(encode):
    layer = new_layer()
    ids = char_ids_lib.encode_tokens(TOKENS[:6])
    np.testing.assert_array_equal(encode(layer, ids.reshape(2, 3, 50)), tf.reshape(encode(layer, ids), (2, 3, 5)))
    assert encode(layer, np.zeros((2, 0, 50), np.int32)).shape == (2, 0, 5)


@both
def test_pad_characters_take_part_and_the_padding_id_is_a_constant_zero(encode):
    layer = new_layer(num_highway=0, output_dim=18)
    nothing = encode(layer, np.zeros((1, 50), np.int32))
    biases = tf.nn.relu(tf.concat([bias.value for bias in layer.biases], 0))[None]
    np.testing.assert_array_equal(nothing, biases)
    token = char_ids_lib.encode_tokens([b"a"])
    before = encode(layer, token)
    layer.embedding.assign(tf.tensor_scatter_nd_add(layer.embedding, [[char_ids_lib.PAD - 1]], [[9.0, 9, 9, 9]]))
    assert not np.allclose(before, encode(layer, token))
    np.testing.assert_array_equal(nothing, encode(layer, np.zeros((1, 50), np.int32)))


def test_each_distinct_token_is_encoded_once(monkeypatch):
    layer, encoded, highway = new_layer(num_highway=1), [], char_cnn._highway
    monkeypatch.setattr(char_cnn, "_highway", lambda part, x, dtype: encoded.append(len(x)) or highway(part, x, dtype))
    fast(layer, char_ids_lib.encode_tokens(TOKENS * 3).reshape(3, -1, 50))
    assert encoded == [len(set(TOKENS))]


def test_a_table_of_distinct_tokens_gives_the_same_bits_as_the_tokens():
    layer = new_layer()
    words = np.array([0, 1, 2, 1, 0, 3, 1, 4], np.int32).reshape(2, 4)
    table = char_ids_lib.encode_tokens([b"the", b"bank", b"x" * 30, b"a", b"of", b"not used"])
    outputs = char_cnn.token_vectors(layer, table, words, "float32")
    assert outputs.shape == (2, 4, 5)
    np.testing.assert_array_equal(outputs, fast(layer, table[words]))


@both
def test_gradients_equal_differences_in_float64(encode):
    layer = new_layer(num_highway=1)
    ids = char_ids_lib.encode_tokens([b"abca", b"<S>", b"0123456789ab", b"abca"])
    upstream = np.random.default_rng(0).normal(size=(4, 5))
    gradients = checks.gradients(layer, lambda: tf.reduce_sum(encode(layer, ids) * upstream.astype(np.float32)))

    def loss(embedding, *rest):
        names = [f"{name}_{n}" for n in range(3) for name in ("kernel", "bias")]
        names += [f"highway_0/{name}" for name in HIGHWAY] + ["projection/kernel", "projection/bias"]
        weights = {"embedding": embedding, **dict(zip(names, rest, strict=True))}
        return np.sum(_vectors(layer, weights, ids) * upstream)

    arrays = [np.asarray(variable, np.float64) for variable in layer.trainable_variables]
    checks.assert_gradients(loss, arrays, gradients)


def test_equal_maxima_share_the_gradient_as_with_tensorflows_own():
    random = np.random.default_rng(0)
    products = tf.constant(random.integers(0, 3, (4, 5, 6)), tf.float32)  # so there are ties
    upstream = random.normal(size=(4, 6)).astype(np.float32)
    results = []
    for maximum in (char_cnn.maximum_over_windows, lambda values: tf.reduce_max(values, 1)):
        with tf.GradientTape() as tape:
            tape.watch(products)
            maxima = maximum(products)
        results.append((maxima, tape.gradient(maxima, products, upstream)))
    checks.assert_all_close(*results, **checks.TOLERANCE)


@checks.bfloat16_products
def test_bfloat16_products_stay_near_and_leave_float32_results():
    layer, ids = new_layer(), char_ids_lib.encode_tokens([*TOKENS, b"q" * 48])
    exact, close = layer(ids), fast(layer, ids, "bfloat16")
    assert close.dtype == tf.float32
    assert 0 < np.abs(close - exact).max() < checks.BFLOAT16 * np.abs(exact).max()
    gradients = [
        checks.gradients(layer, lambda dtype=dtype: tf.reduce_sum(fast(layer, ids, dtype)))
        for dtype in ("float32", "bfloat16")
    ]
    for gradient, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == np.float32
        assert np.linalg.norm(gradient - rounded) < 2 * checks.BFLOAT16 * np.linalg.norm(gradient)


def test_initial_values_are_those_of_the_released_model():
    layer = CharCNN(CharCNNConfig(16, ((1, 32), (7, 64)), 1), 8)
    layer.build((None, 50))
    np.testing.assert_array_equal(layer.highways[0].gate_bias, np.full(96, -2.0))
    assert layer.embedding.shape == (261, 16)
    assert 0.9 < np.abs(layer.embedding).max() <= 1.0
    assert all(0.045 < np.abs(kernel).max() <= 0.05 for kernel in layer.kernels)
    assert not any(np.any(bias) for bias in layer.biases)
