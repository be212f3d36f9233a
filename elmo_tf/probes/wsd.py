"""Word sense disambiguation: the nearest average vector of a lemma's senses in training."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elmo_tf.annotated.senses import SenseSentence, Use
from elmo_tf.errors import InputError
from elmo_tf.probes import vectors
from elmo_tf.probes.results import Results, Row

_UNKNOWN = ""  # no answer, for a lemma that neither training nor the dictionary has
_TIE = 1e-6  # cosines that differ by less are equal except for rounding
_EVERY = 5  # every fifth document is held out


def split(train: list[SenseSentence]) -> tuple[list[SenseSentence], list[SenseSentence]]:
    """Returns the sentences to train and to test on: every fifth document is held out.

    Raises:
        InputError: if there are fewer than five documents.
    """
    documents = list(dict.fromkeys(sentence.document for sentence in train))
    if len(documents) < _EVERY:
        expected = f"at least {_EVERY} documents, each after a line # doc NAME, to hold some out"
        raise InputError("train", expected, len(documents))
    held_out = set(documents[_EVERY - 1 :: _EVERY])
    kept = [sentence for sentence in train if sentence.document not in held_out]
    return kept, [sentence for sentence in train if sentence.document in held_out]


def probe(
    source: vectors.Source,
    train: list[SenseSentence],
    test: list[SenseSentence],
    first_senses: Mapping[str, str] | None = None,
) -> Results:
    """Returns the F1 on `test` of the training sense with the nearest average vector, for each layer and their average.

    Nearest is by cosine, among the senses that the lemma (with its part of speech) has in `train`. The average of the
    layers is also tested minus the mean of all training uses. The baseline is each lemma's most frequent sense. A lemma
    that is not in `train` gets its first sense in a dictionary (section 5.3 of the paper), or without `first_senses` no
    answer, which lowers recall. With `first_senses`, another baseline has them for all lemmas. If a use of `test` has
    several senses, each is right. `ambiguous F1` is on the uses of lemmas with several senses in training. If `test`
    has several data sets, each has its F1, too.

    Raises:
        InputError: if either has no word with a sense.
    """
    for parameter, part in (("train", train), ("test", test)):
        if not _uses(part):
            raise InputError(parameter, "it has no words with senses")
    in_training = _senses(train)
    senses = {lemma: [sense] for lemma, sense in (first_senses or {}).items()} | in_training
    train_senses, lemmas = np.array([use.sense for use in _uses(train)]), [use.lemma for use in _uses(test)]
    ambiguous = np.array([len(senses.get(lemma, ())) > 1 for lemma in lemmas])
    most_frequent = [senses.get(lemma, [_UNKNOWN])[0] for lemma in lemmas]
    predictions: dict[str, tuple[str, Any]] = {"most frequent sense": ("baseline", most_frequent)}
    if first_senses:
        predictions["first sense"] = "baseline", [first_senses.get(lemma, _UNKNOWN) for lemma in lemmas]
    parts = [_embed(source, part) for part in (train, test)]
    averages = [layers.mean(1, dtype=np.float32) for layers in parts]
    for number in range(parts[0].shape[1]):
        layer = [layers[:, number].astype(np.float32) for layers in parts]
        predictions[f"layer {number}"] = "layer", _nearest(layer, train_senses, lemmas, senses)
    centered = [average - averages[0].mean(0) for average in averages]  # minus the mean of all training uses
    for name, mixed in (("average", averages), ("average minus mean", centered)):
        predictions[name] = "mix", _nearest(mixed, train_senses, lemmas, senses)
    rows = [Row(name, kind, _scores(test, np.array(chosen), ambiguous)) for name, (kind, chosen) in predictions.items()]
    details: dict[str, Any] = {
        "train_uses": len(train_senses),
        "test_uses": len(lemmas),
        "unseen_rate": round(float(np.mean([lemma not in in_training for lemma in lemmas])), 4),
        "ambiguous_rate": round(float(np.mean(ambiguous)), 4),
    }
    if len(sizes := collections.Counter(_data_sets(test).tolist())) > 1:
        details["data_sets"] = dict(sizes)  # uses of each
    return Results("WSD", rows, details)


def f1(vectors: Sequence[np.ndarray], parts: Sequence[list[SenseSentence]]) -> float:
    """Returns the F1 as `probe` does, given the vectors of all uses in training and in test, float32 `(uses, dim)`."""
    train, test = parts
    train_senses, lemmas = np.array([use.sense for use in _uses(train)]), [use.lemma for use in _uses(test)]
    predicted = _nearest(list(vectors), train_senses, lemmas, _senses(train))
    return _scores(test, predicted, np.ones(len(predicted), bool))["F1"]


def _uses(sentences: list[SenseSentence]) -> list[Use]:
    return [use for sentence in sentences for use in sentence.uses]


def _data_sets(sentences: list[SenseSentence]) -> np.ndarray:
    """Returns the data set of each use."""
    return np.array([sentence.data_set for sentence in sentences for _ in sentence.uses])


def _embed(source: vectors.Source, sentences: list[SenseSentence]) -> np.ndarray:
    spans = [[(use.start, use.end) for use in sentence.uses] for sentence in sentences]
    return vectors.embed(source, [sentence.tokens for sentence in sentences], spans)


def _senses(train: list[SenseSentence]) -> dict[str, list[str]]:
    """Returns the senses of each lemma, the most frequent first, ties in the order of their first use."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for use in _uses(train):
        counts[use.lemma][use.sense] += 1
    return {lemma: [sense for sense, _ in senses.most_common()] for lemma, senses in counts.items()}


def _nearest(
    layers: list[np.ndarray], train_senses: np.ndarray, lemmas: list[str], senses: dict[str, list[str]]
) -> np.ndarray:
    """Returns for each test use the sense whose average training vector has the largest cosine with it.

    If several senses are equally near, as for a form without context, the most frequent is taken. `layers` are the
    vectors in training and test, float32 `(uses, dim)`; `lemmas` are those of the test uses; `senses` are each lemma's
    senses in training, or else its first in the dictionary.
    """
    names, indices = np.unique(train_senses, return_inverse=True)
    averages = np.zeros((len(names), layers[0].shape[1]))
    np.add.at(averages, indices, layers[0])  # sums instead of means: only the direction matters
    averages /= np.linalg.norm(averages, axis=1, keepdims=True) + np.finfo(np.float32).tiny
    numbers = {str(name): number for number, name in enumerate(names)}
    predicted = []
    for lemma, vector in zip(lemmas, layers[1], strict=True):
        candidates = senses.get(lemma, [_UNKNOWN])
        if len(candidates) > 1:
            similarities = averages[[numbers[sense] for sense in candidates]] @ vector
            is_tied = similarities >= similarities.max() - _TIE * np.linalg.norm(vector)
            candidates = [candidates[int(is_tied.argmax())]]
        predicted.append(candidates[0])
    return np.array(predicted)


def _scores(test: list[SenseSentence], predicted: np.ndarray, ambiguous: np.ndarray) -> dict[str, float]:
    """Returns the micro F1 of all uses, of the ambiguous uses, and of each data set if there are several.

    A missing answer lowers recall alone.
    """
    pairs = zip(predicted.tolist(), _uses(test), strict=True)
    is_right = np.array([sense in (use.sense, *use.others) for sense, use in pairs], bool)

    def f1(chosen: np.ndarray) -> float:
        right, answered = is_right[chosen], predicted[chosen] != _UNKNOWN
        return float(2 * right.sum() / (answered.sum() + len(right))) if len(right) else 0.0

    data_sets = _data_sets(test)
    names = list(dict.fromkeys(data_sets.tolist()))
    by_data_set = {name: f1(data_sets == name) for name in names} if len(names) > 1 else {}
    return {"F1": f1(np.ones_like(ambiguous)), "ambiguous F1": f1(ambiguous), **by_data_set}
