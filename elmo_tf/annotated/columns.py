"""Sentences whose tokens have tags: columns (CoNLL-2003, WNUT-17, Universal NER, GermEval, WikiANN), or rows of lists.

Columns have a token and its tag per line; rows have `tokens` and `ner_tags`, as Hugging Face's data sets do.
"""

import dataclasses
import itertools
import logging
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from elmo_tf.annotated import column_layout, named_rows, numbered_lines, tag_schemes
from elmo_tf.annotated.column_layout import DOCUMENT, Layout, Row, fields_of
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.annotated.reading_options import DEFAULT, Reading

_TAG = re.compile(r"O|[BILUESMW]-[^\W\d].*")  # a letter must follow the hyphen, so `I-95` is not a tag
_TOKENS, _TAGS = ("tokens", "words"), ("ner_tags", "tags", "labels")

_Sentence = list[tuple[Line, str, str]]  # each token's line, form and tag, "" without tags

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Tagged:
    """A sentence with a label for each token, or None without labels."""

    tokens: list[str]
    labels: list[str] | None = None


def read_columns(path: str | os.PathLike, reading: Reading = DEFAULT, labeled: bool = True) -> list[Tagged]:
    """Returns the sentences of a file, with their tags in IOB2 if it is `labeled`.

    In columns, a line has a token and a tag, between tabs or white space; blank lines separate sentences. The tags are
    in the last column; in files whose first column counts the words of a sentence (Universal NER, GermEval), the tokens
    are in the second, and the tags in the first column of tags after it. Lines of `-DOCSTART-` and lines before a
    sentence that begin with `#` are ignored, and so is a language before every token (`en:`, WikiANN).

    JSON lines and Parquet have `tokens` (or `words`) and `ner_tags` (or `tags`, `labels`, or `reading.tag_column`),
    lists of equal length. Tags are strings, or indices into `reading.labels`.

    The tags are BIOUL if any begins with `L-` or `U-` (BIOES's `E-`, `S-`; BMEWO's `M-`, `W-`), otherwise IOB1 or
    IOB2. Unless `labeled`, tags are optional, and a file without columns has a sentence per line, which
    `reading.tokenizer` splits.
    """
    odd = OddLines(path, reading.strict)
    if named_rows.has_named_values(path):
        sentences = [_of_row(line, row, reading, labeled, odd) for line, row in named_rows.read(path)]
    elif labeled or has_columns(path, reading):
        layout, blocks = _rows(path, reading, odd)
        layout = dataclasses.replace(layout, tag=-1) if labeled and layout.tag is None else layout
        sentences = [[(row.line, *_token_and_tag(row, layout)) for row in rows] for rows in blocks]
        tags = "no tags" if layout.tag is None else f"tags in column {layout.tag % max(layout.width, 1)}"
        _log.info("%s: tokens in column %d, %s (counted from 0)", path, layout.token, tags)
    else:
        lines = numbered_lines.nonblank_lines(path)
        sentences = [[(line, token, "") for token in reading.split(line.text)] for line in lines]
    odd.report()
    sentences = list(filter(None, sentences))
    tagged = _in_iob2(sentences) if labeled else [Tagged([form for _, form, _ in rows]) for rows in sentences]
    return numbered_lines.require_nonempty(tagged, path, "sentence")


def _in_iob2(sentences: list[_Sentence]) -> list[Tagged]:
    """Returns the sentences of a file, whose tags are in one scheme, with IOB2 tags."""
    bioul = tag_schemes.is_bioul(tag for sentence in sentences for _, _, tag in sentence)
    tagged = []
    for sentence in sentences:
        tags = [tag for _, _, tag in sentence]
        if bioul and (position := tag_schemes.misplaced(tags, bioul)) is not None:
            line, token, tag = sentence[position]
            raise line.error("tags in an order that BIOUL allows", f"{token} {tag}")
        labels = tag_schemes.as_iob2(tags) if bioul else tag_schemes.spans_to_iob2(tag_schemes.spans(tags), len(tags))
        tagged.append(Tagged([token for _, token, _ in sentence], labels))
    return tagged


def _of_row(line: Line, row: dict[str, Any], reading: Reading, labeled: bool, odd: OddLines) -> _Sentence:
    """Returns the sentence of a row of lists, without empty tokens."""
    tokens = named_rows.value(row, _TOKENS)
    if not _is_list_of(tokens, str):
        raise line.error("tokens, a list of strings")
    tags = [""] * len(tokens)
    if labeled:
        names = (reading.tag_column,) if isinstance(reading.tag_column, str) else _TAGS
        tags = named_rows.value(row, names)
        if not (_is_list_of(tags, str) or _is_list_of(tags, int)) or len(tags) != len(tokens):
            raise line.error(f"{_TAGS[0]}, a list of {len(tokens)} tags", str(tags))
        tags = [named_rows.named_label(line, tag, reading.labels) if isinstance(tag, int) else tag for tag in tags]
        if wrong := [tag for tag in tags if not tag_schemes.is_tag(tag)]:
            hint = "; --labels names the tags that are numbers" if wrong[0].isdecimal() else ""
            raise line.error(f"tags O, B-... or I-...{hint}", wrong[0])
    sentence = [(line, numbered_lines.normalize_form(token), tag) for token, tag in zip(tokens, tags, strict=True)]
    if not all(form for _, form, _ in sentence):
        odd.add(line.number, "an empty token")
    return [token for token in sentence if token[1]]


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


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
    plain = ([row for row in rows if not row.line.text.startswith("#")] for rows in _blocks(path))
    blocks = list(filter(None, plain))
    first = blocks[0] if blocks else []
    if len(first) > 1 and all(len(row.line.text.split()) == 1 for row in first):
        return True
    inspected = [first] if len(first) > 1 else blocks
    rows = list(itertools.chain(*inspected))
    if len(rows) < 2:
        return False
    named = {column for column in (reading.token_column, reading.tag_column) if isinstance(column, str)}
    if column_layout.has_indices(inspected) or named & set(rows[0].fields):
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


def with_tags(path: str | os.PathLike, reading: Reading, tags: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a file of columns with other tags: `tags` for the sentences of `read_columns`.

    The tags replace those in the file, or become a new last column. All other lines and columns stay.
    """
    layout, blocks = _rows(path, reading, OddLines(path))
    rows = zip(itertools.chain(*blocks), itertools.chain(*tags), strict=True)
    of_line = {row.line.number: (row, tag) for row, tag in rows}
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
    return list(filter(None, ([row for row in rows if row.fields[0] != DOCUMENT] for rows in blocks)))


def _rows(path: str | os.PathLike, reading: Reading, odd: OddLines) -> tuple[Layout, list[list[Row]]]:
    """Returns the layout of a file and each sentence's rows that have a token."""
    blocks = _blocks(path, odd)
    # Where the lines at the beginning that may be comments end.
    starts = [next((n for n, row in enumerate(rows) if row.line.text[0] != "#"), len(rows)) for rows in blocks]
    plain = [rows[start:] for rows, start in zip(blocks, starts, strict=True) if rows[start:]]
    layout = column_layout.find(path, plain or blocks, reading)
    sentences = []
    for rows, start in zip(blocks, starts, strict=True):
        of_tokens = [row for row in rows[:start] if layout.is_row(row)] + rows[start:]
        sentences.append([cleaned for row in of_tokens if (cleaned := _cleaned(row, layout, odd))])
    return layout, list(filter(None, sentences))


def _cleaned(row: Row, layout: Layout, odd: OddLines) -> Row | None:
    """Returns a row without empty columns at its end; None for a header, and for a row without a token."""
    line, fields = row
    # A non-numeric index is a multiword token (its words follow) or an empty node.
    if line.number == layout.header or (layout.is_indexed and not fields[0].isdecimal()):
        return None
    if len(fields) > layout.width and not any(fields[layout.width :]):
        odd.add(line.number, "a tab at the end", "ignored")
        row = Row(line, fields[: layout.width])
    if _token_and_tag(row, layout)[0]:
        return row
    odd.add(line.number, "an empty token")
    return None


def _token_and_tag(row: Row, layout: Layout) -> tuple[str, str]:
    """Returns the token, "" if it is empty, and its tag, "" without tags."""
    fields, columns = row.fields, range(-len(row.fields), len(row.fields))
    token = ""
    if layout.token in columns:
        token = numbered_lines.normalize_form(fields[layout.token].removeprefix(layout.prefix))
    if layout.tag is None:
        return token, ""
    if len(fields) < 2 or layout.tag not in columns or not tag_schemes.is_tag(fields[layout.tag]):
        raise row.line.error("a token and a tag, O, B-... or I-...")
    return token, fields[layout.tag]
