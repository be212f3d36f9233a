"""The job `elmo-tf embed`: a corpus to vectors."""

from elmo_tf.beam.embed.config import EmbedConfig
from elmo_tf.beam.embed.run import embed

__all__ = ["EmbedConfig", "embed"]
