"""From a sentence on disk to a training window. Beam's workers use `wire` and `record_folder`, without TensorFlow."""
