"""The uses of one word as points in TensorBoard's projector, labeled with their senses, or else their sentences."""

import os
from typing import NamedTuple

import numpy as np
from tensorboard.plugins import projector

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.semcor import SenseSentence
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.probes import vectors

_CONFIG_FILE = "projector_config.pbtxt"  # the name that TensorBoard looks for
_LABELS_FILE = "uses.tsv"


class LabelledUse(NamedTuple):
    """A word in its sentence."""

    tokens: list[str]
    start: int  # the word's first token
    end: int  # the token after its last
    sense: str  # "" if unknown


def uses_in_lines(text: str | os.PathLike, word: str) -> list[LabelledUse]:
    """Returns the uses of a word in a text file of one tokenized sentence per line, each distinct sentence once.

    Args:
        text: the file.
        word: compared with case.

    Raises:
        InputError: if the file cannot be read, or has fewer than two uses of the word.
    """
    lines = numbered_lines.lines(text)
    sentences = dict.fromkeys(tuple(token.decode() for token in line.text.encode().split()) for line in lines)
    found = [
        LabelledUse(list(tokens), place, place + 1, "")
        for tokens in sentences
        for place, token in enumerate(tokens)
        if token == word
    ]
    _check_count(found, word)
    return found


def uses_with_senses(sentences: list[SenseSentence], word: str) -> list[LabelledUse]:
    """Returns the uses of a lemma, such as `play` (any part of speech) or `play%2`.

    Raises:
        InputError: if there are fewer than two.
    """
    found = [
        LabelledUse(sentence.tokens, use.start, use.end, use.sense)
        for sentence in sentences
        for use in sentence.uses
        if word in (use.lemma, use.lemma.partition("%")[0])
    ]
    _check_count(found, word)
    return found


def write(source: str | os.PathLike, uses: list[LabelledUse], logdir: str | os.PathLike) -> None:
    """Writes each layer's vectors and their average to the new folder `logdir`, for `tensorboard --logdir`.

    Raises:
        InputError: if there is something at `logdir`, or the SavedModel cannot be used.
    """
    staging.check_absent(logdir)
    layers = vectors.embed(source, [use.tokens for use in uses], [[(use.start, use.end)] for use in uses])
    points = {f"layer {number}": layers[:, number] for number in range(layers.shape[1])}
    points["average"] = layers.mean(1, dtype=np.float32)
    config = projector.ProjectorConfig()
    with staging.new_folder(logdir) as folder:
        # The projector labels points by the first column, and expects a header above two columns, but not above one.
        rows = [_shown(use) for use in uses]
        if uses[0].sense:
            rows = ["sense\tsentence", *(f"{use.sense}\t{row}" for use, row in zip(uses, rows, strict=True))]
        (folder / _LABELS_FILE).write_text("".join(f"{row}\n" for row in rows), "utf-8")
        for name, values in points.items():
            file = f"{name.replace(' ', '_')}.tsv"
            np.savetxt(folder / file, values, fmt="%.5g", delimiter="\t")
            config.embeddings.add(tensor_name=name, tensor_path=file, metadata_path=_LABELS_FILE)
        (folder / _CONFIG_FILE).write_text(str(config), "utf-8")


def _shown(use: LabelledUse) -> str:
    """Returns the sentence on one line, the word in brackets."""
    tokens = [*use.tokens[: use.start], f"[{' '.join(use.tokens[use.start : use.end])}]", *use.tokens[use.end :]]
    return " ".join(" ".join(tokens).split())


def _check_count(found: list[LabelledUse], word: str) -> None:
    if len(found) < 2:
        raise InputError("word", "a word with at least two uses", f"{len(found)} of {word!r}")
