"""Downloads of public corpora."""
