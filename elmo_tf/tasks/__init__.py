"""The systems of the paper, each with and without ELMo.

    tagger = elmo_tf.tasks.load("runs/ner")
    print(tagger.predict([["Anna", "lives", "in", "New", "York"]]))

`elmo_tf.tasks.runs.train` trains a system, as `elmo-tf task NAME train` does. `Trained.export` writes a loaded system
as a SavedModel. Each system is one file with its recipe, network and scores. The other modules here are shared.
"""

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmo_tf.tasks.system import System
    from elmo_tf.tasks.trained import Trained

# Each name is a module of this package with a class `Task`.
SYSTEMS = {
    "ner": "named entities or other spans, biLSTM-CRF: F1",
    "sentiment": "the class of a sentence, biattentive classification network: accuracy",
    "entailment": "the relation of two sentences, ESIM: accuracy",
    "roles": "who does what to whom: the arguments of a predicate, highway LSTMs: F1",
    "answers": "the answer to a question in a paragraph, bidirectional attention and self-attention: F1",
    "coreference": "mentions of the same thing in a document, span ranking: average F1",
}
# Systems that read one sentence per line, as tokens or raw text.
RAW_TEXT = ("ner", "sentiment")


def load(workdir: str | os.PathLike, *others: str | os.PathLike) -> "Trained":
    """Returns the system that `elmo-tf task NAME train` trained in `workdir`, or a published system: "english-ner".

    With more workdirs, such as those of other seeds, it predicts from the mean of their probabilities.

    Raises:
        InputError: naming the folder or file, if it does not exist or its training has not ended.
    """
    from elmo_tf.tasks import trained  # noqa: PLC0415 - imports Keras

    return trained.load_together([workdir, *others])


def system_class(name: str) -> "type[System]":
    """Returns the class of a system, given its name in `SYSTEMS`."""
    return importlib.import_module(f"elmo_tf.tasks.{name}").Task
