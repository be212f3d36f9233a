"""The models published for ELMo: the names of their weights and options."""
