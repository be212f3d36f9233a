"""Parts of speech: CoNLL-U, the format of Universal Dependencies, and the Penn Treebank's trees."""

import os

from elmo_tf.annotated import numbered_lines, penn_trees
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.numbered_lines import OddLines

_NUM_COLUMNS = 10
_COLUMN_OF = {"upos": 3, "xpos": 4}


def read_parts_of_speech(path: str | os.PathLike, column: str = "upos") -> list[Tagged]:
    """Returns the sentences of a file with their parts of speech: of trees, or of a column of CoNLL-U."""
    if penn_trees.has_penn_trees(path):
        return penn_trees.read_penn_trees(path)
    return read_conllu(path, column)


def read_conllu(path: str | os.PathLike, column: str = "upos") -> list[Tagged]:
    """Returns the sentences of a CoNLL-U file with the tags of a column, `"upos"` or `"xpos"`.

    Multiword tokens, whose words follow them, and empty nodes are left out. So are words whose form is only white
    space, and sentences whose words are withheld (all are `_`), with a warning.
    """
    sentences, odd = [], OddLines(path)
    for block in numbered_lines.blocks(path, odd):
        tokens, labels = [], []
        for line in block:
            fields = line.text.split("\t")
            if line.text.startswith("#"):
                continue
            if len(fields) != _NUM_COLUMNS:
                raise line.error(f"{_NUM_COLUMNS} columns of CoNLL-U")
            if not fields[0].isdecimal():
                continue
            if (tag := fields[_COLUMN_OF[column]]) in ("", "_"):
                raise line.error(f"a tag in the column {column}")
            if not (token := numbered_lines.normalize_form(fields[1])):
                odd.add(line.number, "a form that is only white space")
                continue
            tokens.append(token)
            labels.append(tag)
        if tokens and odd.has_words(block[0].number, tokens):
            sentences.append(Tagged(tokens, labels))
    return odd.finish(sentences, "sentence")
