"""The systems by name, without importing any."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmo_tf.tasks.system import System

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


def system_class(name: str) -> "type[System]":
    """Returns the class of a system, given its name in `SYSTEMS`."""
    return importlib.import_module(f"elmo_tf.tasks.{name}").Task
