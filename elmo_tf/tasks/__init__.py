"""The six systems of the paper, with and without ELMo, and what they share."""
