"""What the comparison of precisions computes."""

import numpy as np

from benchmarks import precision
from elmo_tf.embedder import Encoded


def test_the_lowest_cosine_of_each_layer_is_that_of_its_worst_token():
    exact, rounded = [[1.0, 0.0], [0.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]]
    texts = [Encoded(["a", "b"], np.array([exact, exact], np.float32)), Encoded([], np.zeros((2, 0, 2), np.float32))]
    others = [Encoded(["a", "b"], np.array([exact, rounded], np.float32)), texts[1]]
    np.testing.assert_allclose(precision.lowest_cosines(texts, others), [1.0, 0.6])
