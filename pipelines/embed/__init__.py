"""The job `elmo-tf embed`, a corpus to vectors, and the search for similar words in them."""
