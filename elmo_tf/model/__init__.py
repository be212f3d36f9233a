"""The network in TensorFlow: `BiLM` trains, `PackedBiLM` embeds; `kernels/` holds what is there for speed alone."""
