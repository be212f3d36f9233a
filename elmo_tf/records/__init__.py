"""From a sentence on disk to a training window. Without TensorFlow, so that Beam workers start quickly."""
