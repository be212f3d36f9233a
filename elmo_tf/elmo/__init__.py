"""The Keras layers for a user's own model: `elmo_tf.ELMo` and `elmo_tf.SequencePooling`."""

from elmo_tf.elmo.layer import ELMo
from elmo_tf.model.sequence_pooling import SequencePooling

__all__ = ["ELMo", "SequencePooling"]
