"""Text as numbers: character ids, vocabulary, records and windows. NumPy only, so that Beam workers start at once."""
