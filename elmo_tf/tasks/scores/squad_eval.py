"""Exact match and F1 of answers, as the official evaluations of SQuAD 1.1 and 2.0 and of CMRC 2018 compute them.

Rajpurkar et al. 2016 and 2018; Cui et al. 2019, "A Span-Extraction Dataset for Chinese Machine Reading Comprehension",
for texts without spaces between words: F1 uses the longest common substring, in characters (words for other
scripts).
"""

import collections
import difflib
import re
import string
from collections.abc import Callable, Sequence

import numpy as np

from elmo_tf.text import penn

NO_ANSWER_THRESHOLD = 0.5  # a question with a higher probability of having no answer gets no answer

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DROPPED = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")  # noqa: RUF001 - the script's
# The ideographs of the script, and kana.
_ALONE = r"[\u3041-\u30ff\u3400-\u9fff]"
_SEGMENT = re.compile(rf"{_ALONE}|(?:(?!{_ALONE}).)+", re.DOTALL)


def score(gold: Sequence[Sequence[str]], predicted: Sequence[str], by_characters: bool = False) -> dict[str, float]:
    """Returns `exact_match` and `f1` in percent, means over all questions.

    Args:
        gold: each question's answers; the best of them counts.
        predicted: each question's predicted answer.
        by_characters: whether F1 counts characters, as for CMRC, instead of words, as for SQuAD.
    """
    return {name: _percent(values) for name, values in _values(gold, predicted, by_characters).items()}


def score_with_unanswerable(
    gold: Sequence[Sequence[str]], predicted: Sequence[str], no_answer: Sequence[float], by_characters: bool = False
) -> dict[str, float]:
    """Returns `exact_match` and `f1` where some questions have no answer, and more scores, under the official names.

    They are those of SQuAD 2.0's script with a threshold of `NO_ANSWER_THRESHOLD`: `HasAns_exact`, `HasAns_f1` and
    `NoAns_exact`, `NoAns_f1` are over the questions with and without an answer; `best_exact` and `best_f1` are the
    scores with the best threshold, which is `best_exact_thresh` or `best_f1_thresh`.

    Args:
        gold: each question's answers; empty if it has no answer.
        predicted: each question's best answer, even if "no answer" is more probable.
        no_answer: each question's probability of having no answer.
        by_characters: as for `score`.
    """
    answers = [[text for text in texts if normalized(text)] for texts in gold]
    answerable, probabilities = np.array(list(map(bool, answers))), np.array(no_answer)
    order = np.argsort(probabilities, kind="stable")
    means: dict[str, float] = {}
    others: dict[str, float] = {}
    for name, values in _values([texts or [""] for texts in answers], predicted, by_characters).items():
        official = name.removesuffix("_match")
        decided = np.where(probabilities > NO_ANSWER_THRESHOLD, ~answerable, values)
        means[name] = _percent(decided)
        others[f"HasAns_{official}"] = _percent(decided[answerable])
        others[f"NoAns_{official}"] = _percent(decided[~answerable])
        # A threshold below all probabilities answers nothing; raising it adds questions by ascending probability.
        gains = np.where(answerable, values, -(np.array(predicted) != "").astype(float))[order]
        totals = np.cumsum([np.sum(~answerable), *gains])
        best = int(totals.argmax())
        others[f"best_{official}"] = float(100 * totals[best] / len(values))
        others[f"best_{official}_thresh"] = float(probabilities[order[best - 1]]) if best else 0.0
    return means | others


def normalized(text: str) -> str:
    """Returns the text in lower case, without punctuation, articles and additional white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def is_without_spaces(text: str) -> bool:
    """Whether most letters and digits of a text are ideographs or kana."""
    return 2 * len(re.findall(_ALONE, text)) > sum(character.isalnum() for character in text)


def _values(gold: Sequence[Sequence[str]], predicted: Sequence[str], by_characters: bool) -> dict[str, np.ndarray]:
    """Returns each question's scores from 0 to 1, float64 `(questions,)`."""
    bare = _bare if by_characters else normalized
    metrics: dict[str, Callable[[str, str], float]] = {
        "exact_match": lambda answer, expected: float(bare(answer) == bare(expected)),
        "f1": f1_of_characters if by_characters else _f1,
    }
    pairs = list(zip(predicted, gold, strict=True))
    return {
        name: np.array([max(metric(answer, expected) for expected in texts) for answer, texts in pairs])
        for name, metric in metrics.items()
    }


def _percent(values: np.ndarray) -> float:
    """Returns the mean in percent, 0 of nothing."""
    # Added up in order, like the official scripts: the last digit depends on it.
    return 100 * sum(values.tolist()) / len(values) if len(values) else 0.0


def _f1(predicted: str, answer: str) -> float:
    words, expected = normalized(predicted).split(), normalized(answer).split()
    if not words or not expected:
        return float(words == expected == [] and not answer)
    common = sum((collections.Counter(words) & collections.Counter(expected)).values())
    return _harmonic_mean(common, len(words), len(expected))


def f1_of_characters(predicted: str, answer: str) -> float:
    """Returns the F1 of an answer's characters, from 0 to 1."""
    guess, expected = _segments(predicted), _segments(answer)
    longest = difflib.SequenceMatcher(None, guess, expected, autojunk=False).find_longest_match().size
    return _harmonic_mean(longest, len(guess), len(expected))


def _harmonic_mean(common: int, num_predicted: int, num_expected: int) -> float:
    """Returns the F1 of a prediction with `common` correct parts."""
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
