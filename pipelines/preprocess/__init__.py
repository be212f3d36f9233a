"""The job `elmo-tf preprocess`: a corpus to records."""

from elmo_tf.pipelines.preprocess.config import PreprocessConfig
from elmo_tf.pipelines.preprocess.run import preprocess

__all__ = ["PreprocessConfig", "preprocess"]
