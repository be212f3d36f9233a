"""Text as numbers: character ids, vocabulary, records and windows.

All but `in_graph` do without TensorFlow, so that Beam workers start at once.
"""
