"""Classified sentences: `label<TAB>sentence`, tables, JSON lines, and the trees of SST."""

import dataclasses
import os
import re

from elmo_tf.annotated import labeled_rows, numbered_lines, penn_trees
from elmo_tf.annotated.labeled_rows import Schema
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError

_SCHEMA = Schema((("sentence",), ("text",)), ("label",), "a sentence", "a label and a sentence")
_PART = re.compile(r"\(\s*([^\s()]+)|([^\s()]+)|[()]")  # a bracket with its class, a token, or another bracket


@dataclasses.dataclass(frozen=True)
class Classified:
    """A sentence or phrase and its class, None if it has none."""

    tokens: list[str]
    label: str | None = None


def read_classes(path: str | os.PathLike, reading: Reading = DEFAULT, labeled: bool = True) -> list[Classified]:
    """Returns the sentences of a file, with their labels if it is `labeled`.

    A line has a label, a tab and a sentence; or the file is a table whose first line names the columns `sentence` (or
    `text`) and `label`, JSON lines or Parquet with these names. `reading` may give other names. A label may be an
    index into `reading.labels`; rows with the label -1 (none) are left out, with a warning that counts them.
    `reading.tokenizer` splits the sentences. Unless `labeled`, a line may be a sentence alone, a sentence may have no
    tokens, and the file may have the Penn Treebank's trees.
    """
    if not labeled and penn_trees.is_treebank(path):
        return [Classified(sentence.tokens) for sentence in penn_trees.read_penn_trees(path, reading.strict)]
    sentences = []
    for example in labeled_rows.read_examples(path, _SCHEMA, reading, labeled):
        text = example.values[example.texts[0]]
        tokens = reading.split(text) if isinstance(text, str) else []
        if not tokens and (labeled or not isinstance(text, str)):
            raise InputError(example.line.location, f"{example.texts[0]} has no words: {text!r}")
        sentences.append(Classified(tokens, example.label))
    return numbered_lines.require_nonempty(sentences, path, "sentence")


def is_running_text(path: str | os.PathLike, reading: Reading = DEFAULT) -> bool:
    """Whether a file without labels has one sentence per line, and is not a table, JSON, Parquet or trees."""
    are_trees = has_trees(path) or penn_trees.is_treebank(path)
    return not are_trees and labeled_rows.is_running_text(path, _SCHEMA, reading)


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
