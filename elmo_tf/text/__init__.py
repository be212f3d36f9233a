"""Tokens and numbers: character ids, the vocabulary, splitting. Only `in_graph` and `raw_text` import TensorFlow."""
