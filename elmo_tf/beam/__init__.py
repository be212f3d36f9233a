"""For users' own Apache Beam pipelines, and the two jobs of the command line.

Needs `elmo-tf[beam]`. Names are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tf.beam.embed.embeddings import ElmoEmbeddings
    from elmo_tf.beam.embed.model_handler import ElmoModelHandler
    from elmo_tf.beam.transforms import CountWords, ReadSentences, WriteRecords

__all__ = ["CountWords", "ElmoEmbeddings", "ElmoModelHandler", "ReadSentences", "WriteRecords"]

_MODULES = {
    "CountWords": "elmo_tf.beam.transforms",
    "ElmoEmbeddings": "elmo_tf.beam.embed.embeddings",
    "ElmoModelHandler": "elmo_tf.beam.embed.model_handler",
    "ReadSentences": "elmo_tf.beam.transforms",
    "WriteRecords": "elmo_tf.beam.transforms",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with importlib.import_module("elmo_tf.extras").explain_missing_extra():
            return getattr(importlib.import_module(_MODULES[name]), name)
