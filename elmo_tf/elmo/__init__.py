"""ELMo as a Keras layer for a user's own model; `elmo_tf.ELMo` is this one."""

from elmo_tf.elmo.layer import ELMo

__all__ = ["ELMo"]
