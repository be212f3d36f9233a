"""Apache Beam pipelines: text to records, text to vectors. Thin `run(argv)` functions over labelled PTransforms."""
