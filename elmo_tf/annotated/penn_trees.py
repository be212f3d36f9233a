"""Bracketed trees, as in the Penn Treebank's `.mrg` files and OntoNotes's `.parse` files: the words and their tags."""

import os
import re

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.numbered_lines import Line, OddLines

_PART = re.compile(r"[()]|[^\s()]+", re.ASCII)  # a bracket, a label or a word
_TRACE = "-NONE-"  # the tag of what is not in the text
_NAMED = re.compile(r"\.(mrg|parse|ptb)(\.\w+)?$")  # compressed or not
_TREE = "a tree such as (S (NP (NN rain)) (VP (VBD fell)))"


def has_penn_trees(path: str | os.PathLike) -> bool:
    """Whether a file begins with a bracket."""
    return numbered_lines.first_line(path).lstrip().startswith("(")


def is_treebank(path: str | os.PathLike) -> bool:
    """Whether a file that may be running text has trees: it begins with a bracket, and its name says so."""
    return _NAMED.search(str(path)) is not None and has_penn_trees(path)


def read_penn_trees(path: str | os.PathLike, strict: bool = False) -> list[Tagged]:
    """Returns the sentences of a file of trees with their parts of speech.

    Several trees may be on a line, and a tree on several lines. Traces are left out, escapes (`-LRB-`, `\\/`) undone.
    Sentences whose words are withheld are left out with a warning, or errors if `strict`.
    """
    sentences, odd = [], OddLines(path, strict)
    unclosed: list[tuple[Line, list[str | None]]] = []  # of each open bracket its line and contents; None: a bracket
    tokens, labels = [], []
    for line in numbered_lines.nonblank_lines(path):
        for part in _PART.findall(line.text):
            if part == "(":
                unclosed.append((line, []))
                continue
            if not unclosed:
                raise line.error(_TREE)
            if part != ")":
                unclosed[-1][1].append(part)
                continue
            start, contents = unclosed.pop()
            match contents:
                case [str(tag), str(word)] if word.strip():
                    if tag != _TRACE:
                        tokens.append(numbered_lines.normalize_form(re.sub(r"\\([/*])", r"\1", word)))
                        labels.append(tag)
                case [_, *phrases] if (contents[0] is None or phrases) and not any(phrases):
                    pass
                case _:
                    raise line.error(_TREE)
            if unclosed:
                unclosed[-1][1].append(None)
                continue
            if tokens and odd.has_words(start.number, tokens):
                sentences.append(Tagged(tokens, labels))
            tokens, labels = [], []
    if unclosed:
        raise unclosed[0][0].error(f"{_TREE}; brackets that are open here are not closed")
    return odd.finish(sentences, "sentence")
