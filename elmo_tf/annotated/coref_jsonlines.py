"""Coreference as lines of JSON, as the code of Lee et al. 2017 reads and writes it: a document on each."""

import json
import os
from typing import Any

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.conll2012 import EMPTY_WORD, Document, Mention
from elmo_tf.text.sentence_split import split_sentences

_NO_SPEAKER = "-"


def read_jsonlines(path: str | os.PathLike, labelled: bool = True) -> list[Document]:
    """Returns the documents of a file with a JSON object on each line.

    An object has `sentences`, lists of words, and `clusters`, lists of mentions `[first word, last word]`, counted from
    0 through the document; `doc_key` and `speakers`, a name for each word, need not be there.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).
        labelled: whether there have to be clusters. Without them an object may have `text` in place of `sentences`.

    Raises:
        InputError: naming the line that lacks something, or has a mention outside its document; or if there is no
            document.
    """
    lines = [(number, line) for number, line in numbered_lines.numbered_lines(path) if line.strip()]
    found = [_Line(path, number, line).document(labelled) for number, line in lines]
    return numbered_lines.require_some(found, path, "document")


def document_of_text(text: str, key: str = "") -> Document:
    """Returns a document without clusters for running text, split into sentences and words."""
    sentences = split_sentences(text)
    offsets = [(word.start, word.end) for sentence in sentences for word in sentence]
    return Document(key, [[word.text for word in sentence] for sentence in sentences], offsets=offsets)


class _Line:
    """A line of the file, which is named when it is wrong."""

    def __init__(self, path: str | os.PathLike, number: int, line: str):
        self._path, self._number = path, number
        try:
            self._values = json.loads(line)
        except (ValueError, RecursionError):
            self._values = None
        if not isinstance(self._values, dict):
            raise numbered_lines.wrong_line(path, number, "a JSON object", line)

    def document(self, labelled: bool) -> Document:
        key = self._values.get("doc_key")
        self._require(key is None or isinstance(key, str), "a string as doc_key", key)
        if not labelled and "sentences" not in self._values and isinstance(self._values.get("text"), str):
            found = document_of_text(self._values["text"], key or "")
            self._require(bool(found.sentences), "words in text", self._values["text"])
            return found
        sentences = self._values.get("sentences")
        self._require(_is_words(sentences), "sentences, lists of words", sentences)
        lengths = [len(sentence) for sentence in sentences]
        speakers = self._values.get("speakers") or []
        if speakers:
            same = _is_words(speakers) and [len(one) for one in speakers] == lengths
            self._require(same, "speakers, a name for each word", speakers)
            speakers = [["" if name == _NO_SPEAKER else name for name in one] for one in speakers if one]
        sentences = [[word.strip() or EMPTY_WORD for word in sentence] for sentence in sentences if sentence]
        clusters = self._clusters(sum(lengths)) if labelled else []
        return Document(key or "", sentences, clusters, speakers if any(map(any, speakers)) else [])

    def _clusters(self, words: int) -> list[list[Mention]]:
        clusters = self._values.get("clusters")
        self._require(_is_lists(clusters), "clusters, lists of mentions", clusters)
        for mention in (one for cluster in clusters for one in cluster):
            pair = isinstance(mention, list) and len(mention) == 2 and all(type(place) is int for place in mention)
            self._require(pair, "mentions [first word, last word]", mention)
            first, last = mention
            self._require(0 <= first <= last < words, f"mentions inside the {words} words of the document", mention)
        return [[(first, last + 1) for first, last in cluster] for cluster in clusters if cluster]

    def _require(self, holds: bool, expected: str, found: Any) -> None:
        if not holds:
            raise numbered_lines.wrong_line(self._path, self._number, expected, str(found))


def _is_lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) for one in value)


def _is_words(value: Any) -> bool:
    """Whether a value is lists of strings, and one of them has one."""
    return _is_lists(value) and any(value) and all(isinstance(word, str) for one in value for word in one)
