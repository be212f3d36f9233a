"""Minimal pairs: how often a language model prefers the acceptable sentence."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from elmo_tf import engines, scoring, sources
from elmo_tf.annotated import named_rows, numbered_lines
from elmo_tf.embedder import Embedder
from elmo_tf.files import progress
from elmo_tf.probes.results import Results, Row
from elmo_tf.scoring import Score

# Warstadt et al. 2020 count these paradigms as argument structure; the data file gives them a separate term.
_TERMS = {"s-selection": "argument_structure"}
# Measures: log-probabilities of the sentence, and their means per token.
_MEASURES = {
    "both": lambda score: score.total,
    "forward": lambda score: score.forward,
    "backward": lambda score: score.backward,
    "both/token": lambda score: score.mean,
    "forward/token": lambda score: score.forward / len(score.forward_log_probs),
    "backward/token": lambda score: score.backward / len(score.backward_log_probs),
}


class MinimalPair(msgspec.Struct, frozen=True):
    """An acceptable sentence, an unacceptable sentence, and their paradigm."""

    sentence_good: str
    sentence_bad: str
    UID: str
    linguistics_term: str


def read_minimal_pairs(path: str | os.PathLike) -> list[MinimalPair]:
    """Returns the pairs of a file, plain or compressed (.gz, .bz2, .xz, .zst); other keys are ignored.

    Reference:
        Warstadt et al. 2020, "BLiMP: The Benchmark of Linguistic Minimal Pairs for English".
    """
    pairs = [named_rows.parse(line, MinimalPair) for line in numbered_lines.nonblank_lines(path)]
    return numbered_lines.require_nonempty(pairs, path, "pair of sentences")


def probe(source: str | os.PathLike, pairs: Sequence[MinimalPair]) -> Results:
    """Returns the share of pairs whose acceptable sentence has the higher log-probability; a tie counts half.

    A difference that rounding may explain is a tie. The details count ties, and pairs that differ only in
    unknown words. Sentences are split by the model's own tokenizer, or by the Penn Treebank's rules where that is white
    space.

    Raises:
        InputError: if there is no such model, or it has no softmax.
    """
    model = sources.find(source)
    if model.tokenizer == "whitespace":
        model = dataclasses.replace(model, tokenizer="penn")
    sentences = [sentence for pair in pairs for sentence in (pair.sentence_good, pair.sentence_bad)]
    embedder = Embedder(model, engine=engines.fastest(model, sum(len(sentence.split()) for sentence in sentences)))
    scores = embedder.score(sentences, progress.reporter("scored {:,} of {:,} sentences"))
    good, bad = scores[::2], scores[1::2]
    terms = {pair.UID: _TERMS.get(pair.linguistics_term, pair.linguistics_term) for pair in pairs}
    wins = {name: _wins(measure, good, bad) for name, measure in _MEASURES.items()}
    names = np.array([pair.UID for pair in pairs])
    paradigms = {
        paradigm: {name: float(values[names == paradigm].mean()) for name, values in wins.items()} for paradigm in terms
    }
    rows = [Row("all", "mix", _means(paradigms.values()))]
    for term in sorted(set(terms.values())):
        rows.append(Row(term, "layer", _means(paradigms[name] for name in paradigms if terms[name] == term)))
    details = {
        "pairs": len(pairs),
        "num_paradigms": len(paradigms),
        "ties": int(np.sum(wins["both"] == 0.5)),
        "pairs_that_differ_in_unknown_words_alone": sum(map(_same_words, good, bad)),
        "paradigms": paradigms,
    }
    return Results("BLiMP", rows, details, chance=0.5)


def _wins(measure: Callable[[Score], float], good: list[Score], bad: list[Score]) -> np.ndarray:
    """Returns 1 for each pair whose acceptable sentence wins, 0.5 for a tie, else 0: float64 `(pairs,)`."""
    ahead = np.array([measure(first) - measure(second) for first, second in zip(good, bad, strict=True)])
    rounding = [measure(_rounding(first)) + measure(_rounding(second)) for first, second in zip(good, bad, strict=True)]
    return np.where(np.abs(ahead) <= rounding, 0.5, ahead > 0)


def _rounding(score: Score) -> Score:
    """Returns by how much rounding may change each of the log-probabilities."""
    forward, backward = (np.full_like(part, scoring.ROUNDING) for part in score[1:3])
    return score._replace(forward_log_probs=forward, backward_log_probs=backward)


def _means(accuracies: Iterable[dict[str, float]]) -> dict[str, float]:
    chosen = list(accuracies)
    return {name: float(np.mean([accuracy[name] for accuracy in chosen])) for name in _MEASURES}


def _same_words(first: Score, second: Score) -> bool:
    """Whether two sentences are equal to the softmax, which maps all unknown words to `<UNK>`."""

    def words(score: Score) -> list[str | None]:
        return [None if unknown else token for token, unknown in zip(score.tokens, score.unknown, strict=True)]

    return words(first) == words(second)
