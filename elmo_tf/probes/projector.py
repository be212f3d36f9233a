"""The uses of a word as points in TensorBoard's projector, labeled with their senses, or else their sentences."""

import os

import numpy as np
from tensorboard.plugins import projector

from elmo_tf.annotated.senses import SenseSentence, Use
from elmo_tf.corpus.sentences import read_lines
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.probes import vectors
from elmo_tf.text import case, tokenizers

_CONFIG_FILE = "projector_config.pbtxt"  # the name that TensorBoard looks for
_LABELS_FILE = "uses.tsv"

# A sentence's tokens, and a use in it.
InSentence = tuple[list[str], Use]


def sentences_with(text: str | os.PathLike, word: str, tokenizer: str) -> list[SenseSentence]:
    """Returns the distinct sentences of a text file, one per line, split by a tokenizer, with the uses of `word`.

    The word may be in upper or lower case.
    """
    asked = tokenizers.as_token(word.encode(), tokenizer).decode()
    split = tokenizers.split([line.encode() for line in read_lines(os.fspath(text), tokenizer)], tokenizer)
    sentences = dict.fromkeys(tuple(token.decode() for token in tokens) for tokens in split)
    return [
        SenseSentence("", list(tokens), [Use(n, n + 1, word, "") for n, t in enumerate(tokens) if case.same(t, asked)])
        for tokens in sentences
    ]


def uses_of(sentences: list[SenseSentence], word: str) -> list[InSentence]:
    """Returns the uses of a lemma, such as `play` (any part of speech) or `play%2`.

    Raises:
        InputError: if there are fewer than two.
    """
    pairs = [(sentence.tokens, use) for sentence in sentences for use in sentence.uses]
    uses = [(tokens, use) for tokens, use in pairs if word in (use.lemma, use.lemma.partition("%")[0])]
    if len(uses) < 2:
        raise InputError("word", f"too few uses of {word!r}: {len(uses)}; the projector needs at least two")
    return uses


def write(source: str | os.PathLike, uses: list[InSentence], logdir: str | os.PathLike) -> None:
    """Writes each layer's vectors and their average to the new folder `logdir`, for `tensorboard --logdir`.

    Raises:
        InputError: if `logdir` exists, or the SavedModel cannot be used.
    """
    staging.check_absent(logdir)
    layers = vectors.embed(source, [tokens for tokens, _ in uses], [[(use.start, use.end)] for _, use in uses])
    points = {f"layer {number}": layers[:, number] for number in range(layers.shape[1])}
    points["average"] = layers.mean(1, dtype=np.float32)
    config = projector.ProjectorConfig()
    with staging.new_folder(logdir) as folder:
        # The projector labels points by the first column. It expects a header for two columns, but not for one.
        rows = [_shown(tokens, use) for tokens, use in uses]
        if uses[0][1].sense:
            rows = ["sense\tsentence", *(f"{use.sense}\t{row}" for (_, use), row in zip(uses, rows, strict=True))]
        (folder / _LABELS_FILE).write_text("".join(f"{row}\n" for row in rows), "utf-8")
        for name, values in points.items():
            file = f"{name.replace(' ', '_')}.tsv"
            np.savetxt(folder / file, values, fmt="%.5g", delimiter="\t")
            config.embeddings.add(tensor_name=name, tensor_path=file, metadata_path=_LABELS_FILE)
        (folder / _CONFIG_FILE).write_text(str(config), "utf-8")


def _shown(tokens: list[str], use: Use) -> str:
    """Returns the sentence on one line, the word in brackets."""
    shown = [*tokens[: use.start], f"[{' '.join(tokens[use.start : use.end])}]", *tokens[use.end :]]
    return " ".join(" ".join(shown).split())
