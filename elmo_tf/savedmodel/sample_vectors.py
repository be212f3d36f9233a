"""A few sentences and their vectors, kept in the SavedModel, which `elmo-tf verify` compares on any machine."""

import pathlib

import numpy as np
import tensorflow as tf

from elmo_tf.savedmodel import contract

_SENTENCES = ("A bank of the river .", "The bank lends money .", "", "naïve 日 本")
# Largest difference, relative to the largest value: another processor may add float32 numbers in another order.
TOLERANCE = 1e-5


def sentences(tokenizer: str) -> list[bytes]:
    """Returns the sentences for a model with this tokenizer, which splits them at white space only."""
    texts = [" ".join(text.replace(" ", "")) for text in _SENTENCES] if tokenizer == "characters" else _SENTENCES
    return [text.encode() for text in texts]


def write(folder: pathlib.Path, root: tf.train.Checkpoint, tokenizer: str) -> None:
    """Writes the sentences, and the outputs of `root` for them, into the SavedModel in `folder`."""
    texts = np.array(sentences(tokenizer))
    strings = tf.constant(texts)
    with tf.device("CPU:0"):  # a GPU may use TF32, too coarse to verify
        outputs = root.default(strings)
        scores = root.score(strings) if hasattr(root, contract.SCORE) else {}
    fields = dict(zip(contract.SAMPLE_FIELDS, (texts, tokenizer, TOLERANCE), strict=True))
    fields |= {name: outputs[name] for name in contract.SAMPLED_OUTPUTS}
    fields |= {name: scores[name] for name in contract.SCORE_OUTPUTS if scores}
    path = folder / contract.SAMPLE_VECTORS_FILE
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **fields)
