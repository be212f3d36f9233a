"""Several networks of one system: the mean of their probabilities."""

import types

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.tasks import systems
from elmo_tf.tasks.layers.crf import CRF

LABELS = {"sentiment": ["0", "1"], "roles": ["B-A0", "B-A1", "O"], "ner": ["O", "U-LOC", "U-PER"], "answers": []}
# The first network is surer of its choice than the second.
FIRST, SECOND = np.log([0.8, 0.1, 0.1]), np.log([0.3, 0.6, 0.1])
MEAN = [0.55, 0.35, 0.1]


def system_of(name: str):
    kind = systems.system_class(name)
    return kind(next(iter(kind.recipes.values())), LABELS.get(name, []))


def scores(values: np.ndarray) -> tf.Tensor:
    """The same scores for one token, and another constant added to them: float32 `(1, 1, 3)`."""
    return tf.constant(values[None, None] + 5.0, tf.float32)


def test_probabilities_of_classes_are_averaged():
    outputs = [tf.constant(one[None], tf.float32) for one in (FIRST, SECOND)]
    decoded = system_of("sentiment").decode_together([None, None], outputs)
    np.testing.assert_allclose(decoded["probabilities"], [MEAN], rtol=1e-5)


@pytest.mark.parametrize("sure", [0, 1])
def test_the_tag_with_the_higher_mean_probability_is_chosen(sure):
    """In `ner`, each network's probabilities are the marginals of its own CRF."""
    mask = tf.constant([[True]])
    crf = CRF(3, boundaries=False)
    crf.build(None)
    networks = [types.SimpleNamespace(get_layer=lambda _: crf)] * 2
    surer = np.log([0.3, 0.6, 0.1]) if sure == 0 else np.log([0.05, 0.94, 0.01])
    outputs = [{"scores": scores(one), "mask": mask} for one in (FIRST, surer)]
    for name in ("roles", "ner"):
        decoded = system_of(name).decode_together(networks, outputs)
        assert decoded["tags"].numpy().tolist() == [[sure]]


def test_probabilities_of_an_answers_ends_are_averaged():
    outputs = [{name: tf.constant(one[None], tf.float32) for name in ("start", "end")} for one in (FIRST, SECOND)]
    decoded = system_of("answers").decode_together([None, None], outputs)
    assert [int(decoded[name][0]) for name in ("first", "last")] == [0, 0]
    spans = np.triu(np.outer(MEAN, MEAN))
    np.testing.assert_allclose(decoded["probability"], [MEAN[0] ** 2 / spans.sum()], rtol=1e-5)


def test_that_there_is_no_answer_competes_with_the_averaged_starts_and_ends():
    outputs = [
        {name: tf.constant(one[None, :2], tf.float32) for name in ("start", "end")}
        | {"none": tf.constant(one[None, 2:], tf.float32)}
        for one in (FIRST, SECOND)
    ]
    system = system_of("answers")
    system.labels = ["none"]
    decoded = system.decode_together([None, None], outputs)
    spans = np.triu(np.outer(MEAN[:2], MEAN[:2]))
    np.testing.assert_allclose(decoded["no_answer"], [MEAN[2] ** 2 / (spans.sum() + MEAN[2] ** 2)], rtol=1e-5)


def test_coreference_is_refused():
    with pytest.raises(InputError, match=r"^workdir: coreference answers from one workdir only: each network chooses"):
        system_of("coreference").decode_together([None, None], [{}, {}])
