"""Exported models: written, verified, opened and used. Nothing is imported here: parts work without TensorFlow."""
