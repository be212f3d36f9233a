"""The words of task data that get a vector."""

import numpy as np

from elmo_tf.tasks.layers.word_embedding import WordEmbedding
from elmo_tf.tasks.token_vectors import padded, word_table
from tests.tasks import toy


def test_a_word_with_half_a_surrogate_pair_as_json_may_have_it_gets_a_vector():
    recipe = toy.Task.recipes["paper"]
    words = word_table(recipe, [["smile\ud83d", "a"], ["smile\ud83d"]], [["cut\ud83d"]]).words
    layer = WordEmbedding(words, 4, recipe.words.lower)
    found, unknown = np.asarray(layer(padded([["smile\ud83d", "other"]])))[0]
    np.testing.assert_array_equal(found, layer.vectors[1 + words.index("smile?")])
    np.testing.assert_array_equal(unknown, layer.vectors[0])
