"""Which spans are kept; scores of mentions and antecedents, in NumPy float64 with every span and pair written out."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.tasks.layers import antecedents
from elmo_tf.tasks.layers.antecedents import NO_ANTECEDENT, AntecedentScores, distance_bins, in_blocks
from elmo_tf.tasks.layers.mention_spans import MentionSpans, best_spans
from tests import checks

HIDDEN, DIM, FEATURES, UNITS, WIDTH = 4, 3, 2, 5, 3
LENGTHS, DOCUMENTS = (5, 2, 4), (0, 0, 1)
MASK = np.arange(5) < np.array(LENGTHS)[:, None]
_random = np.random.default_rng(0)
INPUTS = {
    "hidden": _random.normal(size=(3, 5, HIDDEN)).astype(np.float32),
    "vectors": _random.normal(size=(3, 5, DIM)).astype(np.float32),
    "documents": np.array(DOCUMENTS, np.int32),
}
# The longest sum is the first layer's of a pair's; three are computed one from another, the exponentials before them.
CLOSE = {"rtol": 0, "atol": checks.rounding(64, 4, 4)}


def feedforward(rows: np.ndarray, weights: list) -> np.ndarray:
    first, first_bias, second, second_bias, last, last_bias = (np.asarray(weight, np.float64) for weight in weights)
    hidden = np.maximum(0, np.maximum(0, rows @ first + first_bias) @ second + second_bias)
    return (hidden @ last + last_bias)[..., 0]


def span_vector(layer: MentionSpans, hidden: np.ndarray, vectors: np.ndarray, first: int, last: int) -> np.ndarray:
    inner = slice(first, last + 1)
    weights = np.exp(hidden[inner] @ np.asarray(layer.head_kernel, np.float64)[:, 0])
    head = weights / weights.sum() @ vectors[inner]
    return np.concatenate([hidden[first], hidden[last], np.asarray(layer.widths, np.float64)[last - first], head])


def mention_layer(**options) -> MentionSpans:
    layer = MentionSpans(WIDTH, 0.8, FEATURES, UNITS, **options)
    layer.build({name: array.shape for name, array in INPUTS.items()})
    return checks.randomize(layer)


@pytest.fixture(scope="module")
def mentions():
    return mention_layer()


def outputs_of(layer: MentionSpans, **options) -> dict[str, np.ndarray]:
    inputs = {name: tf.constant(array) for name, array in INPUTS.items()}
    outputs = layer(inputs, mask={"hidden": tf.constant(MASK), "vectors": None, "documents": None}, **options)
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def test_spans_have_the_vectors_and_scores_of_the_definition_and_the_best_are_kept(mentions):
    hidden, vectors = (INPUTS[name].astype(np.float64)[MASK] for name in ("hidden", "vectors"))
    sentence = np.repeat(np.arange(3), LENGTHS)
    words = len(hidden)
    rows, scores = {}, np.full((words, WIDTH), -np.inf)
    for first in range(words):
        for last in range(first, min(first + WIDTH, words)):
            if sentence[first] == sentence[last]:
                rows[first, last] = span_vector(mentions, hidden, vectors, first, last)
                scores[first, last - first] = feedforward(rows[first, last], mentions._score_weights)
    kept = best_spans(scores, np.array(DOCUMENTS)[sentence], 0.8).tolist()
    chosen = [divmod(number, WIDTH) for number in kept]
    assert {width for _, width in chosen} == {0, 1, 2}
    outputs = outputs_of(mentions)
    assert outputs["spans"].tolist() == [[first, first + width + 1] for first, width in chosen]
    starts = [list(sentence).index(sentence[first]) for first, _ in chosen]
    positions = [[sentence[first], first - start] for (first, _), start in zip(chosen, starts, strict=True)]
    assert outputs["positions"].tolist() == positions
    np.testing.assert_allclose(outputs["vectors"], [rows[first, first + width] for first, width in chosen], **CLOSE)
    np.testing.assert_allclose(outputs["scores"], [scores[span] for span in chosen], **CLOSE)


def test_a_spans_vector_has_the_width_with_which_it_was_scored(mentions):
    """Dropout of widths is drawn once: a kept span's vector has what its score was computed from."""
    layer = mention_layer(dropout_rate=0.5)
    layer.widths.assign(tf.ones_like(layer.widths))
    parts = [outputs_of(layer, training=True)["vectors"][:, 2 * HIDDEN : -DIM] for _ in range(3)]
    assert {0.0, 2.0} == {float(number) for part in parts for number in np.unique(part)}
    assert {1.0} == {float(number) for number in np.unique(outputs_of(layer)["vectors"][:, 2 * HIDDEN : -DIM])}


SPANS = 9
PAIR_INPUTS = {
    "vectors": _random.normal(size=(SPANS, DIM)).astype(np.float32),
    "scores": _random.normal(size=SPANS).astype(np.float32),
    "positions": np.array([[0, 0], [0, 1], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1], [2, 1], [2, 2]], np.int32),
    "documents": np.array(DOCUMENTS, np.int32),
    "genres": np.array([2, 2, 0], np.int32),
    "speakers": np.array([[b"a", b"b", b""], [b"a", b"a", b""], [b"", b"", b"b"]], object),
}


PAIRS = {name: tf.constant(array) for name, array in PAIR_INPUTS.items()}


def pair_layer(**options) -> AntecedentScores:
    layer = AntecedentScores(4, FEATURES, UNITS, num_genres=2, **options)
    layer.build({name: array.shape for name, array in PAIR_INPUTS.items()})
    return checks.randomize(layer)


def antecedent_scores(layer: AntecedentScores) -> np.ndarray:
    """What the layer returns, in float64."""
    vectors, own = PAIR_INPUTS["vectors"].astype(np.float64), PAIR_INPUTS["scores"].astype(np.float64)
    rows, columns = PAIR_INPUTS["positions"].T
    documents, genres = PAIR_INPUTS["documents"][rows], PAIR_INPUTS["genres"][rows]
    speakers = PAIR_INPUTS["speakers"][rows, columns]
    distances, same, kinds = (np.asarray(table, np.float64) for table in layer._tables)
    scores = np.full((SPANS, layer.max_antecedents + 1), NO_ANTECEDENT)
    scores[:, 0] = 0
    for late in range(SPANS):
        for step in range(1, min(layer.max_antecedents, late) + 1):
            early = late - step
            if documents[early] != documents[late]:
                continue
            pair = [vectors[late], vectors[early], vectors[late] * vectors[early], distances[min(step, 5)]]
            pair += [same[int(speakers[early] == speakers[late])]]
            pair += [kinds[genres[late] - 1] if genres[late] else np.zeros(FEATURES)]
            score = feedforward(np.concatenate(pair), layer._score_weights)
            scores[late, step] = score + own[late] + own[early]
    return scores


@pytest.mark.parametrize("block", [2, 16])
def test_pairs_have_the_scores_of_the_definition_and_documents_have_no_common_pair(monkeypatch, block):
    monkeypatch.setattr(antecedents, "_BLOCK", block)
    layer = pair_layer()
    scores = layer(PAIRS)
    expected = antecedent_scores(layer)
    np.testing.assert_array_equal(scores == np.float32(NO_ANTECEDENT), expected == NO_ANTECEDENT)
    np.testing.assert_allclose(scores, expected, rtol=checks.rounding(1), atol=CLOSE["atol"])
    alone = AntecedentScores(4, FEATURES, UNITS)({name: tensor[:1] for name, tensor in PAIRS.items()})
    np.testing.assert_array_equal(alone, np.array([[0, NO_ANTECEDENT]], np.float32))


def test_the_gradient_has_the_dropout_with_which_pairs_were_scored(monkeypatch):
    """A block is computed twice. The sum of the scores is linear in the last layer: the product with its gradient."""
    monkeypatch.setattr(antecedents, "_BLOCK", 2)
    layer, inputs = pair_layer(dropout_rate=0.5), PAIRS | {"scores": tf.zeros(SPANS)}
    ends = layer._score_weights[-2:]
    sums = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            scores = layer(inputs, training=True)
            sums.append(tf.reduce_sum(tf.where(scores > NO_ANTECEDENT, scores, 0)))
        gradients = tape.gradient(sums[-1], [end.value for end in ends])
        product = sum(float(np.sum(gradient * other)) for gradient, other in zip(gradients, ends, strict=True))
        assert float(sums[-1]) == pytest.approx(product, abs=checks.rounding(64, 50))
    # Drawn anew each time.
    assert abs(float(sums[0] - sums[1])) > 0.1


def test_a_trained_layer_leaves_nothing_behind():
    def train() -> weakref.ref:
        layer = pair_layer(dropout_rate=0.5)

        @tf.function
        def step(inputs):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(layer(inputs, training=True))
            return tape.gradient(loss, layer.trainable_variables)

        step(PAIRS)
        return weakref.ref(layer)

    train()
    before, layer = checks.gradients_kept(), train()
    gc.collect()
    assert checks.gradients_kept() == before
    assert layer() is None


def test_with_half_precision_all_numbers_stay_finite(mentions, dtype_policy):
    dtype_policy("mixed_float16")
    expected, rounded = outputs_of(mentions), outputs_of(mention_layer())
    assert rounded["spans"].tolist() == expected["spans"].tolist()
    np.testing.assert_allclose(rounded["vectors"], expected["vectors"], rtol=0, atol=0.02)
    pairs = AntecedentScores(4, FEATURES, UNITS, num_genres=2)
    with tf.GradientTape() as tape:
        scores = pairs(PAIRS)
        loss = tf.reduce_logsumexp(tf.where(scores > NO_ANTECEDENT, scores, NO_ANTECEDENT))
    assert np.isfinite(scores).all() and scores.numpy().min() == np.float32(NO_ANTECEDENT)
    assert all(np.isfinite(gradient).all() for gradient in tape.gradient(loss, pairs.trainable_variables))


def test_distances_are_binned():
    distances = [-3, 0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 999]
    bins = [0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9]
    assert distance_bins(tf.constant(distances)).numpy().tolist() == bins


@pytest.mark.parametrize("in_graph", [False, True])
def test_blocks_have_the_values_and_gradients_of_the_whole(in_graph):
    left, right = (tf.constant(_random.normal(size=(7, 3)), tf.float32) for _ in range(2))
    weights = tf.constant(_random.normal(size=(7, 7)), tf.float32)
    seen = []

    def product(first, behind, _, left, right):
        seen.append(behind)
        return tf.tanh(tf.matmul(left[first:behind], right, transpose_b=True)) + tf.cast(first, tf.float32) * 0

    def both(function):
        with tf.GradientTape() as tape:
            tape.watch([left, right])
            outputs = function()
            loss = tf.reduce_sum(outputs * weights)
        return outputs, tape.gradient(loss, [left, right])

    def blocks():
        return both(lambda: in_blocks(product, (), [left, right], tf.constant(7), 3))

    outputs, gradients = tf.function(blocks)() if in_graph else blocks()
    expected, others = both(lambda: tf.tanh(tf.matmul(left, right, transpose_b=True)))
    np.testing.assert_allclose(outputs, expected, **checks.FEW)
    checks.assert_all_close(gradients, others, rtol=0, atol=checks.rounding(7, 8))
    assert len(seen) == 2  # traced once forward and once backward


def crosses(span: tuple[int, int], other: tuple[int, int]) -> bool:
    (first, last), (begin, end) = sorted([span, other])
    return first < begin <= last < end


def kept_spans(scores: np.ndarray, most: int) -> list[tuple[int, int]]:
    spans = [(first, first + width) for first, width in zip(*np.where(scores > -np.inf), strict=True)]
    kept: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda pair: -scores[pair[0], pair[1] - pair[0]]):
        if len(kept) < most and not any(crosses(span, other) for other in kept):
            kept.append(span)
    return sorted(kept)


def scores_of(random: np.random.Generator, words: int, max_width: int) -> np.ndarray:
    scores = random.permutation(words * max_width).reshape(words, max_width) / 10 - 1
    # A sentence ends every seven words.
    ends = (np.arange(words) // 7 + 1) * 7
    there = np.arange(words)[:, None] + np.arange(max_width) < np.minimum(ends, words)[:, None]
    return np.where(there, scores, -np.inf)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_that_do_not_cross_are_kept(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 40, 3)
    scores = [scores_of(random, size, 4) for size in sizes]
    kept = best_spans(np.concatenate(scores), np.repeat([0, 1, 4], sizes), 0.7)
    wanted, before = [], 0
    for part, size in zip(scores, sizes, strict=True):
        wanted += [(before + a, before + b) for a, b in kept_spans(part, max(1, int(0.7 * size)))]
        before += size
    assert [(index // 4, index // 4 + index % 4) for index in kept.tolist()] == wanted
    assert kept.dtype == np.int32


def test_a_document_with_fewer_spans_than_may_be_kept_keeps_all():
    assert best_spans(np.array([[1.0, -np.inf]]), np.array([0]), 5.0).tolist() == [0]
    assert best_spans(np.zeros((0, 2)), np.zeros(0, int), 0.4).tolist() == []
