"""Documents for the coreference system: windows to train on, and clusters from its decisions. Without TensorFlow."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from elmo_tf.annotated.coref_documents import Document, Mention

# The network pads all sentences of a document to the longest.
_LONGEST_SENTENCE = 256


def cut(document: Document) -> Document:
    """Returns a document with sentences of more than 256 words split; the words keep their numbers."""

    def pieces(rows: list[list[str]]) -> list[list[str]]:
        step = _LONGEST_SENTENCE
        return [row[start : start + step] for row in rows for start in range(0, len(row), step)]

    return dataclasses.replace(document, sentences=pieces(document.sentences), speakers=pieces(document.speakers))


def window(document: Document, max_sentences: int, random: np.random.Generator) -> Document:
    """Returns a random part of a document: at most `max_sentences` sentences in a row, and the mentions in them."""
    if len(document.sentences) <= max_sentences:
        return document
    first = int(random.integers(len(document.sentences) - max_sentences + 1))
    chosen = slice(first, first + max_sentences)
    before = sum(map(len, document.sentences[:first]))
    after = before + sum(map(len, document.sentences[chosen]))
    clusters = [
        [(begin - before, end - before) for begin, end in cluster if before <= begin and end <= after]
        for cluster in document.clusters
    ]
    return Document(document.key, document.sentences[chosen], list(filter(None, clusters)), document.speakers[chosen])


def mention_rows(documents: Sequence[Document]) -> np.ndarray:
    """Returns the mentions of a batch of documents, int32 `(mentions, 3)`: first word, word after the last, cluster.

    Words and clusters are counted through all documents, clusters from 1.
    """
    rows, before, number = [], 0, 0
    for document in documents:
        for cluster in document.clusters:
            number += 1
            rows += [(before + first, before + end, number) for first, end in cluster]
        before += sum(map(len, document.sentences))
    return np.array(rows, np.int32).reshape(-1, 3)


def clusters_of(spans: np.ndarray, steps: np.ndarray, documents: Sequence[Document]) -> list[list[list[Mention]]]:
    """Returns the clusters of each document of a batch: spans that refer to each other, directly or indirectly.

    `spans`, integers `(spans, 2)`, are counted as in `mention_rows`; `steps`, integers `(spans,)`, say how many
    spans back each span's antecedent is; 0: no antecedent.
    """
    cluster_of: dict[int, list[int]] = {}
    for span, step in enumerate(steps.tolist()):
        if step:
            cluster = cluster_of.setdefault(span - step, [span - step])
            cluster.append(span)
            cluster_of[span] = cluster
    ends = np.cumsum([sum(map(len, document.sentences)) for document in documents])
    clusters: list[list[list[Mention]]] = [[] for _ in documents]
    for cluster in {id(cluster): cluster for cluster in cluster_of.values()}.values():
        document_index = int(np.searchsorted(ends, spans[cluster[0], 0], side="right"))
        before = int(ends[document_index - 1]) if document_index else 0
        clusters[document_index].append([(first - before, end - before) for first, end in spans[cluster].tolist()])
    return [sorted(in_document) for in_document in clusters]
