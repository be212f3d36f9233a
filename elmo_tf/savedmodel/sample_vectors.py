"""A few sentences and their vectors, kept in the SavedModel, which `elmo-tf verify` compares on any machine."""

import pathlib

import numpy as np
import tensorflow as tf

from elmo_tf.savedmodel import contract

# Both tokenizers of words split these sentences alike. For characters there are spaces between all of theirs.
SENTENCES = ("A bank of the river .", "The bank lends money .", "", "naïve 日 本")
# Largest difference, relative to the largest value: another processor may add float32 numbers in another order.
TOLERANCE = 1e-5


def write(folder: pathlib.Path, root: tf.train.Checkpoint, tokenizer: str) -> None:
    """Writes the sentences and their outputs into the SavedModel in `folder`.

    Args:
        folder: the version's folder.
        root: the object that the SavedModel was saved from.
        tokenizer: how its signature `default` splits sentences.
    """
    texts = [" ".join(text.replace(" ", "")) for text in SENTENCES] if tokenizer == "characters" else SENTENCES
    sentences = np.array([text.encode() for text in texts])
    fields = dict(zip(contract.SAMPLE_FIELDS, (sentences, tokenizer, TOLERANCE), strict=True))
    path = folder / contract.SAMPLE_VECTORS_FILE
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **fields, **compute(root, sentences))


def compute(root: tf.train.Checkpoint, texts: np.ndarray) -> dict[str, tf.Tensor]:
    """Returns the sampled outputs for `texts`, computed on the CPU: a GPU may use TF32, too coarse to verify."""
    sentences = tf.constant(texts)
    with tf.device("CPU:0"):
        outputs = root.default(sentences)
        scores = root.score(sentences) if hasattr(root, contract.SCORE) else {}
    found = {name: outputs[name] for name in contract.SAMPLED_OUTPUTS}
    return found | {name: scores[name] for name in contract.SCORE_OUTPUTS if scores}
