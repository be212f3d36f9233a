"""Questions about paragraphs, whose answers are parts of them: SQuAD 1.1's JSON, and a question a line."""

import bisect
import dataclasses
import functools
import json
import logging
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from elmo_tf.annotated import numbered_lines
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.text.word_split import Word, split_words

_ANSWER = json_file.Object({"text": json_file.Text(), "answer_start": json_file.Whole()})
_QUESTION = {"question": json_file.Text()}
_ID = {"id": json_file.Text()}
_QUOTES = {"``": '"', "''": '"'}
# In a file with a question a line.
_A_LINE = "a JSON object with context and question"
_NAMED = 3  # answers of a warning

_log = logging.getLogger("elmo_tf")


class Answer(NamedTuple):
    """A part of a paragraph, and the place of its first character."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A text and its words, which know their places in it."""

    text: str
    words: tuple[Word, ...] = dataclasses.field(compare=False)

    @functools.cached_property
    def tokens(self) -> list[str]:
        """The words as networks read them: a quotation mark is `"`, however it is written."""
        return _tokens(self.words)

    def covering(self, answer: Answer) -> tuple[int, int] | None:
        """Returns the first and the last word that have a part of an answer; None if there is only white space."""
        first = bisect.bisect_right(self.words, answer.start, key=lambda word: word.end)
        last = bisect.bisect_left(self.words, answer.start + len(answer.text), key=lambda word: word.start) - 1
        return (first, last) if first <= last else None

    def text_of(self, first: int, last: int) -> Answer:
        """Returns the text from one word to another as it stands in the paragraph."""
        start = self.words[first].start
        return Answer(self.text[start : self.words[last].end], start)


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a paragraph; without answers where these are not known."""

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

    An answer that does not stand at its `answer_start`, in characters, is left out, and so is a question that has no
    other; a warning counts both and names the first.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the file, if it is something else; or if it has no question with an answer.
    """
    found, wrong, count = [], [], 0
    for question in _of_articles(path, _content(path), with_answers=True):
        text = question.paragraph.text
        right = tuple(one for one in question.answers if one.text.strip() and text.startswith(one.text, one.start))
        wrong += [(question, one) for one in question.answers if one not in right]
        count += 1
        if right:
            found.append(dataclasses.replace(question, answers=right))
    if wrong:
        named = ", ".join(f"{one.text[:40]!r} at {one.start} (question {of.id})" for of, one in wrong[:_NAMED])
        message = "warning: answers that are not at their answer_start are left out: %d; the first: %s; in %s"
        _log.warning(message, len(wrong), named, path)
    if len(found) < count:
        message = "warning: questions without an answer are left out: %d of %d; in %s"
        _log.warning(message, count - len(found), count, path)
    return numbered_lines.require_some(found, path, "question with an answer")


def read_questions_without_answers(path: str | os.PathLike) -> list[Question]:
    """Returns the questions of a file, without their answers, which need not be there.

    The file is in SQuAD's format, or has a JSON object with `context` (or `paragraph`), `question` and perhaps `id` in
    each line.
    """
    content = _content(path)
    found = list(_of_lines(path) if _has_lines(content) else _of_articles(path, content, with_answers=False))
    return numbered_lines.require_some(found, path, "question")


def _content(path: str | os.PathLike) -> str:
    return "\n".join(line for _, line in numbered_lines.numbered_lines(path))


def _has_lines(content: str) -> bool:
    """Whether there is a question a line: the first line is an object that is not SQuAD's."""
    try:
        first = json.loads(content.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "data" not in first


def _of_articles(path: str | os.PathLike, content: str, with_answers: bool) -> Iterator[Question]:
    question: Any = json_file.Object(_QUESTION | _ID)
    if with_answers:
        question = json_file.Object(_QUESTION | _ID | {"answers": json_file.ListOf(_ANSWER)})
    paragraph = json_file.Object({"context": json_file.Text(), "qas": json_file.ListOf(question)})
    article = json_file.Object({"paragraphs": json_file.ListOf(paragraph)})
    schema = json_file.Object({"data": json_file.ListOf(article)})
    for article in json_file.parse(content, schema, str(path), "path")["data"]:
        for one in article["paragraphs"]:
            paragraph = paragraph_of(one["context"])
            for row in one["qas"]:
                answers = row["answers"] if with_answers else ()
                made = tuple(Answer(answer["text"], answer["answer_start"]) for answer in answers)
                question = question_of(paragraph, row["question"], row["id"], made)
                yield _with_words(question, f"question {row['id']} of {path}")


def _of_lines(path: str | os.PathLike) -> Iterator[Question]:
    last = paragraph_of("")
    for number, line in numbered_lines.numbered_lines(path):
        if not line.strip():
            continue
        row = _object_of(line)
        texts = [row.get("context", row.get("paragraph")), row.get("question")]
        if not all(isinstance(text, str) for text in texts):
            raise numbered_lines.wrong_line(path, number, _A_LINE, line)
        last = last if last.text == texts[0] else paragraph_of(texts[0])
        name = None if row.get("id") is None else str(row["id"])
        yield _with_words(question_of(last, texts[1], name), f"line {number} of {path}")


def _object_of(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _with_words(question: Question, place: str) -> Question:
    for name, words in (("paragraph", question.paragraph.words), ("question", question.tokens)):
        if not words:
            raise InputError("path", f"words in the {name}", f"none in {place}")
    return question


def _tokens(words: Any) -> list[str]:
    return [_QUOTES.get(word.text, word.text) for word in words]
