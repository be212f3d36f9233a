"""Trees with a class at every node, one per line: the Stanford Sentiment Treebank."""

import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.classes import Classified
from elmo_tf.annotated.numbered_lines import Line

_PART = re.compile(r"\(|\)|[^\s()]+")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}  # how the treebank writes brackets of the text


@dataclasses.dataclass(frozen=True)
class Tree:
    """A sentence and the classes of all its phrases; the last phrase is the whole sentence."""

    phrases: list[Classified]

    @property
    def root(self) -> Classified:
        """The whole sentence."""
        return self.phrases[-1]


def read_trees(path: str | os.PathLike) -> list[Tree]:
    """Returns the trees of a file with one per line, such as `(3 (2 It) (4 works))`."""
    return numbered_lines.require_some([_read_tree(line) for line in numbered_lines.filled_lines(path)], path, "tree")


def _read_tree(line: Line) -> Tree:
    """Returns a line's tree: a bracket, a class, and a token or trees."""

    def require(holds: object, expected: str) -> None:
        if not holds:
            raise line.wrong(f"a tree such as (3 (2 It) (4 works)): {expected}")

    parts = _PART.findall(line.text)
    phrases, tokens = [], []
    unclosed: list[tuple[str, int]] = []  # the class of each open bracket, and the number of tokens before it
    for before, part in zip(["", *parts[:-1]], parts, strict=True):
        if before == "(":
            require(part not in "()", "a class after (")
            unclosed.append((part, len(tokens)))
        elif part == ")":
            require(unclosed, "no ) without its (")
            label, start = unclosed.pop()
            require(start < len(tokens), "a token in every bracket")
            phrases.append(Classified(tokens[start:], label))
        elif part != "(":
            require(unclosed, "no token outside of brackets")
            tokens.append(_BRACKETS.get(part, part))
        require(part == ")" or unclosed or not phrases, "one tree")
    require(phrases and not unclosed, "a ) for every (")
    return Tree(phrases)
