"""Questions whose answers are parts of a paragraph: SQuAD's JSON, and rows with a question each."""

import bisect
import dataclasses
import functools
import json
import logging
import os
from collections.abc import Iterator

import msgspec

from elmo_tf.annotated import named_rows, numbered_lines
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from elmo_tf.text.penn import Word
from elmo_tf.text.tokenizers import words_of

_QUOTES = {"``": '"', "''": '"'}

_log = logging.getLogger("elmo_tf")


class Answer(msgspec.Struct, frozen=True):
    """A part of a paragraph, and the index of its first character."""

    text: str
    start: Count = msgspec.field(name="answer_start")


class _Question(msgspec.Struct, frozen=True):
    question: str
    id: str | int | None
    answers: list[Answer] = []
    is_impossible: bool = False


class _Paragraph(msgspec.Struct, frozen=True):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct, frozen=True):
    paragraphs: list[_Paragraph]


class _File(msgspec.Struct, frozen=True):
    data: list[_Article]


class _Answers(msgspec.Struct, frozen=True):
    """Answers as Hugging Face's rows have them: two lists."""

    text: list[str]
    answer_start: list[Count]


class _Row(msgspec.Struct, frozen=True):
    """A row with a question."""

    question: str
    context: str
    id: str | int | None = None
    answers: _Answers | None = None


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A text and its words with their offsets in it."""

    text: str
    words: tuple[Word, ...] = dataclasses.field(compare=False)

    @functools.cached_property
    def tokens(self) -> list[str]:
        """The words as networks read them: a quotation mark is `"`, however it is written."""
        return [_QUOTES.get(word.text, word.text) for word in self.words]

    def token_span(self, answer: Answer) -> tuple[int, int] | None:
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
    """A question about a paragraph; no answers if they are unknown, or if the paragraph has none."""

    paragraph: Paragraph
    text: str
    tokens: list[str]
    id: str | None = None
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False  # whether the paragraph is known to have no answer


def paragraph_of(text: str, tokenizer: str = "penn") -> Paragraph:
    """Returns a text with its words."""
    return Paragraph(text, tuple(words_of(text, tokenizer, split_hyphens=True)))


def question_of(
    paragraph: Paragraph, text: str, question_id: str | None = None, answers: tuple = (), tokenizer: str = "penn"
) -> Question:
    """Returns a question with its tokens."""
    return Question(paragraph, text, paragraph_of(text, tokenizer).tokens, question_id, answers)


def read_questions(path: str | os.PathLike, reading: Reading = DEFAULT, labeled: bool = True) -> list[Question]:
    """Returns a file's questions that have an answer or are known to have none; all questions unless `labeled`.

    The file is in SQuAD's format, or has rows with `question`, `context` and `answers`, an object of two lists, `text`
    and `answer_start` (JSON lines or Parquet). A question has no answer if SQuAD's format says `is_impossible`, or a
    row's lists are empty. An answer that is not at its `answer_start`, in characters, is left out, and so is a question
    that has no other answer. A warning counts both; with `reading.strict`, they are errors.
    """
    questions, usable, num_misplaced = list(_questions(path, reading, labeled)), [], 0
    if not labeled:
        return numbered_lines.require_nonempty(questions, path, "question")
    for question in questions:
        text = question.paragraph.text
        answers = question.answers
        matching = tuple(part for part in answers if part.text.strip() and text.startswith(part.text, part.start))
        num_misplaced += len(answers) - len(matching)
        is_usable = bool(matching) or question.is_impossible
        if reading.strict and not (is_usable and len(matching) == len(answers)):
            problem = "no answer, or an answer that is not at its answer_start"
            raise InputError(f"{path}, question {question.id}", problem)
        if is_usable:
            usable.append(dataclasses.replace(question, answers=matching))
    if num_misplaced or len(usable) < len(questions):
        message = "warning: left out of %s: %d answers that are not at their answer_start, %d of %d questions"
        _log.warning(message, path, num_misplaced, len(questions) - len(usable), len(questions))
    return numbered_lines.require_nonempty(usable, path, "question with an answer")


def _questions(path: str | os.PathLike, reading: Reading, labeled: bool) -> Iterator[Question]:
    paragraph = paragraph_of("")
    for context, row, location in _rows(path):
        # Questions about a paragraph share its words.
        paragraph = paragraph if paragraph.text == context else paragraph_of(context, reading.tokenizer)
        question_id = None if row.id is None else str(row.id)
        question = question_of(paragraph, row.question, question_id, tuple(row.answers), reading.tokenizer)
        for part, words in (("paragraph", paragraph.words), ("question", question.tokens)):
            if labeled and not words:
                raise InputError(location, f"the {part} has no words")
        # SQuAD 2.0's impossible questions may have plausible answers, under another key.
        yield dataclasses.replace(question, is_impossible=row.is_impossible and not row.answers)


def _rows(path: str | os.PathLike) -> Iterator[tuple[str, _Question, str]]:
    """Yields each question's context, the question, and its location, for errors."""
    if named_rows.is_parquet(path) or _is_row(numbered_lines.first_line(path)):
        yield from _questions_in_rows(path)
        return
    content = "\n".join(line.text for line in numbered_lines.lines(path))
    if not content.strip():
        return
    for article in json_file.parse(content, _File, str(path)).data:
        for paragraph in article.paragraphs:
            for question in paragraph.qas:
                yield paragraph.context, question, f"{path}, question {question.id}"


def _questions_in_rows(path: str | os.PathLike) -> Iterator[tuple[str, _Question, str]]:
    """Like `_rows`, for a file with a question in each row."""
    for line, _ in named_rows.read(path):
        row = named_rows.parse(line, _Row)
        lists = row.answers or _Answers([], [])
        if len(lists.text) != len(lists.answer_start):
            raise line.error("answers whose lists text and answer_start have the same length")
        answers = list(map(Answer, lists.text, lists.answer_start))
        question = _Question(row.question, row.id, answers, is_impossible=row.answers is not None)
        yield row.context, question, line.location


def _is_row(text: str) -> bool:
    """Whether a file's first line is a question, a JSON object that is not SQuAD's."""
    try:
        first = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "data" not in first
