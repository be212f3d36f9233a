"""The mix that users ask for, as text or as numbers."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import parse_mix
from elmo_tf.savedmodel.mix import build_mix
from tests import checks


@pytest.mark.parametrize(
    ("mix", "weights"),
    [
        ("average", [1 / 3, 1 / 3, 1 / 3]),
        ("top", [0, 0, 1]),
        ("1", [0, 1, 0]),
        (1, [0, 1, 0]),
        ("0,0,0", [1 / 3, 1 / 3, 1 / 3]),
        ("0.1,0.5,-0.2", np.exp([0.1, 0.5, -0.2]) / np.exp([0.1, 0.5, -0.2]).sum()),
        ((0.1, 0.5, -0.2), np.exp([0.1, 0.5, -0.2]) / np.exp([0.1, 0.5, -0.2]).sum()),
        ("1e2, 0,0", [1, 0, 0]),
    ],
)
def test_a_mix_gives_the_layers_their_weights(mix, weights):
    found = build_mix(3, mix, 1.0)(tf.reshape(tf.eye(3), (1, 3, 1, 3)))
    np.testing.assert_allclose(found[0, 0], weights, **checks.FEW)


@pytest.mark.parametrize(
    "mix",
    ["", "Top", "3", "-1", "0.5", "1,2", "1,2,3,4", "1,,2", "a,b,c", "nan,0,0", "0,inf,0", "0,0,1e39"]  # noqa: RUF005 - one line of text, one of others
    + [3, -1, True, None, [1.0], [0.0, 1.0, np.nan], np.array([0.0, np.inf, 0.0])],
)
def test_a_mix_that_is_none_is_refused(mix):
    with pytest.raises(InputError) as caught:
        parse_mix(mix, 3)
    expected = "average, top, a layer from 0 to 2 or 3 finite numbers, one per layer"
    assert str(caught.value) == f"mix: expected {expected}, found {mix!r}"
