"""Readers of text with labels, in the field's formats, and of word vectors."""
