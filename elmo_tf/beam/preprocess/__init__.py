"""The job `elmo-tf preprocess`: a corpus to records."""

from elmo_tf.beam.preprocess.config import PreprocessConfig
from elmo_tf.beam.preprocess.run import preprocess

__all__ = ["PreprocessConfig", "preprocess"]
