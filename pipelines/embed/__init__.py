"""The job `elmo-tf embed`: a corpus to vectors."""

from elmo_tf.pipelines.embed.config import EmbedConfig
from elmo_tf.pipelines.embed.run import embed

__all__ = ["EmbedConfig", "embed"]
