"""A training run on disk: configuration, vocabulary, checkpoints and metrics."""
