"""The job `elmo-tf preprocess`: a corpus to records."""
