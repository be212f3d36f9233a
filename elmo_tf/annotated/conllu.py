"""CoNLL-U, the format of Universal Dependencies: the tokens and one column of tags."""

import os

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.columns import Tagged

_NUM_COLUMNS = 10
_COLUMN_OF = {"upos": 3, "xpos": 4}


def read_conllu(path: str | os.PathLike, column: str = "upos") -> list[Tagged]:
    """Returns the sentences of a CoNLL-U file with the tags of a column, `"upos"` or `"xpos"`.

    Multiword tokens, whose words follow them, and empty nodes are left out.
    """
    sentences = []
    for block in numbered_lines.blocks(path):
        tokens, labels = [], []
        for line in block:
            fields = line.text.split("\t")
            if line.text.startswith("#"):
                continue
            if len(fields) != _NUM_COLUMNS:
                raise line.wrong(f"{_NUM_COLUMNS} columns of CoNLL-U")
            if not fields[0].isdecimal():
                continue
            if (tag := fields[_COLUMN_OF[column]]) in ("", "_"):
                raise line.wrong(f"a tag in the column {column}")
            tokens.append(numbered_lines.one_token(fields[1]))
            labels.append(tag)
        if tokens:
            sentences.append(Tagged(tokens, labels))
    return numbered_lines.require_some(sentences, path, "sentence")
