"""For users' own Apache Beam pipelines: `ElmoModelHandler` for RunInference, `ElmoEmbeddings` for MLTransform and RAG.

Needs `elmo-tf[beam]`. Names are imported on first use: what downloads a corpus does not wait for Beam.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tf.beam.embed.embeddings import ElmoEmbeddings
    from elmo_tf.beam.embed.model_handler import ElmoModelHandler

__all__ = ["ElmoEmbeddings", "ElmoModelHandler"]

_MODULES = {
    "ElmoEmbeddings": "elmo_tf.beam.embed.embeddings",
    "ElmoModelHandler": "elmo_tf.beam.embed.model_handler",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with importlib.import_module("elmo_tf.extras").required():
            return getattr(importlib.import_module(_MODULES[name]), name)
