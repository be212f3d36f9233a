"""From a sentence on disk to a training window. NumPy only: Beam workers start without TensorFlow."""
