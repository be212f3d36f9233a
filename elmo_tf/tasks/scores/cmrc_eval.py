"""Exact match and F1 of answers in languages without spaces, as the official evaluation of CMRC 2018 computes them.

Cui et al. 2019, "A Span-Extraction Dataset for Chinese Machine Reading Comprehension". F1 is of the longest run of
characters, and of words in other scripts, that both answers have.
"""

import re

from elmo_tf.text import penn

_DROPPED = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")  # noqa: RUF001 - the script's
# The ideographs of the script, and kana.
_ALONE = r"[\u3041-\u30ff\u3400-\u9fff]"
_SEGMENT = re.compile(rf"{_ALONE}|(?:(?!{_ALONE}).)+", re.DOTALL)


def is_without_spaces(text: str) -> bool:
    """Whether most letters and digits of a text are ideographs or kana."""
    return 2 * len(re.findall(_ALONE, text)) > sum(character.isalnum() for character in text)


def exact_match(predicted: str, answer: str) -> float:
    """Returns 1 if two answers differ at most in case and punctuation, else 0."""
    return float(_bare(predicted) == _bare(answer))


def f1(predicted: str, answer: str) -> float:
    """Returns the F1 of an answer's characters, from 0 to 1."""
    guess, expected = _segments(predicted), _segments(answer)
    common = _longest_common_run(guess, expected)
    if not common:
        return 0.0
    precision, recall = common / len(guess), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def _bare(text: str) -> str:
    return text.lower().strip().translate(_DROPPED)


def _segments(text: str) -> list[str]:
    """Returns single ideographs and kana, and the words between them."""
    segments: list[str] = []
    for segment in _SEGMENT.findall(_bare(text)):
        segments += [segment] if re.match(_ALONE, segment) else penn.split(segment)
    return segments


def _longest_common_run(guess: list[str], expected: list[str]) -> int:
    longest, before = 0, [0] * (len(expected) + 1)
    for segment in guess:
        lengths = [0]
        for other, length in zip(expected, before, strict=False):
            lengths.append(length + 1 if segment == other else 0)
        longest, before = max(longest, *lengths), lengths
    return longest
