"""Coreference as lines of JSON, a document each, as the code of Lee et al. 2017 reads and writes it."""

import os

import msgspec

from elmo_tf.annotated import numbered_lines, words
from elmo_tf.annotated.conll2012 import EMPTY_WORD, Document
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from elmo_tf.text.sentence_split import split_sentences

_NO_SPEAKER = "-"


class _Row(msgspec.Struct, frozen=True):
    """A document whose clusters are not read."""

    doc_key: str | None = None
    sentences: list[list[str]] | None = None
    text: str | None = None  # instead of sentences
    speakers: list[list[str]] | None = None


class _LabelledRow(_Row, frozen=True, kw_only=True):
    """A document with clusters."""

    sentences: list[list[str]]
    clusters: list[list[tuple[Count, Count]]]  # the first and the last word of each mention


def read_jsonlines(path: str | os.PathLike, labelled: bool = True, tokenizer: str = "penn") -> list[Document]:
    """Returns the documents of a file with a JSON object on each line.

    An object has `sentences`, lists of words, and `clusters`, lists of mentions `[first word, last word]`, counted from
    0 through the document; `doc_key` and `speakers`, a name for each word, are optional. Unless `labelled`, an object
    may have `text`, which `tokenizer` splits, instead of `sentences`, and clusters are ignored.
    """
    documents = [_document(line, labelled, tokenizer) for line in numbered_lines.filled_lines(path)]
    return numbered_lines.require_some(documents, path, "document")


def document_of_text(text: str, key: str = "", tokenizer: str = "penn") -> Document:
    """Returns a document without clusters for running text, split into sentences and words."""
    sentences = split_sentences(text, tokenizer)
    offsets = [(word.start, word.end) for sentence in sentences for word in sentence]
    return Document(key, [[word.text for word in sentence] for sentence in sentences], offsets=offsets)


def _document(line: Line, labelled: bool, tokenizer: str) -> Document:
    row = json_file.parse(line.text, _LabelledRow if labelled else _Row, line.location)
    if row.sentences is None:
        if row.text is None:
            raise line.wrong("sentences or text")
        document = document_of_text(row.text, row.doc_key or "", tokenizer)
        if not document.sentences:
            raise line.wrong("words in text", row.text)
        return document
    lengths = [len(sentence) for sentence in row.sentences]
    if not sum(lengths):
        raise InputError(line.location, "its sentences have no words")
    speakers = row.speakers or []
    if speakers and [len(names) for names in speakers] != lengths:
        raise line.wrong("speakers, a name for each word", str(speakers))
    speakers = [["" if name == _NO_SPEAKER else name for name in names] for names in speakers if names]
    clusters = row.clusters if isinstance(row, _LabelledRow) else []
    for first, last in (mention for cluster in clusters for mention in cluster):
        if not first <= last < sum(lengths):
            problem = f"a mention is not inside the {sum(lengths)} words of the document: {[first, last]}"
            raise InputError(line.location, problem)
    return Document(
        row.doc_key or "",
        [[words.word(form) or EMPTY_WORD for form in sentence] for sentence in row.sentences if sentence],
        [[(first, last + 1) for first, last in cluster] for cluster in clusters if cluster],
        speakers if any(map(any, speakers)) else [],
    )
