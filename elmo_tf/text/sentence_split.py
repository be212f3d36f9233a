"""Sentences of running text in plain Python, each as its words with their offsets in the text.

The rules are those of `raw_text.break_sentences`, applied to the words of `tokenizers`.
"""

import re

from elmo_tf.text.penn import ABBREVIATIONS, Word
from elmo_tf.text.tokenizers import words_of

_ABBREVIATION = re.compile(rf"(?i:{ABBREVIATIONS})|[^\W\d_]")  # or an initial
_LETTERS = re.compile(r"(?:[A-Za-z]\.){2,}")
# The marks of Latin script, then of Indic scripts and Arabic; those of Chinese and Japanese need no white space.
_END = re.compile("[.!?\u2026]+|[\u0964\u0965\u06d4\u061f]")
_END_WITHOUT_SPACE = re.compile("[\u3002\uff01\uff1f]")
_CLOSING = frozenset(["''", *"')]}\u2019\u201d\u00bb\u300d\u300f\uff09"])
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")


def split_sentences(text: str, tokenizer: str = "penn") -> list[list[Word]]:
    """Returns the words of each sentence, split by a tokenizer of `tokenizers.TOKENIZERS`.

    A sentence ends at a blank line, and after `.`, `!`, `?`, a danda, the marks of Arabic or Urdu, and closing quotes
    if white space follows and then no lowercase letter or comma; after the full-width marks of Chinese and Japanese
    without white space, too. The full stop of an abbreviation (`Mr.`, `J.`) belongs to its word and ends no sentence.
    """
    sentences: list[list[Word]] = []
    words = _with_abbreviations(words_of(text, tokenizer))
    closing = _closing(text, words)
    for index, word in enumerate(words):
        if not index or _sentence_ends_before(text, words, index, closing):
            sentences.append([])
        sentences[-1].append(word)
    return sentences


def _with_abbreviations(words: list[Word]) -> list[Word]:
    """Joins abbreviations with their full stops."""
    joined: list[Word] = []
    for word in words:
        before = joined[-1] if joined else None
        if word.text == "." and before and before.end == word.start and _is_abbreviation(before.text):
            joined[-1] = Word(before.text + ".", before.start, word.end)
        else:
            joined.append(word)
    return joined


def _is_abbreviation(word: str) -> bool:
    # Not a single lowercase letter: "plan b."
    return bool(_ABBREVIATION.fullmatch(word)) and (len(word) > 1 or word.isupper()) and word != "I"


def _closing(text: str, words: list[Word]) -> set[int]:
    """Returns the indices of closing quotes and brackets directly after a word, and of every second straight quote."""
    closing, is_open = set(), False
    for index, word in enumerate(words):
        before = words[index - 1].end if index else 0
        if _EMPTY_LINE.search(text, before, word.start):
            is_open = False
        if word.text == '"':
            if is_open:
                closing.add(index)
            is_open = not is_open
        elif index and word.text in _CLOSING and word.start == before:
            closing.add(index)
    return closing


def _sentence_ends_before(text: str, words: list[Word], index: int, closing: set[int]) -> bool:
    """Whether a sentence ends before the word at `index`."""
    between = text[words[index - 1].end : words[index].start]
    if _EMPTY_LINE.search(between):
        return True
    if index in closing or words[index].text[0].islower() or words[index].text[0] in ",;:":
        return False
    last = index - 1
    while last in closing:
        last -= 1
    if not between:
        return bool(_END_WITHOUT_SPACE.fullmatch(words[last].text)) and not _END_WITHOUT_SPACE.match(words[index].text)
    if _END_WITHOUT_SPACE.fullmatch(words[last].text):
        return True
    return bool(_END.fullmatch(words[last].text)) and not _LETTERS.fullmatch(words[last].text)
