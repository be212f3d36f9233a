"""A system whose network is traced in a moment, for tests of what all systems share."""

from typing import ClassVar

import keras

from elmo_tf.layers.sequence_pooling import SequencePooling
from elmo_tf.tasks import sentiment
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
        known = vectors(tokens)
        hidden = keras.layers.Dropout(0.3)(SequencePooling(("mean",))(known.above(known.below)))
        return keras.Model({"tokens": tokens}, keras.layers.Dense(len(self.labels))(hidden))
