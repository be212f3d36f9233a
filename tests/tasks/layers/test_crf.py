"""The CRF against all paths, one by one."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.tasks.layers.crf import CRF
from tests import checks
from tests.helpers import slow

SCORES = np.random.default_rng(0).normal(size=(4, 4, 3)).astype(np.float32)
LABELS = np.array([[0, 2, 1, 1], [2, 0, -1, -1], [1, -1, -1, -1], [-1, -1, -1, -1]])
LENGTHS = [4, 2, 1, 0]


def crf() -> CRF:
    layer = CRF(3)
    layer.build(None)
    return checks.randomize(layer, scale=1.0)


def path_score(layer: CRF, scores, path) -> float:
    """The score of one path in float64, as the definition has it."""
    transitions, begin, end = (np.asarray(part, np.float64) for part in (layer.transitions, layer.begin, layer.end))
    steps = sum(transitions[a, b] for a, b in itertools.pairwise(path))
    return (
        sum(float(row[label]) for row, label in zip(scores, path, strict=True)) + begin[path[0]] + steps + end[path[-1]]
    )


def scored_paths(layer: CRF, scores: np.ndarray) -> dict[tuple[int, ...], float]:
    """All paths through the scores of a sentence, and what they score."""
    return {path: path_score(layer, scores, path) for path in itertools.product(range(3), repeat=len(scores))}


def test_likelihood_is_that_of_the_path_among_all_of_its_length():
    layer = crf()
    likelihoods = layer.log_likelihood(tf.constant(SCORES), tf.constant(LABELS)).numpy()
    for row, length in enumerate(LENGTHS[:3]):
        every = scored_paths(layer, SCORES[row, :length])
        expected = every[tuple(LABELS[row, :length])] - np.logaddexp.reduce(list(every.values()))
        np.testing.assert_allclose(likelihoods[row], expected, **checks.TOLERANCE)
    assert likelihoods[3] == 0
    half = tf.constant(SCORES, tf.float16)
    expected = layer.log_likelihood(tf.cast(half, tf.float32), tf.constant(LABELS))
    np.testing.assert_array_equal(layer.log_likelihood(half, tf.constant(LABELS)), expected)


def test_the_decoded_path_is_the_best_of_all_and_of_the_allowed_ones():
    layer, mask = crf(), np.arange(4) < np.array(LENGTHS)[:, None]

    def decoded(allowed=None) -> list[list[int]]:
        layer._allowed = allowed
        return [[label for label in row if label >= 0] for row in layer.decode(SCORES, mask).numpy().tolist()]

    random = np.random.default_rng(2)
    begin, steps, end = allowed = tuple(random.random(shape) < 0.6 for shape in ((3,), (3, 3), (3,)))
    begin[0] = steps[0, 0] = end[0] = True
    best, best_allowed = decoded(), decoded(allowed)
    assert [len(path) for path in best] == [len(path) for path in best_allowed] == LENGTHS
    for row in range(3):
        every = scored_paths(layer, SCORES[row, : LENGTHS[row]])
        assert tuple(best[row]) == max(every, key=every.get)
        ends = [path for path in every if begin[path[0]] and end[path[-1]]]
        some = [path for path in ends if all(steps[pair] for pair in itertools.pairwise(path))]
        assert len(some) < len(every)
        assert tuple(best_allowed[row]) == max(some, key=every.get)


def test_marginals_are_sums_over_all_paths():
    layer, mask = crf(), np.arange(4) < np.array(LENGTHS)[:, None]
    marginals = layer.marginals(tf.constant(SCORES), tf.constant(mask)).numpy()
    expected = np.zeros((4, 4, 3))
    for row, length in enumerate(LENGTHS[:3]):
        every = scored_paths(layer, SCORES[row, :length])
        total = np.logaddexp.reduce(list(every.values()))
        for path, score in every.items():
            expected[row, range(length), path] += np.exp(score - total)
    np.testing.assert_allclose(marginals, expected, **checks.TOLERANCE)


def test_scores_of_minus_infinity_are_no_error():
    scores = np.full((1, 3, 5), -np.inf)
    scores[0, :, [2, 4]] = 0
    layer = CRF(["B-X", "B-Y", "I-X", "I-Y", "O"])
    layer.build(None)
    assert layer.decode(scores).numpy().tolist() == [[4, 4, 4]]
    # One token, in a graph of any batch.
    decode = tf.function(layer.decode, input_signature=[tf.TensorSpec((None, None, 5))])
    assert decode(scores[:, :1].astype(np.float32)).numpy().tolist() == [[4]]


def test_an_empty_batch_is_no_error_and_scores_alone_need_no_call_of_the_layer():
    layer = crf()
    assert layer.decode(tf.zeros((2, 0, 3))).shape == (2, 0)
    assert layer.decode(tf.zeros((2, 0, 3)), tf.zeros((2, 0), tf.bool)).dtype == tf.int32
    np.testing.assert_array_equal(layer.log_likelihood(tf.zeros((2, 0, 3)), tf.zeros((2, 0), tf.int32)), [0, 0])
    assert layer.marginals(tf.zeros((2, 0, 3))).shape == (2, 0, 3)
    scores, labels = tf.zeros((1, 2, 3)), tf.zeros((1, 2), tf.int32)
    np.testing.assert_allclose(CRF(np.int64(3)).log_likelihood(scores, labels), [-2 * np.log(3)], rtol=1e-6)
    np.testing.assert_allclose(CRF(3).marginals(scores), np.full((1, 2, 3), 1 / 3), rtol=1e-6)
    assert CRF(3).decode(scores).shape == (1, 2)


def test_labels_of_iob1_are_decoded_freely_with_a_warning(caplog):
    layer = CRF(["O", "I-PER", "I-LOC", "B-PER"])
    layer.build(None)
    assert "label I-LOC without B-LOC, as in IOB1: any sequence is decoded" in caplog.text
    scores = 9.0 * tf.one_hot([[1, 0, 2, 2, 3]], 4)
    assert layer.decode(scores).numpy().tolist() == [[1, 0, 2, 2, 3]]
    caplog.clear()
    CRF(TAGS), CRF(["O", "B-X", "L-X", "U-X"])
    assert caplog.text == ""


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


TAGS = ["O", "B-X", "I-X"]
WORDS = np.array([[1, 2, 3, 4], [4, 2, 0, 0], [3, 0, 0, 0], [1, 4, 2, 0]])
TARGETS = np.array([[0, 1, 2, 0], [0, 1, 7, 7], [1, -1, 0, 0], [2, 0, 1, 2]])  # beyond a row's words anything
REAL = WORDS > 0


def tagger(labels=TAGS, **options) -> tuple[keras.Model, CRF, keras.Model]:
    """A model whose weights are the same in each call, its CRF, and the model that returns the best tags."""
    keras.utils.set_random_seed(0)
    words = keras.Input((None,), dtype="int32")
    crf = CRF(labels, initializer="glorot_normal", name="crf")
    scores = keras.layers.Dense(3)(keras.layers.Embedding(5, 6, mask_zero=True)(words))
    model = keras.Model(words, crf(scores))
    model.compile(keras.optimizers.SGD(0.5), loss=crf.loss, metrics=[crf.accuracy], **options)
    return model, crf, keras.Model(words, crf(scores, decode=True))


def expected_loss_and_accuracy(model: keras.Model, crf: CRF, may: list[str]) -> tuple[float, float]:
    """By all paths of each sentence; `may` has the pairs of tags that decoding allows, "^" and "$" at the ends."""
    losses, right = [], 0
    for scores, targets, length in zip(model.predict(WORDS, verbose=0), TARGETS, REAL.sum(1), strict=True):
        every = scored_paths(crf, scores[:length])
        gold = tuple(targets[:length])
        losses.append(np.logaddexp.reduce(list(every.values())) - every[gold])
        allowed = [
            path
            for path in every
            if all("".join(pair) in may for pair in itertools.pairwise("^" + "".join("OBI"[n] for n in path) + "$"))
        ]
        right += sum(label == other for label, other in zip(gold, max(allowed, key=every.get), strict=True))
    return np.mean(losses), right / REAL.sum()


ANY = [before + after for before in "^OBI" for after in "OBI$"]
IOB2 = [pair for pair in ANY if pair not in ("^I", "OI")]


@pytest.mark.parametrize(("labels", "may"), [(TAGS, IOB2), slow(3, ANY), slow(["NOUN", "VERB", "X"], ANY)])
def test_compile_and_fit_have_the_loss_and_accuracy_of_all_paths_also_when_saved_and_loaded(labels, may, tmp_path):
    model, crf, best = tagger(labels, jit_compile=labels == 3)
    loss, accuracy = expected_loss_and_accuracy(model, crf, may)
    figures = model.evaluate(WORDS, TARGETS, verbose=0, return_dict=True)
    assert figures == pytest.approx({"loss": loss, "accuracy": accuracy}, abs=checks.rounding(4 * 8, 4, 4))
    many = [np.tile(rows, (20, 1)) for rows in (WORDS, TARGETS)]
    history = model.fit(*many, batch_size=4, epochs=4, shuffle=False, verbose=0).history
    assert history["loss"][-1] < 0.3 * loss
    # The last sentence begins with an I-.
    tags = best.predict(WORDS, verbose=0)
    wrong = (tags != np.where(REAL & (TARGETS >= 0), TARGETS, -1)).any(1)
    assert wrong.tolist() == [False, False, False, may is IOB2]
    np.testing.assert_array_equal(tags, crf.decode(model.predict(WORDS, verbose=0), REAL))

    model.save(tmp_path / "model.keras")
    best.save(tmp_path / "best.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.fit(WORDS, TARGETS, verbose=0).history == model.fit(WORDS, TARGETS, verbose=0).history
    again = keras.models.load_model(tmp_path / "best.keras")(WORDS)
    np.testing.assert_array_equal(again, tags)


def test_weights_of_sentences_count_in_loss_and_accuracy():
    model, crf, _ = tagger()
    model.compile("sgd", crf.loss, weighted_metrics=[crf.accuracy], run_eagerly=True)
    rows = [model.evaluate(WORDS[n : n + 1], TARGETS[n : n + 1], verbose=0) for n in range(4)]
    loss, accuracy = model.evaluate(WORDS, TARGETS, sample_weight=np.array([2.0, 0, 1, 0]), verbose=0)
    assert loss == pytest.approx((2 * rows[0][0] + rows[2][0]) / 4, rel=1e-5)
    assert accuracy == pytest.approx((2 * 4 * rows[0][1] + rows[2][1]) / 9)


def test_wrong_use_is_named():
    for labels in (0, [], "O"):
        with pytest.raises(InputError, match=r"^labels: expected at least one label, or their number, found"):
            CRF(labels)
    with pytest.raises(InputError, match="scores: expected 3 for each token, one for each label, found 4"):
        CRF(TAGS)(np.zeros((1, 2, 4), np.float32))
    model, crf, _ = tagger()
    with pytest.raises(InputError, match=r"^y_pred: expected the output of an elmo_tf\.CRF as it is, found another"):
        crf.loss(TARGETS, model.predict(WORDS, verbose=0))
    unlike = keras.Model(model.inputs, keras.layers.ReLU()(model.outputs[0]))
    unlike.compile("sgd", crf.loss)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"y_pred: expected the output of an elmo_tf\.CRF"):
        unlike.fit(WORDS, TARGETS, verbose=0)
    weights = r"sample_weight: expected one number per sentence, \(batch,\), found \(4, 4\)$"
    for call in (crf.loss, crf.accuracy):
        with pytest.raises(InputError, match=weights):
            call(TARGETS, model(WORDS), sample_weight=np.ones((4, 4)))
    with pytest.raises(InputError, match=r"y_true: expected integers \(batch, time\), found .* \(4, 4, 3\)"):
        crf.loss(tf.zeros((4, 4, 3)), model(WORDS))
