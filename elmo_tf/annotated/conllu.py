"""CoNLL-U, the format of Universal Dependencies: the tokens and one column of tags."""

import os

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.columns import Tagged

_COLUMNS = 10
# Numbers of the columns.
_TAGS = {"upos": 3, "xpos": 4}
# Stands for a value that is not given.
_NOTHING = "_"


def read_conllu(path: str | os.PathLike, column: str = "upos") -> list[Tagged]:
    """Returns the sentences of a CoNLL-U file.

    Words are read; multiword tokens, whose words follow, and empty nodes are left out.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).
        column: `"upos"` or `"xpos"`.

    Raises:
        InputError: naming the line that is not CoNLL-U or has no tag; or if there is no sentence.
    """
    sentences = []
    for block in numbered_lines.blocks(path):
        tokens, labels = [], []
        for number, line in block:
            fields = line.split("\t")
            if line.startswith("#"):
                continue
            if len(fields) != _COLUMNS:
                raise numbered_lines.wrong_line(path, number, f"{_COLUMNS} columns of CoNLL-U", line)
            if not fields[0].isdecimal():
                continue
            if fields[_TAGS[column]] in ("", _NOTHING):
                raise numbered_lines.wrong_line(path, number, f"a tag in the column {column}", line)
            tokens.append(numbered_lines.one_token(fields[1]))
            labels.append(fields[_TAGS[column]])
        sentences.append(Tagged(tokens, labels))
    return numbered_lines.require_some([one for one in sentences if one.tokens], path, "sentence")
