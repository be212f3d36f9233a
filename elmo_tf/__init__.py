"""ELMo in TensorFlow: from a text corpus to a SavedModel of contextual word vectors.

    config = elmo_tf.preset("tiny")
    workdir = elmo_tf.train(config, "data/train", "runs/mine", heldout="data/heldout")
    print(elmo_tf.evaluate(workdir, "data/heldout").perplexity)
    path = elmo_tf.export(workdir, "savedmodels/mine")
    model = elmo_tf.load(path)

Names are imported on first use: `import elmo_tf` is quick, and a Beam worker that only needs `elmo_tf.records` does not
wait for TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tf.api import evaluate, export
    from elmo_tf.config import CharCNNConfig, Config, LSTMConfig, ModelConfig, TrainConfig, override, preset
    from elmo_tf.embedder import load
    from elmo_tf.errors import InputError
    from elmo_tf.keras_layer import ELMo
    from elmo_tf.model.fast import BiLM
    from elmo_tf.model.scalar_mix import ScalarMix
    from elmo_tf.model.sequence_pooling import SequencePooling
    from elmo_tf.tasks.layers.crf import CRF
    from elmo_tf.training.loop import train

__version__ = "0.1.0"

__all__ = [
    "CRF",
    "BiLM",
    "CharCNNConfig",
    "Config",
    "ELMo",
    "InputError",
    "LSTMConfig",
    "ModelConfig",
    "ScalarMix",
    "SequencePooling",
    "TrainConfig",
    "evaluate",
    "export",
    "load",
    "override",
    "preset",
    "train",
]

_NAMES = {
    "elmo_tf.api": ("evaluate", "export"),
    "elmo_tf.model.fast": ("BiLM",),
    "elmo_tf.config": ("CharCNNConfig", "Config", "LSTMConfig", "ModelConfig", "TrainConfig", "override", "preset"),
    "elmo_tf.embedder": ("load",),
    "elmo_tf.errors": ("InputError",),
    "elmo_tf.keras_layer": ("ELMo",),
    "elmo_tf.model.scalar_mix": ("ScalarMix",),
    "elmo_tf.model.sequence_pooling": ("SequencePooling",),
    "elmo_tf.tasks.layers.crf": ("CRF",),
    "elmo_tf.training.loop": ("train",),
}
_WITHOUT_KERAS = ("elmo_tf.config", "elmo_tf.embedder", "elmo_tf.errors")
_KERAS_LAYERS = ("ELMo", "ScalarMix", "SequencePooling", "CRF")
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would accept any name as ours

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        extras = importlib.import_module("elmo_tf.extras")
        if _MODULES[name] not in _WITHOUT_KERAS:
            extras.check_keras_backend()
        with extras.explain_missing_extra():
            # A `.keras` file may have any of the layers, and Keras finds those that were imported.
            for layer in _KERAS_LAYERS if name in _KERAS_LAYERS else ():
                importlib.import_module(_MODULES[layer])
            value = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = value  # cached: later look-ups skip `__getattr__`
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
