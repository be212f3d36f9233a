"""From sentences on disk to training windows. Beam's workers use `wire` and `record_folder`, without TensorFlow."""
