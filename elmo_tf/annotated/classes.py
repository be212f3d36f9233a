"""Sentences with a class each: `label<TAB>sentence`, columns with a header, JSON lines, and the trees of SST."""

import dataclasses
import os
import re
from collections.abc import Iterator
from typing import Any

from elmo_tf.annotated import named_rows, numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading_options import DEFAULT, Reading

_SENTENCE, _LABEL = ("sentence", "text"), ("label",)
_PART = re.compile(r"\(\s*([^\s()]+)|([^\s()]+)|[()]")  # a bracket with its class, a token, or another bracket


@dataclasses.dataclass(frozen=True)
class Classified:
    """A sentence or phrase and its class, None if it has none."""

    tokens: list[str]
    label: str | None = None


def read_classes(path: str | os.PathLike, reading: Reading = DEFAULT, labeled: bool = True) -> list[Classified]:
    """Returns the sentences of a file, with their labels if it is `labeled`.

    A line has a label, a tab and a sentence; or the first line names the columns `sentence` (or `text`) and `label`
    (GLUE's SST-2 and CoLA); or each line is a JSON object with these keys. A label may be an index into
    `reading.labels`. `reading.tokenizer` splits the sentences. Unless `labeled`, a line may be a sentence alone, and
    empty sentences are left out.
    """
    sentences = []
    for line, row in _rows(path, labeled):
        text = named_rows.value(row, _SENTENCE)
        tokens = reading.split(text) if isinstance(text, str) else []
        label = named_rows.label(line, row, _LABEL, reading.labels) if labeled else None
        if labeled and (label is None or not tokens):
            raise line.error("a label, a tab and a sentence")
        if tokens:
            sentences.append(Classified(tokens, label))
    return numbered_lines.require_nonempty(sentences, path, "sentence")


def _rows(path: str | os.PathLike, labeled: bool) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yields each line with its label and its sentence by name."""
    if named_rows.has_named_values(path) or named_rows.has_header(path, [_SENTENCE, (*_LABEL, "index")]):
        yield from named_rows.read(path)
        return
    for line in numbered_lines.nonblank_lines(path):
        label, _, sentence = line.text.partition("\t") if labeled else line.text.rpartition("\t")
        yield line, {"label": label, "sentence": sentence}


@dataclasses.dataclass(frozen=True)
class Tree:
    """A sentence and the classes of all its phrases; the last phrase is the whole sentence."""

    phrases: list[Classified]

    @property
    def root(self) -> Classified:
        """The whole sentence."""
        return self.phrases[-1]


def has_trees(path: str | os.PathLike) -> bool:
    """Whether a file's first line is a tree."""
    first = numbered_lines.first_line(path)
    return bool(re.match(r"\(\d+ +[^\s)]", first)) and "\t" not in first


def read_trees(path: str | os.PathLike) -> list[Tree]:
    """Returns the trees of a file with a tree per line, such as `(3 (2 It) (4 works))`."""
    trees = [_read_tree(line) for line in numbered_lines.nonblank_lines(path)]
    return numbered_lines.require_nonempty(trees, path, "tree")


def _read_tree(line: Line) -> Tree:
    """Returns a line's tree: a bracket, a class, and a token or trees."""
    wrong = line.error("a tree such as (3 (2 It) (4 works))")
    phrases: list[Classified] = []
    tokens: list[str] = []
    unclosed: list[tuple[str, int]] = []  # the class of each open bracket, and the number of tokens before it
    for part in _PART.finditer(line.text):
        label, token = part.groups()
        if label:
            unclosed.append((label, len(tokens)))
        elif not unclosed or part[0] == "(":
            raise wrong
        elif token:
            tokens.append(numbered_lines.normalize_form(token))
        else:
            label, start = unclosed.pop()
            phrases.append(Classified(tokens[start:], label))
    if unclosed or not phrases or phrases[-1].tokens != tokens or not all(phrase.tokens for phrase in phrases):
        raise wrong
    return Tree(phrases)
