"""A corpus on disk to sentences: which files, blocks of lines, rules for irregular text, tokens."""
