"""Coreference in CoNLL-2012's columns: documents of words, with brackets around mentions in the last column."""

import collections
import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines, words
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError

_BEGIN = re.compile(r"#begin document \(?(.*?)\)?;?(?: part (\d+))?\s*$")
# One or both brackets of a mention, with the cluster's name: a number, or CorefUD's e1. Bars between are optional.
_BRACKET = re.compile(r"\((\w+)(\))?|(\w+)\)")
_BRACKETS = re.compile(rf"(?:{_BRACKET.pattern})(?:\|?(?:{_BRACKET.pattern}))*")
EMPTY_WORD = "_"  # stands for a word without characters
_NOTHING = ("-", "_", "*", "")
_WORD = 3
# CoNLL-2012 has eleven columns before the predicates' and the mentions', and the speaker in the tenth.
_SPEAKER, _COLUMNS = 9, 12
# OntoNotes' names begin with the genre's folder; GUM's have the genre after the first underscore.
_GENRE = re.compile(r"([a-z]{2})/|GUM_([a-z]+)_")

# The indices of a mention's first word in the document, and of the word after its last.
Mention = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Document:
    """A document, or a part of one, and its clusters of mentions."""

    key: str
    sentences: list[list[str]]
    clusters: list[list[Mention]] = dataclasses.field(default_factory=list)
    # Each word's speaker, "" if unknown; the list is empty if no speaker is known.
    speakers: list[list[str]] = dataclasses.field(default_factory=list)
    # Where each word begins and ends in the text, in characters; empty without a text.
    offsets: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    @property
    def genre(self) -> str | None:
        """The genre in the key of a document of OntoNotes (`bc/...`) or GUM (`GUM_news_...`); None for others."""
        match = _GENRE.match(self.key)
        return match[match.lastindex or 0] if match else None


def read_documents(path: str | os.PathLike) -> list[Document]:
    """Returns the documents of a file in CoNLL-2012's columns.

    The fourth column has the words, the last the mentions: `(1` where a mention begins, `1)` where it ends, `(1)`
    for a single word, with or without `|` between several. A cluster's name is a number, or a word such as CorefUD's
    `e1`. The tenth of twelve or more columns has the speaker. A line `#begin document (NAME); part N` begins a
    document. Lines that begin with `#` and a space are comments. A document without words is left out.
    """
    documents: list[Document] = []
    columns: list[tuple[Line, str]] = []  # for each word of the last document, its column of mentions
    for line in numbered_lines.lines(path):
        text = line.text
        if text.startswith("#begin document"):
            _end(documents, columns)
            match = _BEGIN.match(text)
            name, part = match.groups() if match else (text, None)
            documents.append(Document(f"{name}_{int(part or 0)}", [[]], speakers=[[]]))
        elif not text.strip():
            if documents and documents[-1].sentences[-1]:
                documents[-1].sentences.append([])
                documents[-1].speakers.append([])
        elif not text.startswith("# ") and (not text.startswith("#") or len(text.split()) > _WORD + 1):
            fields = text.split("\t") if "\t" in text else words.split(text)
            if len(fields) < _WORD + 2 or not documents:
                raise line.wrong(f"{_WORD + 2} columns or more, after a line #begin document")
            documents[-1].sentences[-1].append(words.word(fields[_WORD]) or EMPTY_WORD)
            speaker = fields[_SPEAKER] if len(fields) >= _COLUMNS else ""
            documents[-1].speakers[-1].append("" if speaker in _NOTHING else speaker)
            columns.append((line, fields[-1]))
    _end(documents, columns)
    filled = [document for document in documents if document.sentences]
    return numbered_lines.require_some(filled, path, "document with words")


def _end(documents: list[Document], columns: list[tuple[Line, str]]) -> None:
    """Completes the last document, if there is one."""
    if documents:
        document = documents[-1]
        if not document.sentences[-1]:
            document.sentences.pop()
            document.speakers.pop()
        if not any(map(any, document.speakers)):
            document.speakers.clear()
        document.clusters.extend(_clusters(columns))
        columns.clear()


def _clusters(columns: list[tuple[Line, str]]) -> list[list[Mention]]:
    """Returns the clusters of a document, given each word's line and its column of brackets."""
    clusters: dict[str, list[Mention]] = {}
    unclosed: dict[str, list[int]] = collections.defaultdict(list)  # first words of open mentions, innermost last
    for word, (line, column) in enumerate(columns):
        if column in _NOTHING:
            continue
        if not _BRACKETS.fullmatch(column):
            raise line.wrong("mentions such as (1, 1), (1) or -", column)
        for opened, closes, closed in _BRACKET.findall(column):
            cluster = opened or closed
            if opened:
                unclosed[cluster].append(word)
            if closed and not unclosed[cluster]:
                raise InputError(line.location, f"the mention {cluster}) ends, but has not begun: {column!r}")
            if closed or closes:
                clusters.setdefault(cluster, []).append((unclosed[cluster].pop(), word + 1))
    for cluster, starts in unclosed.items():
        if starts:
            raise InputError(columns[starts[-1]][0].location, f"the mention ({cluster} does not end in its document")
    return list(clusters.values())
