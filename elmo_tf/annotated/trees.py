"""Trees with a class at every node, one a line: the Stanford Sentiment Treebank."""

import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.classes import Classified

_PART = re.compile(r"\(|\)|[^\s()]+")
# In the treebank, brackets of the text.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}


@dataclasses.dataclass(frozen=True)
class Tree:
    """A sentence and the classes of all its phrases; the last phrase is the whole sentence."""

    phrases: list[Classified]

    @property
    def root(self) -> Classified:
        """The whole sentence."""
        return self.phrases[-1]


def read_trees(path: str | os.PathLike) -> list[Tree]:
    """Returns the trees of a file with one a line, as `(3 (2 It) (4 works))`.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line that is no such tree; or if there is none.
    """
    lines = numbered_lines.numbered_lines(path)
    found = [_read_tree(path, number, line) for number, line in lines if line.strip()]
    return numbered_lines.require_some(found, path, "tree")


def _read_tree(path: str | os.PathLike, number: int, line: str) -> Tree:
    """Returns a line's tree: a bracket, a class, and a token or trees."""

    def wrong(expected: str) -> Exception:
        return numbered_lines.wrong_line(path, number, f"a tree such as (3 (2 It) (4 works)): {expected}", line)

    parts = _PART.findall(line)
    phrases, tokens = [], []
    # The class of each open bracket, and the number of tokens before it.
    unclosed: list[tuple[str, int]] = []
    for before, part in zip(["", *parts[:-1]], parts, strict=True):
        if before == "(":
            if part in "()":
                raise wrong("a class after (")
            unclosed.append((part, len(tokens)))
        elif part == ")":
            if not unclosed:
                raise wrong("no ) without its (")
            label, start = unclosed.pop()
            if start == len(tokens):
                raise wrong("a token in every bracket")
            phrases.append(Classified(tokens[start:], label))
        elif part != "(":
            if not unclosed:
                raise wrong("no token outside of brackets")
            tokens.append(_BRACKETS.get(part, part))
        if part != ")" and not unclosed and phrases:
            raise wrong("one tree")
    if unclosed or not phrases:
        raise wrong("a ) for every (")
    return Tree(phrases)
