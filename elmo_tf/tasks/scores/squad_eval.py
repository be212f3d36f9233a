"""Exact match and F1 of answers, as the official evaluation of SQuAD 1.1 computes them (Rajpurkar et al. 2016)."""

import collections
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def score(gold: Mapping[Any, Sequence[str]], predicted: Mapping[Any, str]) -> dict[str, float]:
    """Returns `exact_match` and `f1` in percent, means over all questions.

    Args:
        gold: by question, its answers; the best of them counts.
        predicted: by question, one answer; a question without one counts as wrong.
    """
    exact = f1 = 0.0
    for question, answers in gold.items():
        if question in predicted:
            exact += max(normalized(predicted[question]) == normalized(answer) for answer in answers)
            f1 += max(_f1(predicted[question], answer) for answer in answers)
    return {"exact_match": 100 * exact / len(gold), "f1": 100 * f1 / len(gold)}


def normalized(text: str) -> str:
    """Returns the text in lower case, without punctuation, articles and additional white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _f1(predicted: str, answer: str) -> float:
    found, expected = normalized(predicted).split(), normalized(answer).split()
    common = sum((collections.Counter(found) & collections.Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(found), common / len(expected)
    return 2 * precision * recall / (precision + recall)
