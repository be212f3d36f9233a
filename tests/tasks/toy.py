"""A system whose network is traced in a moment, for tests of what all systems share, and a kill of its training."""

from typing import ClassVar

import keras

from elmo_tf.files import stores
from elmo_tf.model.sequence_pooling import SequencePooling
from elmo_tf.tasks import fitting, sentiment
from elmo_tf.tasks.recipe import Elmo, Fit, Words
from elmo_tf.tasks.sentiment import SentimentRecipe


class Task(sentiment.Task):
    """Classifies sentences by the mean of their words' vectors."""

    name = "toy"
    recipes: ClassVar = {
        "paper": SentimentRecipe(words=Words(dim=4, min_count=1), fit=Fit(batch_size=4, epochs=4, learning_rate=0.1)),
        "small": SentimentRecipe(words=Words(dim=2), elmo=Elmo(place="both")),
    }

    def network(self, vectors):
        tokens = keras.Input((None,), dtype="string", name="tokens")
        embedded = vectors(tokens)
        hidden = keras.layers.Dropout(0.3)(SequencePooling(("mean",))(embedded.above(embedded.below)))
        return keras.Model({"tokens": tokens}, keras.layers.Dense(len(self.labels))(hidden))


class Killed(Exception):
    """Raised where a kill would end the run."""


def kill(monkeypatch, count):
    """Has a run end when it would write its state for the `count`-th time."""
    write, states = stores.write, []

    def killed(path, content):
        if path.name == fitting.FILE:
            states.append(path)
        if len(states) == count:
            raise Killed
        write(path, content)

    monkeypatch.setattr(stores, "write", killed)
