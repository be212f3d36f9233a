"""The sentiment system: which phrases it trains on, and where the ELMo vectors go."""

import keras

from elmo_tf.tasks import sentiment
from tests.helpers import MICRO
from tests.tasks.small import built, recipe_of


def test_phrases_of_four_tokens_are_trained_on_and_sentences_without_phrases(tmp_path):
    system, path = sentiment.Task(recipe_of("sentiment")), tmp_path / "text"
    trees = ("(3 (2 (2 a) (2 (2 warm) (2 film))) (2 (2 again) (2 .)))", "(1 (2 too) (1 (1 long) (2 .)))", "(4 good)")
    path.write_text("\n".join(trees))
    items = system.read(path)
    phrases = [example.tokens for example in system.examples(items, training=True)]
    assert phrases == [["a", "warm", "film", "again", "."], ["good"]]
    assert len(system.examples(items, training=False)) == 3
    path.write_text("good\tso good\n")
    assert len(system.examples(system.read(path), training=True)) == 1
    path.write_text("( laughs ) what a film .\n")  # not taken for a tree
    assert system.read_unlabeled(path)[0].tokens[:2] == ["(", "laughs"]


def test_output_elmo_has_a_bilstm_of_its_own():
    def count(place: str) -> int:
        _, network, _ = built("sentiment", MICRO, recipe_of("sentiment", f"elmo.place={place}"))
        return sum(isinstance(layer, keras.layers.Bidirectional) for layer in network.layers)

    assert [count("input"), count("both")] == [2, 3]
