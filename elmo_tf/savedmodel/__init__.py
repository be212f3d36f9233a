"""Everything that is known of an exported model. Nothing is imported here: some users do without TensorFlow."""
