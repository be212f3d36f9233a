"""Coreference in CoNLL-2012's columns: documents of words, and in the last column brackets around mentions."""

import collections
import dataclasses
import os
import re

from elmo_tf.annotated import numbered_lines

_BEGIN = re.compile(r"#begin document \(?(.*?)\)?;?(?: part (\d+))?\s*$")
_BRACKET = re.compile(r"\((\d+)\)|\((\d+)|(\d+)\)")
EMPTY_WORD = "_"  # for a word without characters, of which networks know nothing
_NOTHING = ("-", "_", "*", "")
_WORD = 3
# CoNLL-2012 has eleven columns before the predicates' and the mentions', and the speaker in the tenth.
_SPEAKER, _COLUMNS = 9, 12
# OntoNotes' names begin with the genre's folder, GUM's have the genre behind the first underscore.
_GENRE = re.compile(r"([a-z]{2})/|GUM_([a-z]+)_")

# The first word of a mention in its document, and the one behind its last.
Mention = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Document:
    """A document, or a part of one, and its clusters of mentions."""

    key: str
    sentences: list[list[str]]
    clusters: list[list[Mention]] = dataclasses.field(default_factory=list)
    # Of each word, "" where it is not known; empty if no speaker is known.
    speakers: list[list[str]] = dataclasses.field(default_factory=list)
    # The characters of the text at which each word begins and ends, through the document; empty without a text.
    offsets: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    @property
    def genre(self) -> str | None:
        """The genre that the key of a document of OntoNotes (`bc/...`) or GUM (`GUM_news_...`) has; None: another."""
        found = _GENRE.match(self.key)
        return found.group(found.lastindex) if found else None


def read_documents(path: str | os.PathLike) -> list[Document]:
    """Returns the documents of a file in CoNLL-2012's columns.

    The fourth column has the words, the last the mentions that begin `(1`, end `1)` or are one word `(1)`, several
    between `|`. Of twelve columns or more the tenth has the speaker. A line `#begin document (NAME); part N` begins a
    document.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Lines that begin with `#` and a space are comments. A document without words is left out.

    Raises:
        InputError: naming the line that has other columns or a bracket without the other one; or if there is no
            document.
    """
    documents: list[Document] = []
    mentions, word = _Mentions(path), 0
    for number, line in numbered_lines.numbered_lines(path):
        if line.startswith("#begin document"):
            mentions.close(number)
            match = _BEGIN.match(line)
            name, part = match.groups() if match else (line, None)
            documents.append(Document(f"{name}_{int(part or 0)}", [[]], mentions.of_document(), [[]]))
            word = 0
        elif line.startswith("#end document"):
            mentions.close(number)
        elif not line.strip():
            if documents and documents[-1].sentences[-1]:
                documents[-1].sentences.append([])
                documents[-1].speakers.append([])
        elif not line.startswith("# ") and (not line.startswith("#") or len(line.split()) > _WORD + 1):
            fields = line.split("\t") if "\t" in line else line.split()
            if len(fields) < _WORD + 2 or not documents:
                expected = f"{_WORD + 2} columns or more, behind a line #begin document"
                raise numbered_lines.wrong_line(path, number, expected, line)
            documents[-1].sentences[-1].append(fields[_WORD].strip() or EMPTY_WORD)
            speaker = fields[_SPEAKER] if len(fields) >= _COLUMNS else ""
            documents[-1].speakers[-1].append("" if speaker in _NOTHING else speaker)
            mentions.read(number, fields[-1], word)
            word += 1
    mentions.close(0)
    for document in documents:
        if not document.sentences[-1]:
            document.sentences.pop()
            document.speakers.pop()
        if not any(map(any, document.speakers)):
            document.speakers.clear()
    return numbered_lines.require_some([one for one in documents if one.sentences], path, "document with words")


class _Mentions:
    """Collects mentions from brackets."""

    def __init__(self, path: str | os.PathLike):
        self._path = path
        self._clusters: list[list[Mention]] = []
        self._by_number: dict[str, list[Mention]] = {}
        # Line and word where the open ones of each cluster begin, the innermost last.
        self._open: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)

    def of_document(self) -> list[list[Mention]]:
        """Returns the list to which the clusters of the next lines are added."""
        self._clusters, self._by_number = [], {}
        return self._clusters

    def read(self, number: int, column: str, word: int) -> None:
        """Reads the last column of a line."""
        if column in _NOTHING:
            return
        for part in column.split("|"):
            found = _BRACKET.fullmatch(part)
            if not found:
                raise numbered_lines.wrong_line(self._path, number, "mentions such as (1, 1), (1) or -", column)
            single, begin, end = found.groups()
            if begin:
                self._open[begin].append((number, word))
            elif single:
                self._add(single, (word, word + 1))
            elif self._open[end]:
                self._add(end, (self._open[end].pop()[1], word + 1))
            else:
                raise numbered_lines.wrong_line(self._path, number, f"({end} before {end})", column)

    def close(self, number: int) -> None:
        """Raises `InputError` if a mention is open at the end of a document, which is in line `number`."""
        for cluster, begins in self._open.items():
            if begins:
                where = f"before the document ends in line {number}" if number else "before the file ends"
                raise numbered_lines.wrong_line(self._path, begins[-1][0], f"{cluster}) {where}", f"({cluster}")

    def _add(self, cluster: str, mention: Mention) -> None:
        if cluster not in self._by_number:
            self._by_number[cluster] = []
            self._clusters.append(self._by_number[cluster])
        self._by_number[cluster].append(mention)
