"""A BiLM as a SavedModel that any TensorFlow program loads: three signatures, every layer, the ELMo vector.

`root` is the object that is saved, `arguments` what it refuses, `mix` its trainable part; `assets`, `probes` and
`warmup` are the files beside it, `writing` is the order of it all.
"""

from elmo_tf.export.mix import parse_mix
from elmo_tf.export.writing import export

__all__ = ["export", "parse_mix"]
