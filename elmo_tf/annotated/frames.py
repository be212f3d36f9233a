"""Predicates and their roles (PropBank): JSON lines, `index words ||| tags`, and the columns of CoNLL-2005 and 2012."""

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import numpy as np

from elmo_tf.annotated import frame_columns, numbered_lines, tag_schemes, words
from elmo_tf.annotated.frame_columns import Frame
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError
from elmo_tf.files import json_file

_BETWEEN = "|||"
_SEPARATOR = re.compile(rf"(?:^|\s){re.escape(_BETWEEN)}(?=\s|$)", re.ASCII)
_Word = Annotated[str, msgspec.Meta(min_length=1)]


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


def read_frames(path: str | os.PathLike) -> list[list[Frame]]:
    """Returns the frames of each sentence that has any; the frames of a sentence share the list of its tokens.

    The first line that is not blank decides the format:

    - a JSON object: `words`, and `frames`, a list of objects with `pred`, the predicate's index from 0, and `tags`; or
      `words`, `pred` and `tags` of a single frame.
    - `#begin document`: CoNLL-2012's columns.
    - with `|||`: a frame per line, `index words ||| tags` (deep_srl).
    - else CoNLL-2005's columns: words first, then any, predicates, and a column of arguments for each predicate.
    """
    return numbered_lines.require_some(list(_sentences(path, labelled=True)), path, "predicate with its roles")


def read_predicates(path: str | os.PathLike) -> list[Frame]:
    """Returns frames without roles, from the same formats; `tags` and what follows `|||` are optional."""
    sentences = _sentences(path, labelled=False)
    predicates = [dataclasses.replace(frame, tags=None) for frames in sentences for frame in frames]
    return numbered_lines.require_some(predicates, path, "predicate")


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


def _sentences(path: str | os.PathLike, labelled: bool) -> Iterator[list[Frame]]:
    numbered_lines.require_file(path)
    first = next(numbered_lines.filled_lines(path), None)
    if first is None:
        return
    if re.match(r'\s*\{\s*["}]', first.text):
        yield from filter(None, (_frames_of_json(line, labelled) for line in numbered_lines.filled_lines(path)))
    elif _BETWEEN in first.text.split():
        all_frames = (_frame_of_text(line, labelled) for line in numbered_lines.filled_lines(path))
        for tokens, frames in itertools.groupby(all_frames, lambda frame: frame.tokens):
            yield [dataclasses.replace(frame, tokens=tokens) for frame in frames]
    elif frame_columns.is_row(first.text):
        yield from filter(None, frame_columns.read(path))
    else:
        raise first.wrong(f"JSON objects, index words {_BETWEEN} tags, or the columns of CoNLL-2005 or CoNLL-2012")


def _frame_of_text(line: Line, labelled: bool) -> Frame:
    *fields, tags = [words.split(part) for part in _SEPARATOR.split(line.text)]
    if len(fields) != 1 or len(fields[0]) < 2 or not fields[0][0].isdecimal() or (labelled and not tags):
        raise line.wrong(f"the predicate's index, words, {_BETWEEN} and tags")
    index, *forms = fields[0]
    return checked_frame(
        [words.word(form) or form for form in forms], int(index), tags if labelled else None, line.wrong
    )


def _frames_of_json(line: Line, labelled: bool) -> list[Frame]:
    row = json_file.parse(line.text, _Row, line.location)
    frames = [row] if row.frames is None else row.frames
    if labelled and any(frame.tags is None for frame in frames):
        raise line.wrong("tags with each pred")
    tokens = [words.word(form) or form for form in row.words]
    return [checked_frame(tokens, frame.pred, frame.tags if labelled else None, line.wrong) for frame in frames]
