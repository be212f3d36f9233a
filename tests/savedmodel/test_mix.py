"""The mix that an export gets, from text."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import ScalarMix
from elmo_tf.savedmodel import mix as mix_lib
from tests import checks


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("average", [1 / 3, 1 / 3, 1 / 3]),
        ("top", [0, 0, 1]),
        ("0,0,0", [1 / 3, 1 / 3, 1 / 3]),
        ("0.1,0.5,-0.2", np.exp([0.1, 0.5, -0.2]) / np.exp([0.1, 0.5, -0.2]).sum()),
        ("1e2, 0,0", [1, 0, 0]),
    ],
)
def test_a_mix_gives_the_layers_their_weights(text, weights):
    mix = ScalarMix(3)
    mix.build(None)
    mix.scalar_parameters.assign(mix_lib.parse_mix(text, 2))
    found = mix(tf.reshape(tf.eye(3), (1, 3, 1, 3)))
    np.testing.assert_allclose(found[0, 0], weights, **checks.FEW)


@pytest.mark.parametrize("text", ["", "Top", "1", "1,2", "1,2,3,4", "1,,2", "a,b,c", "nan,0,0", "0,inf,0", "0,0,1e39"])
def test_a_mix_that_is_none_is_refused(text):
    with pytest.raises(InputError) as caught:
        mix_lib.parse_mix(text, 2)
    assert str(caught.value) == f"mix: expected average, top or 3 numbers between commas, found {text!r}"
