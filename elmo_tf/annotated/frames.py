"""Predicates and their roles (PropBank): JSON lines, `index words ||| tags`, and the columns of CoNLL-2005 and 2012."""

import dataclasses
import json
import numbers
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from elmo_tf.annotated import frame_columns, numbered_lines, tag_schemes

_BETWEEN = "|||"
_FORMATS = f"JSON objects, index words {_BETWEEN} tags, or the columns of CoNLL-2005 or CoNLL-2012"
_LINE = f"the predicate's index, words, {_BETWEEN} and tags"
_FRAMES = 'an object with "words" and either "pred" or "frames", a list of objects with "pred"'


@dataclasses.dataclass(frozen=True)
class Frame:
    """A predicate of a sentence, and the role of each token; None: without roles."""

    tokens: list[str]
    predicate: int
    tags: list[str] | None = None  # IOB2; the predicate itself is V, a continuation C-X, a reference R-X


def read_frames(path: str | os.PathLike) -> list[list[Frame]]:
    """Returns the frames of each sentence that has any; the frames of a sentence share the list of its tokens.

    The first line that is not empty decides the format:

    - a JSON object: `words`, and `frames`, a list of objects with `pred`, the predicate's index from 0, and `tags`; or
      `words`, `pred` and `tags` of one frame.
    - `#begin document`: CoNLL-2012's columns.
    - with `|||`: a frame a line, `index words ||| tags` (deep_srl).
    - else CoNLL-2005's columns: words first, then any, predicates, and a column of arguments for each predicate.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line with a predicate outside of the sentence, a number of tags that is not the words', a
            tag that cannot follow the tag before it, roles that overlap or a bracket that is not closed; or if there is
            no frame.
    """
    return numbered_lines.require_some(list(_sentences(path, labelled=True)), path, "predicate with its roles")


def read_predicates(path: str | os.PathLike) -> list[Frame]:
    """Returns frames without roles, of the same formats: `tags` and what is behind `|||` need not be there.

    Raises:
        InputError: as `read_frames` does.
    """
    found = [dataclasses.replace(one, tags=None) for frames in _sentences(path, labelled=False) for one in frames]
    return numbered_lines.require_some(found, path, "predicate")


def checked_frame(tokens: list[str], predicate: Any, tags: Any = None) -> Frame:
    """Returns a frame.

    Raises:
        WrongFrame: if it is none.
    """
    if isinstance(predicate, bool) or not isinstance(predicate, numbers.Integral) or not 0 <= predicate < len(tokens):
        raise WrongFrame(f"a predicate's index from 0 to {len(tokens) - 1}", repr(predicate))
    if tags is not None:
        if not isinstance(tags, list) or not all(isinstance(tag, str) and tag_schemes.is_tag(tag) for tag in tags):
            raise WrongFrame("a list of tags, O, B-... or I-...", str(tags))
        if len(tags) != len(tokens):
            raise WrongFrame(f"{len(tokens)} tags, one for each word", str(len(tags)))
        try:
            tag_schemes.to_iob2(tags, "IOB2")
        except tag_schemes.WrongTag as wrong:
            raise WrongFrame(wrong.expected, f"{tags[wrong.place]} of word {wrong.place}") from None
    return Frame(tokens, int(predicate), tags)


class WrongFrame(ValueError):
    """What was given is not a frame."""

    def __init__(self, expected: str, found: str):
        super().__init__(expected, found)
        self.expected = expected
        self.found = found


def _sentences(path: str | os.PathLike, labelled: bool) -> Iterator[list[Frame]]:
    lines = numbered_lines.numbered_lines(path)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, ""))
    if re.match(r'\s*\{\s*["}]', first):
        yield from _with_lines(path, _frames_of_json, labelled)
    elif _BETWEEN in first.split():
        yield from _joined(_with_lines(path, _frame_of_text, labelled))
    elif not first or frame_columns.is_row(first):
        for tokens, found in frame_columns.read(path):
            if found:
                yield [Frame(tokens, one.predicate, one.tags) for one in found]
    else:
        raise numbered_lines.wrong_line(path, number, _FORMATS, first)


def _with_lines(
    path: str | os.PathLike, read: Callable[[str, bool], list[Frame]], labelled: bool
) -> Iterator[list[Frame]]:
    """Yields what `read` finds in each line; its `WrongFrame` is raised with the line."""
    for number, line in numbered_lines.numbered_lines(path):
        if not line.strip():
            continue
        try:
            found = read(line, labelled)
        except WrongFrame as wrong:
            raise numbered_lines.wrong_line(path, number, wrong.expected, wrong.found) from None
        if found:
            yield found


def _joined(lines: Iterator[list[Frame]]) -> Iterator[list[Frame]]:
    """Yields the frames of following lines with the same words together."""
    sentence: list[Frame] = []
    for (frame,) in lines:
        if sentence and frame.tokens == sentence[0].tokens:
            sentence.append(dataclasses.replace(frame, tokens=sentence[0].tokens))
            continue
        if sentence:
            yield sentence
        sentence = [frame]
    if sentence:
        yield sentence


def _frame_of_text(line: str, labelled: bool) -> list[Frame]:
    *fields, tags = [part.split() for part in re.split(rf"(?:^|\s){re.escape(_BETWEEN)}(?=\s|$)", line)]
    if len(fields) != 1 or len(fields[0]) < 2 or not fields[0][0].isdecimal() or (labelled and not tags):
        raise WrongFrame(_LINE, line)
    fields = fields[0]
    return [checked_frame(fields[1:], int(fields[0]), tags if labelled else None)]


def _frames_of_json(line: str, labelled: bool) -> list[Frame]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise WrongFrame("a JSON object", line)
    words, frames = found.get("words"), found.get("frames", [found])
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise WrongFrame('a list of words in "words", none of them empty', str(words))
    if not isinstance(frames, list) or not all(isinstance(one, dict) and "pred" in one for one in frames):
        raise WrongFrame(_FRAMES, line)
    if labelled and not all("tags" in one for one in frames):
        raise WrongFrame('"tags" with each "pred"', line)
    words = [numbered_lines.one_token(word) or word for word in words]
    return [checked_frame(words, one["pred"], one["tags"] if labelled else None) for one in frames]
