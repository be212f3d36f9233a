"""The sentiment system: which phrases it trains on, and where the ELMo vectors go."""

import keras

from elmo_tf.annotated import classes
from elmo_tf.tasks import sentiment
from tests.helpers import MICRO
from tests.tasks.small import built, recipe_of

TREES = """(3 (2 (2 a) (2 (2 warm) (2 film))) (2 (2 again) (2 .)))
(1 (2 too) (1 (1 long) (2 .)))
(4 wonderful)
"""


def test_phrases_of_four_tokens_and_sentences_without_phrases_are_trained_on(tmp_path):
    path = tmp_path / "trees"
    path.write_text(TREES)
    system = sentiment.Task(recipe_of("sentiment"))
    items = classes.read_trees(path)
    assert [example.tokens for example in system.examples(items, training=True)] == [
        ["a", "warm", "film", "again", "."],
        ["wonderful"],
    ]
    assert len(system.examples(items, training=False)) == 3
    path.write_text("good\tso good\n")
    assert len(system.examples(system.read(path), training=True)) == 1


def test_output_elmo_has_a_bilstm_of_its_own():
    def count(place: str) -> int:
        _, network, _ = built("sentiment", MICRO, recipe_of("sentiment", f"elmo.place={place}"))
        return sum(isinstance(layer, keras.layers.Bidirectional) for layer in network.layers)

    assert [count("input"), count("both")] == [2, 3]
