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

from elmo_tf.annotated import column_layout, named_rows, numbered_lines, tables, tag_schemes
from elmo_tf.annotated.column_layout import DOCUMENT, Layout, Row, fields_of
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError

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

    In columns, a line has a token and a tag, separated by tabs or white space; blank lines separate sentences. The tags
    are in the last column; in files whose first column counts the words of a sentence (Universal NER, GermEval), the
    tokens are in the second, and the tags in the first column of tags after it. Lines of `-DOCSTART-`, lines before a
    sentence that begin with `#`, and a language prefix on every token (`en:`, WikiANN) are ignored.

    JSON lines and Parquet have `tokens` (or `words`) and `ner_tags` (or `tags`, `labels`, or `reading.tag_column`),
    lists of equal length. Tags are strings, or indices into `reading.labels`.

    The tags are BIOUL if any begins with `L-` or `U-` (BIOES's `E-`, `S-`; BMEWO's `M-`, `W-`), otherwise IOB1 or
    IOB2. Unless `labeled`, tags are optional, and a file without columns has a sentence per line, which
    `reading.tokenizer` splits.
    """
    odd = OddLines(path, reading.strict)
    if named_rows.has_named_values(path):
        sentences = [_of_row(line, row, reading, labeled, odd) for line, row in named_rows.read(path)]
        return _tagged(sentences, odd, labeled)
    layout, blocks = _layout(path, reading, odd, labeled)
    if layout:
        layout = dataclasses.replace(layout, tag=-1) if labeled and layout.tag is None else layout
        rows = _token_rows(layout, blocks, odd)
        sentences = [[(row.line, *_token_and_tag(row, layout)) for row in sentence] for sentence in rows]
        tags = "no tags" if layout.tag is None else f"tags in column {layout.tag % max(layout.width, 1)}"
        _log.info("%s: tokens in column %d, %s (counted from 0)", path, layout.token, tags)
    else:
        lines = numbered_lines.nonblank_lines(path)
        sentences = [[(line, token, "") for token in reading.split(line.text)] for line in lines]
    return _tagged(sentences, odd, labeled)


def _tagged(sentences: Sequence[_Sentence | None], odd: OddLines, labeled: bool) -> list[Tagged]:
    """Returns the sentences of a file, and reports its odd lines; drops sentences without tokens if it is `labeled`."""
    kept = [rows for rows in sentences if rows or (rows is not None and not labeled)]
    kept = odd.finish(kept, "sentence")
    return _in_iob2(kept) if labeled else [Tagged([form for _, form, _ in rows]) for rows in kept]


def _in_iob2(sentences: list[_Sentence]) -> list[Tagged]:
    """Converts the tags of a file's sentences, all in one scheme, to IOB2."""
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


def _of_row(line: Line, row: dict[str, Any], reading: Reading, labeled: bool, odd: OddLines) -> _Sentence | None:
    """Returns the sentence of a row of lists, without empty tokens; None if its words are withheld."""
    names = [
        (column,) if isinstance(column, str) else known
        for column, known in ((reading.token_column, _TOKENS), (reading.tag_column, _TAGS))
    ]
    wanted = names if labeled else names[:1]
    if missing := [" or ".join(known) for known in wanted if not row.keys() & set(known)]:
        raise named_rows.lacking(line, row, missing, "--token-column and --tag-column can give other names")
    name, tags_name = (next((name for name in known if name in row), "") for known in names)
    tokens = row[name]
    if not _is_list_of(tokens, str):
        raise line.error(f"{name}, a list of strings")
    if any(re.search(r"[\t\n\r]", token.strip()) for token in tokens):
        raise line.error("tokens without tabs and line breaks")
    tags = [""] * len(tokens)
    if labeled:
        tags = row[tags_name]
        if not (_is_list_of(tags, str) or _is_list_of(tags, int)) or len(tags) != len(tokens):
            raise line.error(f"{tags_name}, a list of {len(tokens)} tags", str(tags))
        tags = [named_rows.named_label(line, tag, reading.labels) if isinstance(tag, int) else tag for tag in tags]
        if wrong := [tag for tag in tags if not tag_schemes.is_tag(tag)]:
            hint = "; --labels names the tags that are numbers" if wrong[0].isdecimal() else ""
            raise line.error(f"tags O, B-... or I-...{hint}", wrong[0])
    sentence = [(line, numbered_lines.normalize_form(token), tag) for token, tag in zip(tokens, tags, strict=True)]
    if not all(form for _, form, _ in sentence):
        odd.add(line.number, "an empty token")
    sentence = [token for token in sentence if token[1]]
    return sentence if odd.has_words(line.number, [token for _, token, _ in sentence]) else None


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


def has_columns(path: str | os.PathLike, reading: Reading = DEFAULT) -> bool:
    """Whether a file has a token per line, rather than a sentence: see `column_layout.find`."""
    return _layout(path, reading, OddLines(path), labeled=False)[0] is not None


def with_tags(path: str | os.PathLike, reading: Reading, tags: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a file of columns, and their line breaks, with `tags` for the sentences of `read_columns`.

    The tags replace those in the file, or become a new last column. Everything else stays, byte for byte.
    """
    odd = OddLines(path)
    layout, blocks = _layout(path, reading, odd, labeled=False)
    if layout is None:
        raise InputError(str(path), "it has no columns")
    rows = zip(itertools.chain(*_token_rows(layout, blocks, odd)), itertools.chain(*tags), strict=True)
    of_line = {row.line.number: (row, tag) for row, tag in rows}
    for number, line in numbered_lines.lines_with_breaks(path):
        row, tag = of_line.get(number, (None, ""))
        yield _with_tag(line.decode(), row, layout, tag) if row else line.decode()


def _with_tag(line: str, row: Row, layout: Layout, tag: str) -> str:
    """Returns the line of a row, line break included, with the tag replaced or in a new column."""
    start = line.index(row.line.text)  # after a byte order mark
    text, is_tabbed = row.line.text, "\t" in row.line.text
    columns = [match.span() for match in re.finditer(r"(?:^|(?<=\t))[^\t]*" if is_tabbed else "[^ ]+", text)]
    column = layout.width if layout.tag is None else layout.tag % len(row.fields)
    if layout.tag is not None or (column < len(columns) and not text[slice(*columns[column])].strip()):
        first, last = columns[column]
        inner = text[first:last].strip()
        first += text[first:last].index(inner)
        last = first + len(inner)
    else:
        first = last = len(text.rstrip())
        tag = ("\t" if is_tabbed or len(columns) == 1 else " ") + tag
    return line[: start + first] + tag + line[start + last :]


def _layout(
    path: str | os.PathLike, reading: Reading, odd: OddLines, labeled: bool
) -> tuple[Layout | None, list[list[Row]]]:
    """Returns the layout of a file, None if it has a sentence per line, and the lines between blank lines."""
    blocks = [[Row(line, fields_of(line.text)) for line in block] for block in numbered_lines.blocks(path, odd)]
    has_marks = any(row.fields[0] == DOCUMENT for rows in blocks for row in rows)
    if has_marks:
        blocks = list(filter(None, ([row for row in rows if row.fields[0] != DOCUMENT] for rows in blocks)))
    plain = list(filter(None, (rows[_num_comments(rows) :] for rows in blocks)))
    return column_layout.find(path, plain or blocks, reading, labeled, has_marks), blocks


def _num_comments(rows: list[Row]) -> int:
    """Returns how many lines at the beginning may be comments."""
    return next((number for number, row in enumerate(rows) if row.line.text[0] != "#"), len(rows))


def _token_rows(layout: Layout, blocks: list[list[Row]], odd: OddLines) -> list[list[Row]]:
    """Returns the rows of each sentence that have a token."""
    sentences = []
    for rows in blocks:
        start = _num_comments(rows)
        of_tokens = [row for row in rows[:start] if layout.is_row(row)] + rows[start:]
        sentence = [cleaned for row in of_tokens if (cleaned := _cleaned(row, layout, odd))]
        if sentence and odd.has_words(sentence[0].line.number, [_token_and_tag(row, layout)[0] for row in sentence]):
            sentences.append(sentence)
    return sentences


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
        # Tables with column names may come from pandas or a spreadsheet.
        token = tables.unquoted(fields[layout.token]) if layout.header else fields[layout.token]
        token = numbered_lines.normalize_form(token.removeprefix(layout.prefix))
    if layout.tag is None:
        return token, ""
    if len(fields) < 2 or layout.tag not in columns or not tag_schemes.is_tag(fields[layout.tag]):
        raise row.line.error("a token and a tag, O, B-... or I-...")
    return token, fields[layout.tag]
