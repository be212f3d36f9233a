"""A corpus on disk to sentences: its files, blocks of lines, rules for irregular text, tokens. Needs no Beam."""
