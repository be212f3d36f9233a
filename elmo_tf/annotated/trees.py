"""Trees with a class at every node, a tree per line: the Stanford Sentiment Treebank."""

import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines, words
from elmo_tf.annotated.classes import Classified
from elmo_tf.annotated.numbered_lines import Line

_PART = re.compile(r"\(\s*([^\s()]+)|([^\s()]+)|[()]")  # a bracket with its class, a token, or another bracket


@dataclasses.dataclass(frozen=True)
class Tree:
    """A sentence and the classes of all its phrases; the last phrase is the whole sentence."""

    phrases: list[Classified]

    @property
    def root(self) -> Classified:
        """The whole sentence."""
        return self.phrases[-1]


def read_trees(path: str | os.PathLike) -> list[Tree]:
    """Returns the trees of a file with a tree per line, such as `(3 (2 It) (4 works))`."""
    return numbered_lines.require_some([_read_tree(line) for line in numbered_lines.filled_lines(path)], path, "tree")


def _read_tree(line: Line) -> Tree:
    """Returns a line's tree: a bracket, a class, and a token or trees."""
    wrong = line.wrong("a tree such as (3 (2 It) (4 works))")
    phrases, tokens = [], []
    unclosed: list[tuple[str, int]] = []  # the class of each open bracket, and the number of tokens before it
    for part in _PART.finditer(line.text):
        label, token = part.groups()
        if label:
            unclosed.append((label, len(tokens)))
        elif not unclosed or part[0] == "(":
            raise wrong
        elif token:
            tokens.append(words.word(token))
        else:
            label, start = unclosed.pop()
            phrases.append(Classified(tokens[start:], label))
    if unclosed or not phrases or phrases[-1].tokens != tokens or not all(phrase.tokens for phrase in phrases):
        raise wrong
    return Tree(phrases)
