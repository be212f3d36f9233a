"""Apache Beam pipelines: text to records. Thin `run(argv)` functions over labelled PTransforms."""
