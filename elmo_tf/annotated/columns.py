"""A token and its tag per line: named entities and chunks (CoNLL-2003, WNUT-17, Universal NER, GermEval, WikiANN)."""

import dataclasses
import itertools
import logging
import os
import re
from collections.abc import Iterator, Sequence

from elmo_tf.annotated import column_layout, numbered_lines, tag_schemes, words
from elmo_tf.annotated.column_layout import DOCUMENT, Layout, Row, fields_of
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.annotated.reading_options import DEFAULT, Reading

_TAG = re.compile(r"O|[BILUESMW]-[^\W\d].*")  # not the last word of "We drove along I-95"

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Tagged:
    """A sentence with a label for each token, or None without labels."""

    tokens: list[str]
    labels: list[str] | None = None


def read_columns(path: str | os.PathLike, reading: Reading = DEFAULT) -> list[Tagged]:
    """Returns the sentences of a file with a token and a tag per line, and blank lines between sentences.

    Tabs or white space separate the columns. The tags are in the last column; in files whose first column counts the
    words of a sentence (Universal NER, GermEval), the tokens are in the second, and the tags in the first column of
    tags after it. The tags are BIOUL if any begins with `L-` or `U-` (BIOES's `E-`, `S-`; BMEWO's `M-`,
    `W-`), otherwise IOB1 or IOB2. They become IOB2, where every span begins with `B-`. Lines of `-DOCSTART-` and lines
    before a sentence that begin with `#` are ignored, and so is a language before every token (`en:`, WikiANN).
    """
    odd = OddLines(path, reading.strict)
    layout, blocks = _parsed(path, reading, odd)
    layout = layout if layout.tag is not None else dataclasses.replace(layout, tag=-1)
    _log_columns(path, layout)
    sentences = [[(row.line, *_token_and_tag(row, layout)) for row in block] for block in _kept(blocks, layout, odd)]
    odd.report()
    return numbered_lines.require_some(in_iob2(sentences), path, "sentence")


def in_iob2(sentences: Sequence[Sequence[tuple[Line, str, str]]]) -> list[Tagged]:
    """Returns the sentences of a file, whose tags are in one scheme, with IOB2 tags.

    Args:
        sentences: each token's line, form and tag.

    Raises:
        InputError: naming the line, if the file's tags are BIOUL and a tag is misplaced.
    """
    bioul = tag_schemes.is_bioul(tag for sentence in sentences for _, _, tag in sentence)
    tagged = []
    for sentence in sentences:
        tags = [tag for _, _, tag in sentence]
        if bioul and (position := tag_schemes.misplaced(tags, bioul)) is not None:
            line, token, tag = sentence[position]
            raise line.wrong("tags in an order that BIOUL allows", f"{token} {tag}")
        labels = tag_schemes.as_iob2(tags) if bioul else tag_schemes.spans_to_iob2(tag_schemes.spans(tags), len(tags))
        tagged.append(Tagged([token for _, token, _ in sentence], labels))
    return tagged


def has_columns(path: str | os.PathLike, reading: Reading = DEFAULT) -> bool:
    """Whether a file has a token per line, rather than a sentence.

    Any of these shows it:

    - The first sentence has several lines of a single word.
    - The first column counts the words of each sentence.
    - The first line has the name of a column that `reading` chooses.
    - All lines of the first sentence have equally many columns, and a tag in the same column: the last (between tabs,
      any but the first), or the column that `reading` chooses. If the first sentence has a single line, this holds for
      all lines of the file.
    """
    numbered_lines.require_file(path)
    blocks = [[row for row in rows if not row.line.text.startswith("#")] for rows in _blocks(path)]
    blocks = [rows for rows in blocks if rows]
    first = blocks[0] if blocks else []
    if len(first) > 1 and all(len(row.line.text.split()) == 1 for row in first):
        return True
    judged = [first] if len(first) > 1 else blocks
    if sum(map(len, judged)) < 2:
        return False
    rows = [row for block in judged for row in block]
    named = {column for column in (reading.token_column, reading.tag_column) if isinstance(column, str)}
    if column_layout.has_indices(judged) or named & set(rows[0].fields):
        return True
    lines = [row.line.text.rstrip("\t") for row in rows]
    return _are_columns(lines[1:] if column_layout.is_header(rows[0]) else lines, reading)


def _are_columns(lines: list[str], reading: Reading) -> bool:
    """Whether lines have equally many columns, with a tag in the same column unless the token column is chosen."""
    fields = [fields_of(line) for line in lines]
    width = len(fields[0]) if fields else 0
    if width < 2 or any(len(columns) != width for columns in fields):
        return False
    tag_columns: Sequence[int] = range(1, width) if all("\t" in line for line in lines) else [-1]
    if isinstance(reading.tag_column, int):
        tag_columns = [reading.tag_column] if -width <= reading.tag_column < width else []
    elif isinstance(reading.token_column, int):
        return True
    return any(all(_TAG.fullmatch(columns[tag]) for columns in fields) for tag in tag_columns)


def read_tokens(path: str | os.PathLike, reading: Reading = DEFAULT) -> list[Tagged]:
    """Returns the sentences of a file of columns without labels."""
    odd = OddLines(path, reading.strict)
    layout, blocks = _parsed(path, reading, odd)
    _log_columns(path, layout)
    sentences = [Tagged([_token_and_tag(row, layout)[0] for row in block]) for block in _kept(blocks, layout, odd)]
    odd.report()
    return numbered_lines.require_some(sentences, path, "sentence")


def with_tags(path: str | os.PathLike, reading: Reading, tags: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a file of columns with other tags: `tags` for the sentences of `read_tokens`.

    The tags replace those in the file, or become a new last column. All other lines and columns stay.
    """
    layout, blocks = _parsed(path, reading, OddLines(path))
    kept = [row for block in _kept(blocks, layout, OddLines(path)) for row in block]
    of_line = dict(zip((row.line.number for row in kept), zip(kept, itertools.chain(*tags), strict=True), strict=True))
    for line in numbered_lines.lines(path):
        if line.number not in of_line:
            yield line.text
            continue
        row, tag = of_line[line.number]
        has_tabs = "\t" in line.text or len(row.fields) == 1
        fields = line.text.split("\t") if has_tabs else row.fields.copy()
        if layout.tag is None:
            fields.append(tag)
        else:
            fields[layout.tag % len(row.fields)] = tag
        yield ("\t" if has_tabs else " ").join(fields)


def _blocks(path: str | os.PathLike, odd: OddLines | None = None) -> list[list[Row]]:
    """Returns the lines between blank lines, without those of `-DOCSTART-`."""
    blocks = ([Row(line, fields_of(line.text)) for line in block] for block in numbered_lines.blocks(path, odd))
    kept = ([row for row in rows if row.fields[0] != DOCUMENT] for rows in blocks)
    return [rows for rows in kept if rows]


def _parsed(path: str | os.PathLike, reading: Reading, odd: OddLines) -> tuple[Layout, list[list[Row]]]:
    """Returns the layout of a file and the rows of each sentence, without comments and header."""
    blocks = _blocks(path, odd)
    starts = [next((n for n, row in enumerate(rows) if row.line.text[0] != "#"), len(rows)) for rows in blocks]
    plain = [rows[start:] for rows, start in zip(blocks, starts, strict=True) if rows[start:]]
    layout = column_layout.find(path, plain or blocks, reading)
    sentences = []
    for rows, start in zip(blocks, starts, strict=True):
        kept = [row for row in rows[:start] if layout.is_row(row)] + rows[start:]
        sentences.append([row for row in kept if row.line.number != layout.header])
    return layout, [rows for rows in sentences if rows]


def _log_columns(path: str | os.PathLike, layout: Layout) -> None:
    tags = "no tags" if layout.tag is None else f"tags in column {layout.tag % max(layout.width, 1)}"
    _log.info("%s: tokens in column %d, %s (counted from 0)", path, layout.token, tags)


def _kept(blocks: list[list[Row]], layout: Layout, odd: OddLines) -> Iterator[list[Row]]:
    """Yields the rows of each sentence that have a token; empty columns at the end of a line are dropped."""
    for rows in blocks:
        kept = []
        for line, fields in rows:
            if layout.is_indexed and not fields[0].isdecimal():
                continue  # a multiword token, whose words follow, or an empty node
            row = Row(line, fields)
            if len(fields) > layout.width and not any(fields[layout.width :]):
                odd.add(line.number, "a tab at the end", "ignored")
                row = Row(line, fields[: layout.width])
            if _token_and_tag(row, layout)[0]:
                kept.append(row)
            else:
                odd.add(line.number, "an empty token")
        if kept:
            yield kept


def _token_and_tag(row: Row, layout: Layout) -> tuple[str, str]:
    """Returns the token, "" if it is empty, and its tag, "" without tags."""
    fields, columns = row.fields, range(-len(row.fields), len(row.fields))
    token = words.word(fields[layout.token].removeprefix(layout.prefix)) if layout.token in columns else ""
    if layout.tag is None:
        return token, ""
    if len(fields) < 2 or layout.tag not in columns or not tag_schemes.is_tag(fields[layout.tag]):
        raise row.line.wrong("a token and a tag, O, B-... or I-...")
    return token, fields[layout.tag]
