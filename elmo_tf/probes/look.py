"""An HTML page with the uses of a word, the surprisal of each word, and the similarities of words in a sentence.

One self-contained file, made from `look.html`; it needs neither a network connection nor a server.
"""

import importlib.resources
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from elmo_tf import scoring, sources
from elmo_tf.corpus.sentences import read_lines
from elmo_tf.display import with_count
from elmo_tf.engines.numpy import NumpyBiLM, log_softmax
from elmo_tf.errors import InputError
from elmo_tf.files import json_file, progress, staging, stores
from elmo_tf.probes.vectors import unit
from elmo_tf.text import case, tokenizers
from elmo_tf.text.batches import BATCH_TOKENS, batches, equal_items
from elmo_tf.text.vocabulary import BEGIN_ID, END_ID, SPECIAL_TOKENS, UNKNOWN_ID, Softmax

MAX_SENTENCES = 1000
_NEAREST = 5  # uses shown for each use
_LIKELIEST = 5  # words shown for a position
_POSITIONS = 32  # positions per chunk; each needs the probabilities of the whole vocabulary


def write(model: sources.Source, text: str | os.PathLike, word: str, output: str | os.PathLike) -> None:
    """Writes the page about the sentences of a file, one per line, to a new file; see `look`."""
    staging.check_new_file(output)
    lines = list(filter(str.strip, read_lines(os.fspath(text), model.tokenizer)))
    template = importlib.resources.files("elmo_tf.probes").joinpath("look.html").read_text("utf-8")
    data = json_file.dumps(look(model, lines, word), ensure_ascii=False, separators=(",", ":"))
    # Escaped so that no text can close the script element.
    stores.write(output, template.replace("{{data}}", data.replace("<", "\\u003c")).encode())


def look(model: sources.Source, texts: Sequence[str], word: str) -> dict[str, Any]:
    """Returns the data of the page, as values for JSON.

    Args:
        model: without a softmax, there is no surprisal.
        texts: at most `MAX_SENTENCES` sentences, split by the model's tokenizer.
        word: a token with at least two uses in them, in upper or lower case.

    Raises:
        InputError: for fewer uses or more sentences, or if the model cannot be used.
    """
    if len(texts) > MAX_SENTENCES:
        raise InputError("text", f"{len(texts):,} sentences; a page shows at most {MAX_SENTENCES:,}")
    sentences = [tokens for tokens in tokenizers.split([text.encode() for text in texts], model.tokenizer) if tokens]
    shown = [[token.decode(errors="replace") for token in tokens] for tokens in sentences]
    positions = [(n, position) for n, tokens in enumerate(shown) for position in range(len(tokens))]
    asked = tokenizers.as_token(word.encode(), model.tokenizer).decode(errors="replace")
    uses = [(n, position) for n, position in positions if case.same(shown[n][position], asked)]
    if len(uses) < 2:
        raise InputError("word", f"{word!r} has {with_count(len(uses), 'use')} in the text; a page needs two")
    layers = _layers(NumpyBiLM(model.config, model.weights()), sentences)
    inner = [values[:, 1:-1] for values in layers]  # without <S> and </S>
    vectors = np.stack([inner[n][:, position] for n, position in uses], 1)
    mean = np.concatenate(inner, 1).mean(1, dtype=np.float64)[:, None].astype(np.float32)
    cosines = [_cosines(values - mean) for values in inner]
    page = {
        "word": word,
        "model": model.name,
        "tokens": shown,
        "uses": uses,
        "points": [_points(layer).round(4).tolist() for layer in vectors],
        "nearest": [_nearest(layer) for layer in vectors],
        # Percent, above the diagonal, row by row.
        "cosines": [
            [(100 * layer[np.triu_indices(len(layer), 1)]).round().astype(int).tolist() for layer in matrices]
            for matrices in cosines
        ],
    }
    try:
        softmax = model.softmax()
    except sources.NoSoftmaxError:
        return page
    return page | _surprisal(softmax, sentences, layers)


def _layers(network: NumpyBiLM, sentences: Sequence[Sequence[bytes]]) -> list[np.ndarray]:
    """Returns each sentence's layers, float32 `(num_layers, tokens + 2, dim)`, with `<S>` and `</S>`."""
    outputs: dict[int, np.ndarray] = {}
    equal = equal_items(map(tuple, sentences))
    for batch in batches([len(sentences[indices[0]]) for indices in equal], BATCH_TOKENS):
        computed = network.layers([sentences[equal[number][0]] for number in batch], boundaries=True)
        for number, layers in zip(batch, computed, strict=True):
            outputs |= dict.fromkeys(equal[number], layers)
    return [outputs[index] for index in range(len(sentences))]


def _points(vectors: np.ndarray) -> np.ndarray:
    """Returns the first two principal components of vectors minus their mean, `(uses, 2)`."""
    left, values, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    return (left * values)[:, :2]


def _nearest(vectors: np.ndarray) -> list[list[list[int]]]:
    """Returns each use's nearest others, nearest first, as pairs of the use and the cosine in percent."""
    cosines = _cosines(vectors - vectors.mean(0))
    np.fill_diagonal(cosines, -np.inf)
    best = np.argsort(-cosines, 1, kind="stable")[:, : min(_NEAREST, len(vectors) - 1)]
    return [
        [[use, round(100 * float(row[use]))] for use in chosen]
        for row, chosen in zip(cosines, best.tolist(), strict=True)
    ]


def _cosines(vectors: np.ndarray) -> np.ndarray:
    """Returns the cosine of each pair of rows, `(..., rows, rows)`; 0 for a zero vector."""
    scaled = unit(vectors)
    return scaled @ scaled.swapaxes(-1, -2)


def _surprisal(softmax: Softmax, sentences: Sequence[Sequence[bytes]], layers: Sequence[np.ndarray]) -> dict[str, Any]:
    """Returns each token's surprisal and the likeliest words at its position: forward, backward, and both."""
    bits, likeliest, unknown = [], [], []
    report = progress.reporter("{:,} of {:,} sentences")
    for tokens, values in zip(sentences, layers, strict=True):
        ids, (forward, backward) = np.array(softmax.vocabulary.ids(tokens)), np.split(values[-1], 2, -1)
        outputs = np.stack([forward[:-2], backward[2:]])
        parts = [slice(start, start + _POSITIONS) for start in range(0, len(ids), _POSITIONS)]
        surprisals, words = zip(*(_predictions(softmax, outputs[:, part], ids[part]) for part in parts), strict=True)
        bits.append(np.concatenate(surprisals, 1).round(2).tolist())
        likeliest.append(np.concatenate(words, 1).tolist())
        unknown.append(np.flatnonzero(ids == UNKNOWN_ID).tolist())
        report(len(bits), len(sentences))
    used = sorted({number for row in likeliest for number in np.ravel(row).tolist()})
    names = {number: softmax.vocabulary.tokens[number].decode() for number in used}
    return {"bits": bits, "likeliest": likeliest, "unknown": unknown, "words": names}


def _predictions(softmax: Softmax, outputs: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns surprisals in bits, `(3, positions)`, and the ids of the likeliest words, `(3, positions, _LIKELIEST)`.

    Both directions are combined as in `Embedder.fill`.

    Args:
        outputs: float32 `(2, positions, dim)`, the output of each direction that predicts the position.
        ids: int `(positions,)`, the tokens at the positions.
    """
    size, special = len(softmax.vocabulary), len(SPECIAL_TOKENS)
    rows = log_softmax(outputs.reshape(-1, outputs.shape[-1]), softmax.kernel, softmax.bias)
    directions = rows.reshape(2, -1, size)
    both = scoring.from_both_sides(directions).astype(np.float32)
    both[:, [BEGIN_ID, END_ID]] = -np.inf  # never inside a sentence
    both -= both.max(-1, keepdims=True)
    both -= np.log(np.exp(both).sum(-1, keepdims=True))
    log_probs = np.concatenate([directions, both[None]])
    words, count = log_probs[..., special:], min(_LIKELIEST, size - special)
    best = np.argpartition(words, -count)[..., -count:]
    order = np.argsort(-np.take_along_axis(words, best, -1), -1)
    return -log_probs[:, np.arange(len(ids)), ids] / math.log(2), np.take_along_axis(best, order, -1) + special
