"""Identifiers of the user's own, in a column of lines with tabs between columns."""

from elmo_tf.errors import InputError
from elmo_tf.pipelines.text import corpora, reading


def take(
    lines: list[bytes], column: int, block: reading.Block, file: corpora.TextFile
) -> tuple[list[list[bytes]], list[bytes]]:
    """Returns the identifier of each line of a block, and the rest of the line, which is its text.

    An identifier is a list with one string; it is empty if the line began in the block before.

    Raises:
        InputError: naming file and line, if a line has no such column, no other one, or nothing in this one.
    """
    found, texts = [], []
    for number, line in enumerate(lines):
        if number == 0 and block.is_continuation:
            found.append([])
            texts.append(line)
            continue
        columns = line.split(b"\t")
        identifier = columns.pop(column - 1).strip() if 1 < len(columns) >= column else b""
        if not identifier:
            place = sum(len(one) + 1 for one in block.data.split(b"\n")[:number])
            where = f"none on line {reading.line_number(file, block, place)}"
            raise InputError(block.source, f"an identifier in column {column}, and a tab beside it", where)
        found.append([identifier])
        texts.append(b"\t".join(columns))
    return found, texts
