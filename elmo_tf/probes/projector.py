"""The uses of one word as points in TensorBoard's projector, labelled with sentence and sense."""

import os
from typing import NamedTuple

import numpy as np
from tensorboard.plugins import projector

from elmo_tf.annotated.semcor import SenseSentence
from elmo_tf.errors import InputError, renamed
from elmo_tf.files import staging
from elmo_tf.probes import vectors

_CONFIG_FILE = "projector_config.pbtxt"  # the name that TensorBoard looks for
_LABELS_FILE = "uses.tsv"


class LabelledUse(NamedTuple):
    """A word in its sentence."""

    tokens: list[str]
    start: int  # of the word's tokens
    end: int
    sense: str  # "" if it is not known


def uses_in_lines(path: str | os.PathLike, word: str) -> list[LabelledUse]:
    """Returns the uses of a word, compared as written, in a text of one tokenised sentence a line, each sentence once.

    Raises:
        InputError: if the file cannot be read, or the word is not in it.
    """
    try:
        with open(path, encoding="utf-8", newline="\n") as lines:
            sentences = dict.fromkeys(tuple(token.decode() for token in line.encode().split()) for line in lines)
    except UnicodeDecodeError as error:
        raise InputError(f"--text: expected UTF-8, found {error.reason} in {path}") from None
    except OSError as error:
        raise InputError(f"--text: expected a file, found {error.strerror}: {path}") from None
    found = [
        LabelledUse(list(tokens), place, place + 1, "")
        for tokens in sentences
        for place, token in enumerate(tokens)
        if token == word
    ]
    return _some(found, "--text", word, path)


def uses_with_senses(sentences: list[SenseSentence], lemma: str, path: str | os.PathLike) -> list[LabelledUse]:
    """Returns the uses of a lemma, such as `play` in any part of speech or `play%2`; `InputError` if there is none."""
    found = [
        LabelledUse(sentence.tokens, use.start, use.end, use.sense)
        for sentence in sentences
        for use in sentence.uses
        if lemma in (use.lemma, use.lemma.partition("%")[0])
    ]
    return _some(found, "--semcor", lemma, path)


def write(savedmodel: str | os.PathLike, uses: list[LabelledUse], logdir: str | os.PathLike) -> None:
    """Writes each layer's vectors and their average to the new folder `logdir`, for `tensorboard --logdir`.

    Raises:
        InputError: if something stands at `logdir`, or the SavedModel cannot be used.
    """
    with renamed(path="logdir"):
        staging.check_absent(logdir)
    layers = vectors.embed(savedmodel, [use.tokens for use in uses], [[(use.start, use.end)] for use in uses])
    points = {f"layer {number}": layers[:, number] for number in range(layers.shape[1])}
    points["average"] = layers.mean(1, dtype=np.float32)
    config = projector.ProjectorConfig()
    with renamed(path="logdir"), staging.new_folder(logdir) as folder:
        rows = ["sense\tsentence", *(f"{use.sense or '-'}\t{_shown(use)}" for use in uses)]
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


def _some(found: list[LabelledUse], argument: str, word: str, path: str | os.PathLike) -> list[LabelledUse]:
    if len(found) < 2:
        raise InputError(f"{argument}: expected at least two uses of {word!r}, found {len(found)} in {path}")
    return found
