"""Predicates and their roles (PropBank): JSON lines, `index words ||| tags`, and the columns of CoNLL-2005 and 2012."""

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import numpy as np

from elmo_tf.annotated import named_rows, numbered_lines, tag_schemes
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.annotated.tag_schemes import Span
from elmo_tf.errors import InputError

_BETWEEN = "|||"
_SEPARATOR = re.compile(rf"(?:^|\s){re.escape(_BETWEEN)}(?=\s|$)", re.ASCII)
_Word = Annotated[str, msgspec.Meta(min_length=1)]
_CELL = re.compile(r"(?:\(([^()*\s]+))?\*(\)?)")  # of an argument column: (A0*, *, *) or (A0*)
_BEGIN, _END = "#begin document", "#end document"
_NOTHING = "-"
# CoNLL-2012: the word's column, the first that may have arguments, and the number of columns after those.
_WORD_2012, _ARGUMENTS_2012, _AFTER_2012 = 3, 11, 1

_Rows = list[tuple[Line, list[str]]]  # the lines of a sentence and their columns


@dataclasses.dataclass(frozen=True)
class Frame:
    """A predicate of a sentence, and the role of each token, None without roles."""

    tokens: list[str]
    predicate: int  # its index in `tokens`
    tags: list[str] | None = None  # IOB2; the predicate itself is V, a continuation C-X, a reference R-X


class _Predicate(msgspec.Struct, frozen=True):
    """A predicate of a line of JSON."""

    pred: int
    tags: list[str] | None = None


class _Row(msgspec.Struct, frozen=True):
    """A line of JSON, with a list of frames, or a single frame."""

    words: Annotated[list[_Word], msgspec.Meta(min_length=1)]
    frames: list[_Predicate] | None = None
    pred: int | None = None
    tags: list[str] | None = None


def read_frames(path: str | os.PathLike, labeled: bool = True) -> list[list[Frame]]:
    """Returns the frames of each sentence that has any; frames of a sentence share its list of tokens.

    The first line that is not blank decides the format:

    - a JSON object: `words`, and `frames`, a list of objects with `pred`, the predicate's index from 0, and `tags`; or
      `words`, `pred` and `tags` of a single frame.
    - `#begin document`: CoNLL-2012's columns.
    - with `|||`: a frame per line, `index words ||| tags` (deep_srl).
    - else CoNLL-2005's columns: words first, then any, predicates, and a column of arguments for each predicate.

    Unless `labeled`, frames have no roles; `tags` and what follows `|||` are optional. Sentences whose words are
    withheld (all are `[WORD]` or `_`) are left out with a warning.
    """
    odd = OddLines(path)
    sentences = [
        frames for line, frames in _sentences(path, labeled) if frames and odd.has_words(line.number, frames[0].tokens)
    ]
    return odd.finish(sentences, "predicate with its roles" if labeled else "predicate")


def checked_frame(
    tokens: list[str], predicate: Any, tags: list[str] | None, wrong: Callable[[str, str], InputError]
) -> Frame:
    """Returns the frame; raises `wrong(expected, value)` if a value is invalid."""
    if isinstance(predicate, bool) or not isinstance(predicate, int | np.integer) or not 0 <= predicate < len(tokens):
        raise wrong(f"a predicate's index from 0 to {len(tokens) - 1}", repr(predicate))
    if tags is not None:
        if not all(tag_schemes.is_tag(tag) and tag[0] in "OBI" for tag in tags):
            raise wrong("tags O, B-... or I-...", str(tags))
        if len(tags) != len(tokens):
            raise wrong(f"{len(tokens)} tags, one for each word", str(len(tags)))
        if (position := tag_schemes.misplaced(tags, bioul=False)) is not None:
            raise wrong("tags in an order that IOB2 allows", f"{tags[position]} of word {position}")
    return Frame(tokens, int(predicate), tags)


def _sentences(path: str | os.PathLike, labeled: bool) -> Iterator[tuple[Line, list[Frame]]]:
    """Yields the first line of each sentence, and its frames."""
    lines = numbered_lines.nonblank_lines(path)
    first = next(lines, None)
    if first is None:
        return
    lines = itertools.chain([first], lines)
    last = first.text.split()[-1]
    if re.match(r'\s*\{\s*["}]', first.text):
        yield from ((line, _frames_of_json(line, labeled)) for line in lines)
    elif _BETWEEN in first.text.split():
        all_frames = ((line, _frame_of_text(line, labeled)) for line in lines)
        for tokens, pairs in itertools.groupby(all_frames, lambda pair: pair[1].tokens):
            numbered, frames = zip(*pairs, strict=True)
            yield numbered[0], [dataclasses.replace(frame, tokens=tokens) for frame in frames]
    elif first.text.startswith(_BEGIN) or (last != first.text.strip() and (last == _NOTHING or _CELL.fullmatch(last))):
        for line, sentence in _frames_of_columns(path):
            yield line, sentence if labeled else [dataclasses.replace(frame, tags=None) for frame in sentence]
    else:
        raise first.error(f"JSON objects, index words {_BETWEEN} tags, or the columns of CoNLL-2005 or CoNLL-2012")


def _frame_of_text(line: Line, labeled: bool) -> Frame:
    *fields, tags = [numbered_lines.split(part) for part in _SEPARATOR.split(line.text)]
    if len(fields) != 1 or len(fields[0]) < 2 or not fields[0][0].isdecimal() or (labeled and not tags):
        raise line.error(f"the predicate's index, words, {_BETWEEN} and tags")
    index, *forms = fields[0]
    tokens = [numbered_lines.normalize_form(form) or form for form in forms]
    return checked_frame(tokens, int(index), tags if labeled else None, line.error)


def _frames_of_json(line: Line, labeled: bool) -> list[Frame]:
    row = named_rows.parse(line, _Row)
    frames = [row] if row.frames is None else row.frames
    if labeled and any(frame.tags is None for frame in frames):
        raise line.error("tags with each pred")
    tokens = [numbered_lines.normalize_form(form) or form for form in row.words]
    return [checked_frame(tokens, frame.pred, frame.tags if labeled else None, line.error) for frame in frames]


def _frames_of_columns(path: str | os.PathLike) -> Iterator[tuple[Line, list[Frame]]]:
    is_2012 = False
    for block in numbered_lines.blocks(path):
        is_2012 = is_2012 or block[0].text.startswith(_BEGIN)
        rows = [(line, numbered_lines.split(line.text)) for line in block if not line.text.startswith((_BEGIN, _END))]
        for line, fields in rows:
            if len(fields) != len(rows[0][1]):
                raise line.error(f"{len(rows[0][1])} columns, as in the sentence's first line")
        if rows:
            word, columns = _columns_2012(rows) if is_2012 else _columns_2005(rows)
            tokens = [numbered_lines.normalize_form(fields[word]) or fields[word] for _, fields in rows]
            yield rows[0][0], [Frame(tokens, *_roles(rows, column)) for column in columns]


def _columns_2012(rows: _Rows) -> tuple[int, range]:
    """Returns the column of the words, and the columns of arguments, one for each predicate."""
    line, first = rows[0]
    if len(first) < _ARGUMENTS_2012 + _AFTER_2012:
        raise line.error(f"{_ARGUMENTS_2012 + _AFTER_2012} columns or more")
    return _WORD_2012, range(_ARGUMENTS_2012, len(first) - _AFTER_2012)


def _columns_2005(rows: _Rows) -> tuple[int, range]:
    """Finds the columns from the right: those of arguments, each with a predicate's bracket, then the predicates."""
    line, first = rows[0]
    target = len(first) - 1
    while target and any(fields[target].startswith("(V*") for _, fields in rows):
        target -= 1
    predicates = sum(fields[target] != _NOTHING for _, fields in rows)
    if not target or predicates != len(first) - target - 1:
        expected = "words, a column of predicates (- where there is none) and for each a column of arguments with (V*)"
        raise line.error(expected)
    return 0, range(target + 1, len(first))


def _roles(rows: _Rows, column: int) -> tuple[int, list[str]]:
    """Returns the index of the predicate, and the tags in a column."""
    spans: list[Span] = []
    opened = None  # index and label of the open bracket
    for index, (line, fields) in enumerate(rows):
        cell = _CELL.fullmatch(fields[column])
        if not cell:
            raise line.error("arguments such as (A0*, *, *) or (A0*)", fields[column])
        label, ends = cell.groups()
        if (label and opened) or (ends and not label and not opened):
            problem = "begins inside another" if label else "ends without a beginning"
            raise InputError(line.location, f"a bracket {problem}: {fields[column]!r}")
        if label:
            opened = index, label
        if opened and ends:
            spans.append(Span(opened[0], index + 1, opened[1]))
            opened = None
    if opened:
        line, fields = rows[opened[0]]
        raise InputError(line.location, f"a bracket is not closed in its sentence: {fields[column]!r}")
    predicates = [start for start, _, kind in spans if kind == "V"]
    if not predicates:
        raise InputError(rows[0][0].location, f"column {column + 1} has no predicate (V*)")
    return predicates[0], tag_schemes.spans_to_iob2(spans, len(rows))
