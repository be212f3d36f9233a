"""Public corpora, fetched."""
