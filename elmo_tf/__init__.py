"""ELMo in TensorFlow: from a text corpus to a SavedModel of contextual word vectors.

Nothing is imported here, so that a Beam worker which needs `elmo_tf.data` does not wait for TensorFlow.
"""

__version__ = "0.1.0"
