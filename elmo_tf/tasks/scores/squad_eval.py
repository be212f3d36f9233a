"""Exact match and F1 of answers, as the official evaluations of SQuAD 1.1 and 2.0 and of CMRC 2018 compute them.

Rajpurkar et al. 2016 and 2018; Cui et al. 2019, "A Span-Extraction Dataset for Chinese Machine Reading Comprehension",
for texts without spaces between words: F1 is of the longest run of characters, and of words in other scripts, that both
answers have.
"""

import collections
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elmo_tf.text import penn

NO_ANSWER_THRESHOLD = 0.5  # a question with a higher probability of having no answer gets no answer

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DROPPED = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")  # noqa: RUF001 - the script's
# The ideographs of the script, and kana.
_ALONE = r"[\u3041-\u30ff\u3400-\u9fff]"
_SEGMENT = re.compile(rf"{_ALONE}|(?:(?!{_ALONE}).)+", re.DOTALL)

# By question: a score of 0 to 1.
_Scores = dict[Any, float]


def score(
    gold: Mapping[Any, Sequence[str]], predicted: Mapping[Any, str], by_characters: bool = False
) -> dict[str, float]:
    """Returns `exact_match` and `f1` in percent, means over all questions.

    Args:
        gold: by question, its answers; the best of them counts.
        predicted: by question, an answer; a question without an answer counts as wrong.
        by_characters: whether F1 is of characters, as for CMRC, and not of words, as for SQuAD.
    """
    return {name: _mean(raw) for name, raw in _raw(gold, predicted, by_characters).items()}


def score_with_unanswerable(
    gold: Mapping[Any, Sequence[str]],
    predicted: Mapping[Any, str],
    no_answer: Mapping[Any, float],
    by_characters: bool = False,
) -> dict[str, float]:
    """Returns `exact_match` and `f1` where some questions have no answer, and more scores, under the official names.

    They are those of SQuAD 2.0's script with a threshold of `NO_ANSWER_THRESHOLD`: `HasAns_exact`, `HasAns_f1` and
    `NoAns_exact`, `NoAns_f1` are over the questions with and without an answer; `best_exact` and `best_f1` are the
    scores with the best threshold, which is `best_exact_thresh` or `best_f1_thresh`.

    Args:
        gold: by question, its answers; empty if it has no answer.
        predicted: by question, the best answer, even if "no answer" is more probable.
        no_answer: by question, the probability that it has no answer.
        by_characters: as for `score`.
    """
    answers = {question: [text for text in texts if normalized(text)] for question, texts in gold.items()}
    raw = _raw({question: texts or [""] for question, texts in answers.items()}, predicted, by_characters)
    parts = {
        "HasAns": [question for question in gold if answers[question]],
        "NoAns": [question for question in gold if not answers[question]],
    }
    means, best = {}, {}
    for name, scores in raw.items():
        decided = {
            question: float(not answers[question]) if no_answer[question] > NO_ANSWER_THRESHOLD else raw_score
            for question, raw_score in scores.items()
        }
        means[name] = _mean(decided)
        official = name.removesuffix("_match")
        for part, questions in parts.items():
            best[f"{part}_{official}"] = _mean({question: decided[question] for question in questions})
        best[f"best_{official}"], best[f"best_{official}_thresh"] = _best_threshold(
            scores, answers, predicted, no_answer
        )
    return means | best


def normalized(text: str) -> str:
    """Returns the text in lower case, without punctuation, articles and additional white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def is_without_spaces(text: str) -> bool:
    """Whether most letters and digits of a text are ideographs or kana."""
    return 2 * len(re.findall(_ALONE, text)) > sum(character.isalnum() for character in text)


def _raw(gold: Mapping[Any, Sequence[str]], predicted: Mapping[Any, str], by_characters: bool) -> dict[str, _Scores]:
    bare = _bare if by_characters else normalized
    metrics: dict[str, Callable[[str, str], float]] = {
        "exact_match": lambda answer, expected: float(bare(answer) == bare(expected)),
        "f1": f1_of_characters if by_characters else _f1,
    }
    return {
        name: {
            question: max(metric(predicted[question], answer) for answer in answers) if question in predicted else 0.0
            for question, answers in gold.items()
        }
        for name, metric in metrics.items()
    }


def _best_threshold(
    scores: _Scores,
    answers: Mapping[Any, Sequence[str]],
    predicted: Mapping[Any, str],
    no_answer: Mapping[Any, float],
) -> tuple[float, float]:
    """Returns the highest score that a threshold reaches, in percent, and that threshold.

    Below the lowest probability no question is answered; a rising threshold answers more and more questions.
    """
    current = best = float(sum(not texts for texts in answers.values()))
    threshold = 0.0
    for question in sorted(scores, key=no_answer.__getitem__):
        current += scores[question] if answers[question] else -bool(predicted[question])
        if current > best:
            best, threshold = current, no_answer[question]
    return 100 * best / len(scores), threshold


def _mean(scores: _Scores) -> float:
    """Returns the mean in percent, 0 of nothing."""
    return 100 * sum(scores.values()) / len(scores) if scores else 0.0


def _f1(predicted: str, answer: str) -> float:
    words, expected = normalized(predicted).split(), normalized(answer).split()
    if not words or not expected:
        return float(words == expected == [] and not answer)
    common = sum((collections.Counter(words) & collections.Counter(expected)).values())
    return _harmonic_mean(common, len(words), len(expected))


def f1_of_characters(predicted: str, answer: str) -> float:
    """Returns the F1 of an answer's characters, from 0 to 1."""
    guess, expected = _segments(predicted), _segments(answer)
    longest, before = 0, [0] * (len(expected) + 1)  # common runs that end at the last segment and each expected one
    for segment in guess:
        pairs = zip(expected, before, strict=False)
        before = [0, *(length + 1 if segment == other else 0 for other, length in pairs)]
        longest = max(longest, *before)
    return _harmonic_mean(longest, len(guess), len(expected))


def _harmonic_mean(common: int, num_predicted: int, num_expected: int) -> float:
    """Returns the F1 of a prediction with `common` right parts."""
    if not common:
        return 0.0
    precision, recall = common / num_predicted, common / num_expected
    return 2 * precision * recall / (precision + recall)


def _bare(text: str) -> str:
    return text.lower().strip().translate(_DROPPED)


def _segments(text: str) -> list[str]:
    """Returns single ideographs and kana, and the words between them."""
    segments: list[str] = []
    for segment in _SEGMENT.findall(_bare(text)):
        segments += [segment] if re.match(_ALONE, segment) else penn.split(segment)
    return segments
