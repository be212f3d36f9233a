"""Documents with clusters of mentions: CoNLL-2012's columns, CorefUD, JSON as in Lee et al. 2017, and running text."""

import itertools
import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from elmo_tf.annotated import corefud, named_rows, numbered_lines, penn_trees, tables
from elmo_tf.annotated.mentions import EMPTY_WORD, NOTHING, Bracket, Document, clusters_of
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from elmo_tf.text.penn import ABBREVIATIONS, Word
from elmo_tf.text.tokenizers import words_of_each

_BEGIN = re.compile(r"#begin document \(?(.*?)\)?;?(?: part (\d+))?\s*$")
# One or both brackets of a mention, with the cluster's name: a number, or CorefUD's e1. Bars between are optional.
_BRACKET = re.compile(r"\((\w+)(\))?|(\w+)\)")
_BRACKETS = re.compile(rf"(?:{_BRACKET.pattern})(?:\|?(?:{_BRACKET.pattern}))*")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_ABBREVIATION = re.compile(ABBREVIATIONS, re.IGNORECASE)
_WORD = 3
_INSPECTED = 200  # lines from which columns are recognized
# CoNLL-2012 has eleven columns before the predicates' and the mentions', and the speaker in the tenth.
_SPEAKER, _COLUMNS = 9, 12


class _Row(msgspec.Struct, frozen=True):
    """A line of JSON whose clusters are not read."""

    doc_key: str | None = None
    sentences: list[list[str]] | None = None
    text: str | None = None  # instead of sentences
    speakers: list[list[str]] | None = None


class _LabeledRow(_Row, frozen=True, kw_only=True):
    sentences: list[list[str]]
    clusters: list[list[tuple[Count, Count]]]  # the first and the last word of each mention


def read_documents(path: str | os.PathLike, labeled: bool = True, tokenizer: str = "penn") -> list[Document]:
    """Returns the documents of a file; if it is `labeled`, without those that have no words.

    In CoNLL-2012's columns, the fourth has the words, the last the mentions: `(1` where a mention begins, `1)` where it
    ends, `(1)` for a single word, with or without `|` between several. A cluster's name is a number, or a word such as
    CorefUD's `e1`. The tenth of twelve or more columns has the speaker. A line `#begin document (NAME); part N` begins
    a document. Lines that begin with `#` and a space are comments.

    A JSON object on each line has `sentences`, lists of words, and `clusters`, lists of mentions `[first word, last
    word]`, counted from 0 through the document; `doc_key` and `speakers`, a name for each word, are optional.

    CoNLL-U is read as by `corefud.read_corefud`.

    Unless `labeled`, clusters are optional, an object may have `text` instead of `sentences`, a file of the Penn
    Treebank's trees is a document, and a file in none of these formats is a document of running text. `tokenizer`
    splits text. Documents whose words are withheld (all are `[WORD]` or `_`) are left out with a warning.
    """
    odd, numbered = OddLines(path), []
    plain = (line for line in numbered_lines.nonblank_lines(path) if not line.text.startswith("# "))
    first_lines = list(itertools.islice(plain, _INSPECTED))
    if named_rows.has_named_values(path):
        numbered = [(line, _of_json(line, labeled, tokenizer)) for line in numbered_lines.nonblank_lines(path)]
    elif corefud.has_conllu(path):
        numbered = list(corefud.read_corefud(path, odd, labeled))
    elif labeled or (first_lines and first_lines[0].text.startswith("#begin document")):
        numbered = list(_of_columns(path, odd))
    elif penn_trees.is_treebank(path):
        sentences = [sentence.tokens for sentence in penn_trees.read_penn_trees(path)]
        numbered = [(first_lines[0], Document("", sentences))]
    elif first_lines:
        _check_text(path, first_lines)
        document = document_of_text("\n".join(line.text for line in numbered_lines.lines(path)), tokenizer=tokenizer)
        numbered = [(first_lines[0], document)]
    documents = [
        document
        for line, document in numbered
        if (document.sentences or not labeled)
        and odd.has_words(line.number, list(itertools.chain(*document.sentences)))
    ]
    return odd.finish(documents, "document with words")


def _check_text(path: str | os.PathLike, lines: Sequence[Line]) -> None:
    """Raises `InputError` if apparent running text is a table, given its first lines."""
    rows = [numbered_lines.split(line.text) for line in lines]
    are_columns = {len(fields) for fields in rows} == {len(rows[0])} and len(rows[0]) > _WORD + 1
    if are_columns and all(fields[-1] in NOTHING or _BRACKETS.fullmatch(fields[-1]) for fields in rows):
        raise lines[0].error("a line #begin document before columns")
    if tables.are_tabbed(lines) or tables.comma_cells(path):
        raise InputError(str(path), "a table, not columns of CoNLL-2012, JSON lines or running text")


def document_of_text(text: str, key: str = "", tokenizer: str = "penn") -> Document:
    """Returns a document without clusters for running text, split into sentences and words.

    Sentences end at empty lines and where `raw_text.break_sentences` ends them; the full stop of an abbreviation, such
    as `Sept.`, belongs to its word.
    """
    from elmo_tf.text import raw_text  # noqa: PLC0415 - imports TensorFlow, and needs tensorflow-text

    # NUL and half of a surrogate pair, which cannot be broken, are replaced by a character each.
    text = text.replace("\0", " ").encode(errors="replace").decode()
    texts = [sentence.decode() for sentence in raw_text.break_sentences(_EMPTY_LINE.split(text)).numpy()]
    sentences, offsets, end = [], [], 0
    for sentence, words in zip(texts, map(_with_abbreviations, words_of_each(texts, tokenizer)), strict=True):
        start = text.index(sentence, end)
        end = start + len(sentence)
        if words:
            sentences.append([word.text for word in words])
            offsets += [(start + word.start, start + word.end) for word in words]
    return Document(key, sentences, offsets=offsets)


def _with_abbreviations(words: list[Word]) -> list[Word]:
    """Rejoins abbreviations that the tokenizer split from their full stops."""
    joined: list[Word] = []
    for word in words:
        before = joined[-1] if joined else None
        if word.text == "." and before and before.end == word.start and _ABBREVIATION.fullmatch(before.text):
            joined[-1] = Word(f"{before.text}.", before.start, word.end)
        else:
            joined.append(word)
    return joined


def _of_columns(path: str | os.PathLike, odd: OddLines) -> Iterator[tuple[Line, Document]]:
    """Yields a line of each document, and the document."""
    document = None
    columns: list[tuple[Line, str]] = []  # for each word of the document, its column of mentions
    for line in numbered_lines.lines(path):
        text = line.text
        if text.startswith("#begin document"):
            if document:
                yield columns[0][0] if columns else line, _completed(document, columns, odd)
            match = _BEGIN.match(text)
            name, part = match.groups() if match else (text, None)
            document, columns = Document(f"{name}_{int(part or 0)}", [[]], speakers=[[]]), []
        elif not text.strip():
            if document:
                document.sentences.append([])
                document.speakers.append([])
        elif not text.startswith("# ") and (not text.startswith("#") or len(text.split()) > _WORD + 1):
            fields = text.split("\t") if "\t" in text else numbered_lines.split(text)
            if len(fields) < _WORD + 2 or not document:
                raise line.error(f"{_WORD + 2} columns or more, after a line #begin document")
            document.sentences[-1].append(numbered_lines.normalize_form(fields[_WORD]) or EMPTY_WORD)
            speaker = fields[_SPEAKER] if len(fields) >= _COLUMNS else ""
            document.speakers[-1].append("" if speaker in NOTHING else speaker)
            columns.append((line, fields[-1]))
    if document:
        yield columns[0][0] if columns else line, _completed(document, columns, odd)


def _completed(document: Document, columns: list[tuple[Line, str]], odd: OddLines) -> Document:
    """Returns a document without empty sentences, and with the clusters of its columns."""
    sentences, speakers = (list(filter(None, rows)) for rows in (document.sentences, document.speakers))
    return Document(
        document.key, sentences, clusters_of(_brackets(columns), odd), speakers if any(map(any, speakers)) else []
    )


def _brackets(columns: list[tuple[Line, str]]) -> Iterator[Bracket]:
    """Yields the brackets of a document, given each word's line and its column of brackets."""
    for word, (line, column) in enumerate(columns):
        if column in NOTHING:
            continue
        if not _BRACKETS.fullmatch(column):
            raise line.error("mentions such as (1, 1), (1) or -", column)
        for opened, closes, closed in _BRACKET.findall(column):
            yield Bracket(line, opened or closed, word if opened else None, word + 1 if closes or closed else None)


def _of_json(line: Line, labeled: bool, tokenizer: str) -> Document:
    row = named_rows.parse(line, _LabeledRow if labeled else _Row)
    if row.sentences is None:
        if row.text is None:
            raise named_rows.lacking(line, json_file.parse(line.text, dict, line.location), ["sentences or text"])
        document = document_of_text(row.text, row.doc_key or "", tokenizer)
        if not document.sentences:
            raise line.error("words in text", row.text)
        return document
    lengths = [len(sentence) for sentence in row.sentences]
    if not sum(lengths):
        raise InputError(line.location, "its sentences have no words")
    speakers = row.speakers or []
    if speakers and [len(names) for names in speakers] != lengths:
        raise line.error("speakers, a name for each word", str(speakers))
    speakers = [["" if name == "-" else name for name in names] for names in speakers if names]
    clusters = row.clusters if isinstance(row, _LabeledRow) else []
    for first, last in (mention for cluster in clusters for mention in cluster):
        if not first <= last < sum(lengths):
            problem = f"a mention is not inside the {sum(lengths)} words of the document: {[first, last]}"
            raise InputError(line.location, problem)
    sentences = [
        [numbered_lines.normalize_form(form) or EMPTY_WORD for form in words] for words in row.sentences if words
    ]
    mentions = [[(first, last + 1) for first, last in cluster] for cluster in clusters if cluster]
    return Document(row.doc_key or "", sentences, mentions, speakers if any(map(any, speakers)) else [])
