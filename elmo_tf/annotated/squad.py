"""Questions about paragraphs, whose answers are parts of them: SQuAD 1.1's JSON, and one question per line."""

import bisect
import dataclasses
import functools
import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from elmo_tf.annotated import numbered_lines
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from elmo_tf.text.word_split import Word, split_words

_QUOTES = {"``": '"', "''": '"'}

_log = logging.getLogger("elmo_tf")


class _Answer(msgspec.Struct, frozen=True):
    text: str
    answer_start: Count


class _Question(msgspec.Struct, frozen=True):
    question: str
    id: str
    answers: list[_Answer] = []


class _Paragraph(msgspec.Struct, frozen=True):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct, frozen=True):
    paragraphs: list[_Paragraph]


class _File(msgspec.Struct, frozen=True):
    data: list[_Article]


class _Row(msgspec.Struct, frozen=True):
    """A line of a file with one question per line."""

    question: str
    context: str | None = None
    paragraph: str | None = None  # another name for the context
    id: Any = None


class Answer(NamedTuple):
    """A part of a paragraph, and the index of its first character."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A text and its words with their offsets in it."""

    text: str
    words: tuple[Word, ...] = dataclasses.field(compare=False)

    @functools.cached_property
    def tokens(self) -> list[str]:
        """The words as networks read them: a quotation mark is `"`, however it is written."""
        return _tokens(self.words)

    def covering(self, answer: Answer) -> tuple[int, int] | None:
        """Returns the indices of the first and last words that overlap an answer; None if it is only white space."""
        first = bisect.bisect_right(self.words, answer.start, key=lambda word: word.end)
        last = bisect.bisect_left(self.words, answer.start + len(answer.text), key=lambda word: word.start) - 1
        return (first, last) if first <= last else None

    def text_of(self, first: int, last: int) -> Answer:
        """Returns the paragraph's text from one word to another."""
        start = self.words[first].start
        return Answer(self.text[start : self.words[last].end], start)


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a paragraph; no answers if they are unknown."""

    paragraph: Paragraph
    text: str
    tokens: list[str]
    id: str | None = None
    answers: tuple[Answer, ...] = ()


def paragraph_of(text: str) -> Paragraph:
    """Returns a text with its words."""
    return Paragraph(text, tuple(split_words(text, finely=True)))


def question_of(paragraph: Paragraph, text: str, name: str | None = None, answers: tuple = ()) -> Question:
    """Returns a question with its tokens."""
    return Question(paragraph, text, _tokens(split_words(text, finely=True)), name, answers)


def read_questions(path: str | os.PathLike) -> list[Question]:
    """Returns the questions of a file in SQuAD's format that have an answer.

    An answer that is not at its `answer_start`, in characters, is left out, and so is a question that has no other; a
    warning counts both.
    """
    found, questions, misplaced = [], 0, 0
    for question in _of_articles(path, _content(path)):
        text = question.paragraph.text
        right = tuple(one for one in question.answers if one.text.strip() and text.startswith(one.text, one.start))
        questions += 1
        misplaced += len(question.answers) - len(right)
        if right:
            found.append(dataclasses.replace(question, answers=right))
    if misplaced or len(found) < questions:
        message = "warning: left out of %s: %d answers that are not at their answer_start, %d of %d questions"
        _log.warning(message, path, misplaced, questions - len(found), questions)
    return numbered_lines.require_some(found, path, "question with an answer")


def read_questions_without_answers(path: str | os.PathLike) -> list[Question]:
    """Returns the questions of a file, whether they have answers or not.

    The file is in SQuAD's format, or has a JSON object with `context` (or `paragraph`), `question` and optionally `id`
    on each line.
    """
    content = _content(path)
    found = list(_of_lines(path) if _is_lines(content) else _of_articles(path, content))
    return numbered_lines.require_some(found, path, "question")


def _content(path: str | os.PathLike) -> str:
    return "\n".join(line.text for line in numbered_lines.lines(path))


def _is_lines(content: str) -> bool:
    """Whether each line is a question: the first line is a JSON object, but not SQuAD's."""
    try:
        first = json.loads(content.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "data" not in first


def _of_articles(path: str | os.PathLike, content: str) -> Iterator[Question]:
    articles = json_file.parse(content, _File, str(path)).data
    for stored in (paragraph for article in articles for paragraph in article.paragraphs):
        paragraph = paragraph_of(stored.context)
        for row in stored.qas:
            answers = tuple(Answer(one.text, one.answer_start) for one in row.answers)
            yield _with_words(question_of(paragraph, row.question, row.id, answers), f"{path}, question {row.id}")


def _of_lines(path: str | os.PathLike) -> Iterator[Question]:
    numbered_lines.require_file(path)
    last = paragraph_of("")
    for line in numbered_lines.filled_lines(path):
        row = json_file.parse(line.text, _Row, line.place)
        context = row.paragraph if row.context is None else row.context
        if context is None:
            raise line.wrong("a JSON object with context and question")
        last = last if last.text == context else paragraph_of(context)
        yield _with_words(question_of(last, row.question, None if row.id is None else str(row.id)), line.place)


def _with_words(question: Question, place: str) -> Question:
    for name, words in (("paragraph", question.paragraph.words), ("question", question.tokens)):
        if not words:
            raise InputError(place, f"words in the {name}", "none")
    return question


def _tokens(words: Iterable[Word]) -> list[str]:
    return [_QUOTES.get(word.text, word.text) for word in words]
