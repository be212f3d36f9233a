"""Readers of labeled text in the field's formats, and of word vectors.

Every `path` is a file, plain or compressed (.gz, .bz2, .xz, .zst). A reader raises `InputError` if the file cannot be
read, has nothing to return, or has a line in another format, which the error names.
"""
