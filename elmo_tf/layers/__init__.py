"""The blocks of the biLM, each a Keras layer of its own that knows nothing of configs or files."""
