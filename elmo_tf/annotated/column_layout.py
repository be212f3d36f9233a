"""Which column of a file has the tokens and which the tags, detected from the first sentences."""

import dataclasses
import itertools
import os
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from elmo_tf.annotated import tables, tag_schemes
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading_options import Column, Reading
from elmo_tf.errors import InputError
from elmo_tf.text import tokenizers

DOCUMENT = "-DOCSTART-"
_INSPECTED = 200  # sentences from which the columns are detected
_MIN_WHOLE = 0.1  # smallest share of lines without spaces that the tokenizer leaves whole if they are tokens
_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")  # of a token's language, as in WikiANN
_INDEX = re.compile(r"\d+([-.]\d+)?")  # of a word, a multiword token (3-4) or an empty node (3.1)
_TAG = re.compile(r"O|[BILUESMW]-[^\W\d].*")  # a letter must follow the hyphen, so `I-95` is not a tag
_TOKEN_NAMES = {"token", "tokens", "word", "words", "form"}
_TAG_NAMES = {"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "entity", "entities"}
_OTHER_NAMES = {"id", "index", "sentence", "sentence_id", "sent_id", "lemma", "pos", "upos", "xpos", "chunk"}

_Blocks = Sequence[Sequence["Row"]]


class Row(NamedTuple):
    """A line and its columns."""

    line: Line
    fields: list[str]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a file, as indices from 0; negative indices count from the right."""

    token: int = 0
    tag: int | None = -1  # None: there are no tags
    is_indexed: bool = False  # whether the first column counts the words of each sentence from 1
    width: int = 0  # the number of columns of the longest line
    prefix: str = ""  # before every token
    header: int = 0  # the number of the header's line; 0 without one

    def is_row(self, row: Row) -> bool:
        """Whether a line that starts with `#` is a token row rather than a comment."""
        is_wide = len(row.fields) == self.width and not self.is_indexed
        return is_wide and (self.tag is None or tag_schemes.is_tag(row.fields[self.tag]))


def fields_of(text: str) -> list[str]:
    """Returns the columns of a line, separated by tabs, or by spaces if it has no tab."""
    return [field.strip() for field in text.split("\t")] if "\t" in text else re.split(" +", text.strip())


def find(
    path: str | os.PathLike, blocks: _Blocks, reading: Reading, labeled: bool = True, has_marks: bool = False
) -> Layout | None:
    """Returns the layout of a file, given its sentences without comments; None if it has a sentence per line.

    The columns are the same whether tags are read or not. Any of these indicates columns:

    - The file is `labeled`, or `has_marks` of documents.
    - The first line names the columns: those that `reading` chooses, or a token column and another.
    - The first sentence has several one-word lines, and they are tokens (`_are_tokens`).
    - The first column counts the words of each sentence.
    - All lines of the first sentence, or of the file, have the same number of columns, and a tag in the same column
      (`_have_tags`).

    Raises:
        InputError: if several columns could have the tags or the tokens, a name is not in the first line, or the file
            is another kind of table.
    """
    blocks = blocks[:_INSPECTED]
    header = blocks[0][0] if blocks and is_header(blocks[0][0], reading) else None
    if header:
        blocks = list(filter(None, [blocks[0][1:], *blocks[1:]]))
    rows = [row for block in blocks for row in block]
    if not header and reading.token_column is None:
        _check_separators(path, rows)
    if not (labeled or header or has_marks or _show_columns(blocks, reading)):
        _check_text(path, rows)
        return None
    width = max((n for row in rows for n, field in enumerate(row.fields, 1) if field), default=0)
    header_number, names = (header.line.number, header.fields) if header else (0, rows[0].fields if rows else [])
    token, tag = (_index(path, name, getattr(reading, f"{name}_column"), names, width) for name in ("token", "tag"))
    if width < 2:
        return Layout(tag=None, width=width, prefix=_prefix(rows, 0), header=header_number)
    is_indexed = has_indices(blocks)
    first = int(is_indexed)
    if header and tag is None:
        tag = _named(names, _TAG_NAMES)
    if tag is None:
        tag = _tag_column(path, rows, width, first)
    if header and token is None:
        token = _named(names, _TOKEN_NAMES)
    if token is None:
        token = _token_column(path, blocks, width, first, None if tag is None else tag % width)
    return Layout(token, tag, is_indexed, width, _prefix(rows, token), header_number)


def is_header(row: Row, reading: Reading) -> bool:
    """Whether a line names the columns that a reading chooses, or a token column and another."""
    if chosen := {column for column in (reading.token_column, reading.tag_column) if isinstance(column, str)}:
        return chosen <= set(row.fields)
    names = {name.lower() for name in row.fields}
    others = names & (_TAG_NAMES | _OTHER_NAMES)
    has_only_names = len(names & _TOKEN_NAMES) + len(others) == len(row.fields)
    return bool(names & _TOKEN_NAMES and others) and ("\t" in row.line.text or has_only_names)


def _named(header: Sequence[str], names: Collection[str]) -> int | None:
    """Returns the only column with one of these names; None if there are none or several."""
    columns = [column for column, name in enumerate(header) if name.lower() in names]
    return columns[0] if len(columns) == 1 else None


def _show_columns(blocks: _Blocks, reading: Reading) -> bool:
    """Whether a file has a token per line; its first line may have unknown column names."""
    if not blocks:
        return False
    first, rows = list(blocks[0]), list(itertools.chain(*blocks))
    if len(first) > 1 and all(len(row.line.text.split()) == 1 for row in first):
        return reading.token_column is not None or _are_tokens(first, reading)
    is_single = len(first) == 1
    parts = (rows, rows[1:]) if is_single else (first, rows, rows[1:])
    return has_indices(blocks if is_single else blocks[:1]) or any(_have_tags(part, reading) for part in parts if part)


def _are_tokens(rows: Sequence[Row], reading: Reading) -> bool:
    """Whether lines without spaces are tokens, not sentences of a script that has no spaces between words.

    The tokenizer splits nearly all such sentences, but leaves many tokens whole, such as punctuation marks.
    """
    texts = [row.line.text for row in rows[:_INSPECTED]]
    is_whole = [len(words) == 1 for words in tokenizers.words_of_each(texts, reading.tokenizer)]
    return sum(is_whole) >= _MIN_WHOLE * len(texts)


def _have_tags(rows: Sequence[Row], reading: Reading) -> bool:
    """Whether lines have the same number of columns, one of which has tags, or the token column is chosen.

    The tag column is the last; with tabs, any but the first; any other if it has a tag that is not `O`. Lines
    with different numbers of columns have tags last, not only `O`. A single line between spaces has a tag last, if a
    column is chosen or `reading` prefers columns.
    """
    fields = [fields_of(row.line.text.rstrip("\t")) for row in rows]
    width, is_tabbed = len(fields[0]), all("\t" in row.line.text.rstrip("\t") for row in rows)
    is_column_chosen = (reading.token_column, reading.tag_column) != (None, None)
    if width < 2 or (len(rows) == 1 and not (is_tabbed or is_column_chosen or reading.prefers_columns)):
        return False
    last = [columns[-1] for columns in fields]
    if len(rows) == 1 and not is_tabbed:
        return _TAG.fullmatch(last[0]) is not None
    if any(len(columns) != width for columns in fields):
        return _are_tags(last, or_outside=False)
    chosen = reading.tag_column % width if isinstance(reading.tag_column, int) else width - 1
    is_likely = [column in (chosen, width - 1) or (is_tabbed and column > 0) for column in range(width)]
    columns = zip(*fields, strict=True)
    has_tokens = isinstance(reading.token_column, int) and len(rows) > 1
    return has_tokens or any(map(_are_tags, columns, is_likely))


def _are_tags(fields: Collection[str], or_outside: bool) -> bool:
    """Whether all fields are tags, and not only `O` unless `or_outside`."""
    return all(map(_TAG.fullmatch, fields)) and (or_outside or set(fields) != {"O"})


def _check_separators(path: str | os.PathLike, rows: Sequence[Row]) -> None:
    """Raises `InputError` if columns are separated by commas, or by spaces with more columns after a tab."""
    are_tabbed = [("\t" in row.line.text) for row in rows]
    if rows and not are_tabbed[0] and tables.comma_cells(path):
        raise InputError(str(path), "a table with commas or semicolons; separate its columns by tabs or spaces")
    counts = {len(row.line.text.split("\t")[0].split()) for row in rows}
    if len(rows) > 1 and all(are_tabbed) and len(counts) == 1 and counts.pop() > 1:
        raise rows[0].line.error("columns separated by tabs or by spaces, not both, or --token-column")


def _check_text(path: str | os.PathLike, rows: Sequence[Row]) -> None:
    """Raises `InputError` if apparent running text is a table."""
    if tables.are_tabbed(row.line for row in rows):
        problem = "it seems to be a table: --token-column says which column has the tokens, counted from 0"
        raise InputError(str(path), f"{problem}, or --tokenizer how to split its lines")


def _index(path: str | os.PathLike, name: str, column: Column | None, header: Sequence[str], width: int) -> int | None:
    """Returns a column that the user chooses as an index, given the first line's columns and the number of columns."""
    if isinstance(column, str):
        if column not in header:
            raise InputError(str(path), f"no column is called {column!r}; the first line has {', '.join(header)}")
        return header.index(column)
    if column is not None and width > 1 and not -width <= column < width:
        problem = f"no column {column} for --{name}-column: the lines have {width}, counted from 0"
        raise InputError(str(path), problem)
    return column


def has_indices(blocks: Sequence[Sequence[Row]]) -> bool:
    """Whether the first of at least three tab-separated columns counts the words of each sentence."""
    numbers = [[row.fields[0] for row in block if row.fields[0].isdecimal()] for block in blocks]
    counted = all(column and column == [str(n) for n in range(1, len(column) + 1)] for column in numbers)
    rows = [row for block in blocks for row in block]
    are_indices = all(row.line.text.count("\t") > 1 and _INDEX.fullmatch(row.fields[0]) for row in rows)
    return bool(rows) and counted and are_indices


def _tag_column(path: str | os.PathLike, rows: list[Row], width: int, first: int) -> int | None:
    """Returns the column of tags: the last, or the first after indices and tokens; None if there are no tags."""
    rows = [row for row in rows if not first or row.fields[0].isdecimal()]
    if not rows or width < 2:
        return None
    if not first and all(len(row.fields) > 1 and tag_schemes.is_tag(row.fields[:width][-1]) for row in rows):
        return -1
    counts = {
        column: sum(len(row.fields) > column and tag_schemes.is_tag(row.fields[column]) for row in rows)
        for column in range(first, width)
    }
    # If no column is complete, take the one with the most tags; the reader then reports the line without one.
    candidates = [column for column, count in counts.items() if count == max(counts.values()) > len(rows) / 2]
    if len(candidates) > 1 and not first:  # after indices, GermEval's nested entities follow
        shown = " or ".join(f"{rows[0].fields[column]!r} (--tag-column {column})" for column in candidates)
        raise InputError(str(path), f"several columns could have the tags: line {rows[0].line.number} has {shown}")
    return candidates[0] if candidates else None


def _token_column(path: str | os.PathLike, blocks: _Blocks, width: int, first: int, tag: int | None) -> int:
    """Returns the column of tokens: the first, unless that has indices, tags or numbers; then the only other one."""
    rows = [row for block in blocks for row in block]
    others = [column for column in range(first, width) if column != tag]
    if (tag == first or (not first and _has_no_tokens(blocks))) and len(others) > 1:
        others = [column for column in others if column > first]
        if len(others) > 1:
            row = rows[0]
            fields = row.fields + [""] * width
            shown = " or ".join(f"{fields[column]!r} (--token-column {column})" for column in others)
            raise InputError(str(path), f"several columns could have the tokens: line {row.line.number} has {shown}")
    return others[0]


def _has_no_tokens(blocks: _Blocks) -> bool:
    """Whether the first column has only numbers, only tags, or the same value in all lines of each sentence."""
    columns = [[row.fields[0] for row in block] for block in blocks]
    fields = [field for column in columns for field in column]
    are_numbers = all(field.isdecimal() for field in fields)
    are_tags = _are_tags(fields, or_outside=False)
    are_equal = all(len(set(column)) == 1 for column in columns)
    return len(fields) > 1 and (are_numbers or are_tags or (are_equal and len(columns) < len(fields)))


def _prefix(rows: list[Row], column: int) -> str:
    """Returns the prefix that all tokens have; "" if they have none."""
    tokens = [row.fields[column] for row in rows if -len(row.fields) <= column < len(row.fields)]
    match = _PREFIX.match(tokens[0]) if len(tokens) > 1 else None
    return match[0] if match and all(token.startswith(match[0]) for token in tokens) else ""
