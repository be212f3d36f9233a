"""ELMo in TensorFlow: from a text corpus to a SavedModel of contextual word vectors.

Nothing is imported here, so that a Beam worker which needs `elmo_tf.records` does not wait for TensorFlow;
`elmo_tf.ELMo`, the Keras layer, is loaded when it is first asked for.
"""

import importlib
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "ELMo":
        return importlib.import_module("elmo_tf.elmo").ELMo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
