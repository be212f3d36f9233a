"""The CRF against all paths, one by one."""

import itertools

import numpy as np
import tensorflow as tf

from elmo_tf.annotated import tag_schemes
from elmo_tf.tasks.layers.crf import CRF, viterbi
from tests import checks

SCORES = np.random.default_rng(0).normal(size=(4, 4, 3)).astype(np.float32)
LABELS = np.array([[0, 2, 1, 1], [2, 0, -1, -1], [1, -1, -1, -1], [-1, -1, -1, -1]])
LENGTHS = [4, 2, 1, 0]


def crf() -> CRF:
    layer = CRF(3)
    layer.build(None)
    return checks.randomize(layer, scale=1.0)


def path_score(layer: CRF, scores, path) -> float:
    """The score of one path in float64, as the definition has it."""
    transitions, begin, end = (np.asarray(one, np.float64) for one in (layer.transitions, layer.begin, layer.end))
    steps = sum(transitions[a, b] for a, b in itertools.pairwise(path))
    return (
        sum(float(row[label]) for row, label in zip(scores, path, strict=True)) + begin[path[0]] + steps + end[path[-1]]
    )


def scored_paths(layer: CRF, row: int) -> dict[tuple[int, ...], float]:
    """All paths of a row's length with their scores."""
    paths = itertools.product(range(3), repeat=LENGTHS[row])
    return {path: path_score(layer, SCORES[row, : LENGTHS[row]], path) for path in paths}


def test_likelihood_is_that_of_the_path_among_all_of_its_length():
    layer = crf()
    found = layer.log_likelihood(tf.constant(SCORES), tf.constant(LABELS)).numpy()
    for row, length in enumerate(LENGTHS[:3]):
        every = scored_paths(layer, row)
        expected = every[tuple(LABELS[row, :length])] - np.logaddexp.reduce(list(every.values()))
        np.testing.assert_allclose(found[row], expected, **checks.TOLERANCE)
    assert found[3] == 0


def test_likelihood_of_scores_in_half_precision_is_computed_in_float32():
    layer, scores = crf(), tf.constant(SCORES, tf.float16)
    found = layer.log_likelihood(scores, tf.constant(LABELS))
    expected = layer.log_likelihood(tf.cast(scores, tf.float32), tf.constant(LABELS))
    np.testing.assert_array_equal(found, expected)


def test_the_decoded_path_is_the_best_of_all_and_of_the_allowed_ones():
    layer, mask = crf(), np.arange(4) < np.array(LENGTHS)[:, None]
    random = np.random.default_rng(2)
    begin, steps, end = allowed = tuple(random.random(shape) < 0.6 for shape in ((3,), (3, 3), (3,)))
    begin[0] = steps[0, 0] = end[0] = True
    best, best_allowed = layer.decode(SCORES, mask), layer.decode(SCORES, mask, allowed)
    assert [len(path) for path in best] == [len(path) for path in best_allowed] == LENGTHS
    for row in range(3):
        every = scored_paths(layer, row)
        assert tuple(best[row]) == max(every, key=every.get)
        ends = [path for path in every if begin[path[0]] and end[path[-1]]]
        some = [path for path in ends if all(steps[pair] for pair in itertools.pairwise(path))]
        assert len(some) < len(every)
        assert tuple(best_allowed[row]) == max(some, key=every.get)


def test_scores_of_minus_infinity_are_no_error():
    scores = np.full((1, 3, 5), -np.inf)
    scores[0, :, [2, 4]] = 0
    allowed = tag_schemes.allowed(["B-X", "B-Y", "I-X", "I-Y", "O"])
    weights = [np.where(may, 0.0, -np.inf) for may in allowed]
    assert viterbi(scores, np.ones((1, 3), bool), *weights) == [[4, 4, 4]]


def test_without_boundaries_only_transitions_are_learned():
    layer = CRF.from_config(CRF(3, boundaries=False, initializer="glorot_normal").get_config())
    layer.build(None)
    assert [weight.path.rpartition("/")[2] for weight in layer.trainable_variables] == ["transitions"]
    assert np.asarray(layer.transitions).any()


def test_padding_changes_nothing_and_one_step_changes_every_weight():
    layer = crf()
    wide = tf.constant(np.pad(SCORES, ((0, 0), (0, 3), (0, 0)), constant_values=9))
    labels = tf.constant(np.pad(LABELS, ((0, 0), (0, 3)), constant_values=-1))
    expected = layer.log_likelihood(tf.constant(SCORES), tf.constant(LABELS))
    np.testing.assert_allclose(layer.log_likelihood(wide, labels), expected, **checks.TOLERANCE)
    assert checks.unchanged_by_a_step(layer, lambda: -tf.reduce_sum(layer.log_likelihood(wide, labels))) == []
    np.testing.assert_array_equal(layer(SCORES), SCORES)
