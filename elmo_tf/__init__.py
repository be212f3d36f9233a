"""ELMo in TensorFlow: contextual word vectors of text, from a published model or from one trained on a corpus.

    elmo = elmo_tf.load("english")
    for sentence in elmo.encode(["The bank lends money.", "A bank of the river."]):
        print(sentence.tokens, sentence.vectors.shape)

A model of your own, from text files to a SavedModel:

    from elmo_tf.beam.preprocess import PreprocessConfig, preprocess

    preprocess(PreprocessConfig(input="text/*.txt", output="data/train"))
    workdir = elmo_tf.train(elmo_tf.preset("tiny"), "data/train", "runs/mine")
    elmo = elmo_tf.load(elmo_tf.export(workdir, "savedmodels/mine"))

Names are imported on first use: `import elmo_tf` is quick, and a Beam worker that only needs `elmo_tf.records` does not
wait for TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tf.api import evaluate, export
    from elmo_tf.config import CharCNNConfig, Config, LSTMConfig, ModelConfig, TrainConfig, override, preset
    from elmo_tf.embedder import Embedder, load
    from elmo_tf.errors import InputError
    from elmo_tf.keras_layer import ELMo
    from elmo_tf.model.fast import BiLM
    from elmo_tf.model.scalar_mix import ScalarMix
    from elmo_tf.model.sequence_pooling import SequencePooling
    from elmo_tf.scoring import Score, Surprisal
    from elmo_tf.tasks.layers.crf import CRF
    from elmo_tf.training.evaluation import Evaluation
    from elmo_tf.training.finetuning import finetune
    from elmo_tf.training.fit import LanguageModel, windows
    from elmo_tf.training.loop import train
    from elmo_tf.workdir.folder import Workdir

__version__ = "0.1.0"

__all__ = [
    "CRF",
    "BiLM",
    "CharCNNConfig",
    "Config",
    "ELMo",
    "Embedder",
    "Evaluation",
    "InputError",
    "LSTMConfig",
    "LanguageModel",
    "ModelConfig",
    "ScalarMix",
    "Score",
    "SequencePooling",
    "Surprisal",
    "TrainConfig",
    "Workdir",
    "evaluate",
    "export",
    "finetune",
    "load",
    "override",
    "preset",
    "train",
    "windows",
]

# The module of each public name, and what importing it takes: NumPy; Keras, with TensorFlow as its backend; or Keras
# and all other layers, because a `.keras` file may have any of them, and Keras finds those that were imported.
_NUMPY, _KERAS, _LAYER = range(3)
_NAMES = {
    "CRF": ("elmo_tf.tasks.layers.crf", _LAYER),
    "BiLM": ("elmo_tf.model.fast", _KERAS),
    "CharCNNConfig": ("elmo_tf.config", _NUMPY),
    "Config": ("elmo_tf.config", _NUMPY),
    "ELMo": ("elmo_tf.keras_layer", _LAYER),
    "Embedder": ("elmo_tf.embedder", _NUMPY),
    "Evaluation": ("elmo_tf.training.evaluation", _KERAS),
    "InputError": ("elmo_tf.errors", _NUMPY),
    "LSTMConfig": ("elmo_tf.config", _NUMPY),
    "LanguageModel": ("elmo_tf.training.fit", _KERAS),
    "ModelConfig": ("elmo_tf.config", _NUMPY),
    "ScalarMix": ("elmo_tf.model.scalar_mix", _LAYER),
    "Score": ("elmo_tf.scoring", _NUMPY),
    "SequencePooling": ("elmo_tf.model.sequence_pooling", _LAYER),
    "Surprisal": ("elmo_tf.scoring", _NUMPY),
    "TrainConfig": ("elmo_tf.config", _NUMPY),
    "Workdir": ("elmo_tf.workdir.folder", _NUMPY),
    "evaluate": ("elmo_tf.api", _KERAS),
    "export": ("elmo_tf.api", _KERAS),
    "finetune": ("elmo_tf.training.finetuning", _KERAS),
    "load": ("elmo_tf.embedder", _NUMPY),
    "override": ("elmo_tf.config", _NUMPY),
    "preset": ("elmo_tf.config", _NUMPY),
    "train": ("elmo_tf.training.loop", _KERAS),
    "windows": ("elmo_tf.training.fit", _KERAS),
}


if not TYPE_CHECKING:  # a type checker would accept any name as ours

    def __getattr__(name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, needs = _NAMES[name]
        if needs == _NUMPY:
            value = getattr(importlib.import_module(module), name)
        else:
            extras = importlib.import_module("elmo_tf.extras")
            extras.check_keras_backend()
            with extras.explain_missing_extra():
                for other, kind in _NAMES.values():
                    if kind == needs == _LAYER:
                        importlib.import_module(other)
                value = getattr(importlib.import_module(module), name)
        globals()[name] = value  # cached: later look-ups skip `__getattr__`
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
