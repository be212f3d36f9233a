"""Tokens, character ids, vocabularies, splitting. Only `in_graph` and `raw_text` import TensorFlow."""
