"""Readers of labeled text in the field's formats, and of word vectors.

Every `path` is a file, plain or compressed (.gz, .bz2, .xz).
"""
