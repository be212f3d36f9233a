"""What is on disk of a training: configuration, vocabulary, checkpoints and metrics. Read by everyone."""
