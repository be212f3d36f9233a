"""A few sentences and their vectors, kept in the SavedModel, which `elmo-tf verify` compares on any machine."""

import pathlib

import numpy as np
import tensorflow as tf

from elmo_tf.savedmodel.verification import PROBES_FILE

# Sentences that all tokenizers part alike.
PROBES = ("A bank of the river .", "The bank lends money .", "", "naïve 日本語")
TOLERANCE = 1e-5  # of the largest value: float32 rounding, in another order on another processor
_KEPT = ("layers", "elmo", "default", "mask")  # the other outputs are parts of these


def write_probes(folder: pathlib.Path, root: tf.train.Checkpoint, tokenizer: str, tolerance: float = TOLERANCE) -> None:
    """Writes the probes and their outputs into the SavedModel that is in `folder`.

    Args:
        root: the object that the SavedModel was saved from.
        tokenizer: of its signature `default`.
        tolerance: by how much, relative to the largest value, the same model's outputs may differ elsewhere.
    """
    outputs = root.default(tf.constant(PROBES))
    probes = np.array([probe.encode() for probe in PROBES])
    place = folder / PROBES_FILE
    place.parent.mkdir(exist_ok=True)
    kept = {name: outputs[name].numpy() for name in _KEPT}
    np.savez_compressed(place, probes=probes, tokenizer=tokenizer, tolerance=tolerance, **kept)
