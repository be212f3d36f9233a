"""SampledSoftmax: the full loss, the sampler's distribution, and the sampled loss against TensorFlow's."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model import fast as fast_lib
from elmo_tf.model.bilm import SampledSoftmax, log_uniform_sample
from elmo_tf.model.kernels import softmax
from tests import checks, float64

VOCAB_SIZE, DIM = 30, 6
TARGETS = np.array([0, 3, 29, 3, 7, 11, 1, 2, 5, 8, 13], np.int32)
INPUTS = np.random.default_rng(3).normal(size=(len(TARGETS), DIM)).astype(np.float32)


def _layer(vocab_size=VOCAB_SIZE):
    layer = SampledSoftmax(vocab_size)
    layer.build((None, DIM))
    return checks.randomize(layer)


def plain(layer, inputs, targets, num_sampled=0, seed=None):
    return layer(inputs, targets, num_sampled=num_sampled, seed=seed)


def fast(layer, inputs, targets, num_sampled=0, seed=None, dtype="float32"):
    return softmax.token_losses(layer, tf.convert_to_tensor(inputs), targets, num_sampled, seed, False, dtype)


def training(layer, inputs, targets, num_sampled=0, seed=None):
    return softmax.token_losses(layer, tf.convert_to_tensor(inputs), targets, num_sampled, seed, True, "float32")


full = pytest.mark.parametrize("losses_of", [plain, fast, training])
sampled = pytest.mark.parametrize("losses_of", [plain, fast])


def _with_gradients(layer, losses, upstream):
    """Returns what `losses(inputs)` returns, and its gradients by the inputs, the kernel and the bias."""
    inputs = tf.constant(INPUTS)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        values = losses(inputs)
        total = tf.reduce_sum(values * upstream.astype(np.float32))
    gradients = tape.gradient(total, [inputs, layer.kernel.value, layer.bias.value])
    return [values, *map(tf.convert_to_tensor, gradients)]


@tf.function
def _samples(num_sampled, vocab_size, targets, seeds):
    """Returns the words `(seeds, num_sampled)` and the expected counts of targets and of words, one row a seed."""
    kinds = (tf.int64, tf.float32, tf.float32)
    return tf.map_fn(
        lambda seed: log_uniform_sample(targets, num_sampled, vocab_size, seed), seeds, fn_output_signature=kinds
    )


def _seeds(count):
    return tf.stack([tf.zeros(count, tf.int32), tf.range(count)], 1)


@pytest.mark.parametrize("words_at_once", [VOCAB_SIZE, 1, 2, 7, 29])
@full
def test_full_loss_and_gradients_equal_the_reference_in_pieces_of_any_size(words_at_once, losses_of, monkeypatch):
    monkeypatch.setattr(softmax, "_LOGITS_AT_ONCE", words_at_once * len(TARGETS))
    layer, upstream = _layer(), np.random.default_rng(5).normal(size=len(TARGETS))
    losses, *gradients = _with_gradients(layer, lambda inputs: losses_of(layer, inputs, TARGETS), upstream)
    assert (losses.shape, losses.dtype) == ((len(TARGETS),), tf.float32)
    kernel, bias = (np.asarray(variable, np.float64) for variable in (layer.kernel, layer.bias))
    expected = float64.softmax_losses([kernel, bias], INPUTS.astype(np.float64), TARGETS)
    np.testing.assert_allclose(losses, expected, **checks.TOLERANCE)
    specs = [tf.TensorSpec((None, DIM)), tf.TensorSpec((None,), tf.int32)]
    unknown_size = tf.function(lambda *given: losses_of(layer, *given), input_signature=specs)
    np.testing.assert_allclose(unknown_size(INPUTS, TARGETS), expected, **checks.TOLERANCE)
    odds = np.exp(INPUTS @ kernel.T + bias)
    d_logits = (odds / odds.sum(1, keepdims=True) - np.eye(VOCAB_SIZE)[TARGETS]) * upstream[:, None]
    expected = d_logits @ kernel, d_logits.T @ INPUTS, d_logits.sum(0)
    checks.assert_all_close(gradients, expected, **checks.TOLERANCE)


@pytest.mark.parametrize("num_sampled", [22, 23, VOCAB_SIZE + 1])
@full
def test_more_negatives_than_three_quarters_of_the_words_give_the_full_loss(num_sampled, losses_of):
    layer, seed = _layer(), tf.constant((0, 1))
    losses = losses_of(layer, INPUTS, TARGETS, num_sampled, seed)
    assert np.array_equal(losses, losses_of(layer, INPUTS, TARGETS)) == (num_sampled > 22)


@full
def test_the_full_loss_of_confident_and_surprised_tokens_is_exact_and_not_below_0(losses_of, monkeypatch):
    monkeypatch.setattr(softmax, "_LOGITS_AT_ONCE", 2 * len(TARGETS))
    layer, inputs = _layer(), 100 * INPUTS
    losses = losses_of(layer, inputs, TARGETS).numpy()
    weights = [np.asarray(variable, np.float64) for variable in (layer.kernel, layer.bias)]
    logits = inputs.astype(np.float64) @ weights[0].T + weights[1]
    assert np.ptp(logits) > 200  # exponentials of float32 overflow at 89
    # A logit of DIM products and its bias is rounded DIM + 1 times, by at most half a unit in the last place each.
    tolerance = (DIM + 1) * np.finfo(np.float32).eps * np.abs(logits).max()
    np.testing.assert_allclose(losses, float64.softmax_losses(weights, inputs, TARGETS), atol=tolerance)
    confident = losses_of(layer, inputs, logits.argmax(1).astype(np.int32)).numpy()
    assert confident.min() >= -np.finfo(np.float32).eps * np.abs(logits).max()
    assert losses_of(layer, inputs[:0], TARGETS[:0]).shape == (0,)


# Of a word beside one of 0. Added to a sum of 1 or more, the odds of many such words are rounded all in one direction.
UNLIKELY = -13.0


@full
@pytest.mark.parametrize("num_tokens", [1, 2, 5, 40])
def test_the_full_loss_of_few_tokens_counts_every_one_of_50000_words(num_tokens, losses_of):
    vocab_size = 50_000
    kernel, bias = np.zeros((vocab_size, DIM), np.float32), np.full(vocab_size, UNLIKELY, np.float32)
    bias[0] = 0.0
    layer, inputs = fast_lib.new_softmax(kernel, bias), np.ones((num_tokens, DIM), np.float32)
    targets = np.arange(num_tokens, dtype=np.int32)
    expected = float64.softmax_losses([kernel.astype(np.float64), bias.astype(np.float64)], inputs, targets)
    assert expected[0] > 0.1  # the unlikely words together
    # Sums of 64 terms; the result, below 16, is rounded a few times.
    eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(losses_of(layer, inputs, targets), expected, rtol=0, atol=(32 + 4 * 16) * eps)


def test_the_sampled_loss_counts_every_one_of_8192_unlikely_negatives():
    num_tokens, num_sampled = 7, 8192
    zeros = np.zeros(num_tokens, np.float32)
    offsets = np.full(num_sampled, UNLIKELY + 4.0, np.float32)
    losses = softmax.sampled_losses(
        np.zeros((num_tokens, DIM), np.float32),
        zeros,
        np.zeros((num_sampled, DIM), np.float32),
        offsets,
        np.arange(num_sampled),
        np.full(num_tokens, num_sampled),
        "float32",
    )
    expected = np.log1p(num_sampled * np.exp(UNLIKELY + 4.0))
    np.testing.assert_allclose(losses, np.full(num_tokens, expected), rtol=0, atol=40 * np.finfo(np.float32).eps)


def test_pieces_do_not_read_the_weights():
    """After a sparse update, every read of a variable copies it."""
    layer = _layer()
    run = tf.function(lambda *given: softmax.full_losses(layer, *given))
    graph = run.get_concrete_function(INPUTS, TARGETS).graph.as_graph_def()
    ops = [node.op for function in graph.library.function for node in function.node_def]
    assert [node.op for node in graph.node].count("ReadVariableOp") == 2
    assert "MatMul" in ops
    assert "ReadVariableOp" not in ops


def test_sampled_words_are_distinct_in_range_and_decided_by_the_seed():
    words, target_counts, word_counts = (array.numpy() for array in _samples(25, VOCAB_SIZE, TARGETS, _seeds(50)))
    assert (words.shape, target_counts.shape) == ((50, 25), (50, len(TARGETS)))
    assert (words.min(), words.max()) == (0, VOCAB_SIZE - 1)
    assert all(len(set(row)) == 25 for row in words)
    assert ((word_counts > 0) & (word_counts <= 1)).all()
    first, again, other = (
        log_uniform_sample(TARGETS, 20, 1000, tf.constant(seed, tf.int32))[0] for seed in ((1, 2), (1, 2), (1, 3))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_first_word_drawn_is_log_uniform():
    num_seeds = 4000
    words, _, _ = _samples(3, 20, TARGETS, _seeds(num_seeds))
    counts = np.bincount(words[:, 0], minlength=20)
    numbers = np.arange(20)
    expected = num_seeds * np.log((numbers + 2) / (numbers + 1)) / np.log(21)
    # Chi-square with 19 degrees of freedom: 43.8 is passed once in a thousand.
    assert np.sum((counts - expected) ** 2 / expected) < 43.8


def test_expected_counts_are_those_of_tensorflows_sampler():
    targets = np.array([0, 3, 10, 50, 99], np.int64)
    _, ours, _ = _samples(20, 100, targets, _seeds(2000))
    draw = tf.function(lambda: tf.random.log_uniform_candidate_sampler(targets[:, None], 1, 20, True, 100, seed=1))
    tf.random.set_seed(0)
    theirs = [draw().true_expected_count for _ in range(2000)]
    # Five standard errors of the difference between means of 2000.
    np.testing.assert_allclose(np.mean(ours, 0), np.mean(theirs, 0)[:, 0], rtol=5 * 0.005)


@sampled
def test_sampled_gradient_touches_only_targets_and_sampled_rows(losses_of):
    layer = _layer()
    seed = tf.constant((0, 5), tf.int32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(losses_of(layer, INPUTS, TARGETS, 5, seed))
    gradients = tape.gradient(loss, [layer.kernel.value, layer.bias.value])
    sampled = log_uniform_sample(TARGETS, 5, VOCAB_SIZE, seed)[0].numpy()
    for gradient in gradients:
        assert isinstance(gradient, tf.IndexedSlices)
        assert set(gradient.indices.numpy()) == set(sampled) | set(TARGETS)


@sampled
@pytest.mark.parametrize("vocab_size", [VOCAB_SIZE, 3000])
def test_sampled_loss_and_gradients_are_tensorflows(vocab_size, losses_of):
    layer = _layer(vocab_size)
    seed, upstream = tf.constant((0, 5), tf.int32), np.random.default_rng(1).normal(size=len(TARGETS))
    words, target_counts, word_counts = log_uniform_sample(TARGETS, 14, vocab_size, seed)
    assert vocab_size > VOCAB_SIZE or set(words.numpy()) & set(TARGETS)  # so that there are accidental hits

    def theirs(inputs):
        return tf.nn.sampled_softmax_loss(
            layer.kernel.value,
            layer.bias.value,
            TARGETS[:, None].astype(np.int64),
            inputs,
            14,
            vocab_size,
            sampled_values=(words, target_counts[:, None], word_counts),
        )

    def ours(inputs):
        return losses_of(layer, inputs, TARGETS, 14, seed)

    results = [_with_gradients(layer, losses, upstream) for losses in (ours, theirs)]
    checks.assert_all_close(*results, **checks.TOLERANCE)


@checks.bfloat16_products
def test_bfloat16_products_stay_near_and_leave_float32_results():
    seed, layer, results = tf.constant((0, 5), tf.int32), _layer(), []
    for dtype in ("float32", "bfloat16"):
        losses = lambda dtype=dtype: fast(layer, INPUTS, TARGETS, 9, seed, dtype)  # noqa: E731
        assert losses().dtype == tf.float32
        results.append([losses().numpy(), *checks.gradients(layer, lambda: tf.reduce_sum(losses()))])  # noqa: B023
    for exact, rounded in zip(*results, strict=True):
        assert rounded.dtype == np.float32
        assert 0 < np.linalg.norm(exact - rounded) < checks.BFLOAT16 * np.linalg.norm(exact)


def test_initial_values_are_those_of_the_released_model():
    layer = SampledSoftmax(5000)
    layer.build((None, 16))
    assert abs(np.std(layer.kernel) - 0.25) < 0.005
    assert not np.any(layer.bias)


def test_a_log_uniform_start_predicts_nearly_the_log_uniform_distribution():
    layer = SampledSoftmax(VOCAB_SIZE)
    layer.build((None, DIM))
    drawn = np.array(layer.kernel)
    layer.start_log_uniform()
    ranks = np.arange(VOCAB_SIZE)
    probability = np.log((ranks + 2) / (ranks + 1)) / np.log(VOCAB_SIZE + 1)
    np.testing.assert_allclose(np.exp(layer.bias), probability, **checks.FEW)
    np.testing.assert_allclose(layer.kernel, drawn / 10, **checks.FEW)
    nats = layer(np.zeros((VOCAB_SIZE, DIM), np.float32), ranks.astype(np.int32))
    np.testing.assert_allclose(nats, -np.log(probability), **checks.TOLERANCE)
