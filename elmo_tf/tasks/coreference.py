"""Coreference resolution by span ranking (Peters et al. 2018, supplement A.6).

Sources of the settings: [P] the paper, [C] Lee et al. 2017, whose system it is, and its code; [C18] the code of Lee
et al. 2018, which uses ELMo. Each sentence is encoded separately [C]. The head of a span is a mean of vectors without
ELMo [C18].
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated import coref_documents
from elmo_tf.annotated.mentions import Document, Mention
from elmo_tf.config import AboveZero, Checked, Positive, Rate
from elmo_tf.errors import InputError
from elmo_tf.tasks.layers.antecedents import NO_ANTECEDENT, AntecedentScores
from elmo_tf.tasks.layers.lstms import CoupledLSTM
from elmo_tf.tasks.layers.mention_spans import MentionSpans
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Spelling, Words
from elmo_tf.tasks.scores import coref_eval
from elmo_tf.tasks.system import System, checked_tokens
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors, joined, padded

# The network pads all sentences of a document to the longest.
_LONGEST_SENTENCE = 256


@dataclasses.dataclass(frozen=True)
class Network(Checked):
    """The span ranking system; numbers are [C]'s."""

    units: Positive = 200  # of the LSTM in each direction
    hidden_units: Positive = 150  # of both hidden layers of the networks that score spans and pairs
    feature_dim: Positive = 20  # of the vectors of widths, distances, speakers and genres
    max_width: Positive = 10  # maximum words of a mention
    ratio: AboveZero = 0.4  # spans kept per word
    antecedents: Positive = 250  # nearest kept spans that a span may refer to
    window: Positive = 50  # maximum sentences of a document in a training step; resampled in every epoch
    speakers: bool = True  # whether "the same speaker" is a feature of a pair of mentions
    genres: bool = True  # whether the document's genre, if its name contains it, is a feature
    lexical_dropout_rate: Rate = 0.5  # of the words' vectors
    dropout_rate: Rate = 0.2  # of the LSTM's output and recurrent state, of hidden layers and features


@dataclasses.dataclass(frozen=True)
class CoreferenceRecipe(Recipe):
    """The settings that all systems share, and those of span ranking."""

    network: Network = Network()


class Task(System):
    """Finds the clusters of mentions in documents."""

    name = "coreference"
    metric = "average_f1"
    prediction_batch_size = 1
    sums_loss = True
    predicts_labels = False  # the labels are genres
    recipes: ClassVar = {
        "paper": CoreferenceRecipe(
            words=Words(dim=300, lower=False, trainable=False, normalize=True),  # [C], which adds Turian's vectors
            spelling=Spelling(filters=50, dim=8, width=3, more_widths=(4, 5)),  # [C]
            elmo=Elmo(place="input", dropout_rate=0.5),  # [P]
            # Adam, rate, decay, clipping, one document per step [C]. 400,000 steps are 143 epochs of OntoNotes' 2,802
            # documents; patience is AllenNLP's.
            fit=Fit(batch_size=1, epochs=150, patience=10, clip_norm=5.0, decay_rate=0.999, decay_steps=100),
        ),
        "small": CoreferenceRecipe(
            words=Words(dim=50, lower=True, trainable=True),
            spelling=Spelling(filters=50, dim=8, width=3),
            elmo=Elmo(place="input", dropout_rate=0.5),
            # With few documents, the first epochs score 0 because no span refers to another yet: hence the patience.
            fit=Fit(batch_size=1, epochs=20, patience=10, clip_norm=5.0, decay_rate=0.999, decay_steps=100),
            network=Network(units=100, hidden_units=100, antecedents=100, lexical_dropout_rate=0.4),
        ),
    }

    # Data.

    def read(self, path: str | os.PathLike, labeled: bool = True) -> list[Document]:
        return list(map(cut, coref_documents.read_documents(path, labeled, self.reading.tokenizer)))

    def example_of(self, item: str | Sequence[Sequence[str]]) -> Document:
        if isinstance(item, str):
            document = coref_documents.document_of_text(item, tokenizer=self.reading.tokenizer)
        elif not isinstance(item, Sequence):
            raise InputError("sentences", "documents: lists of sentences, or texts", repr(item))
        else:
            document = Document("", [checked_tokens(sentence) for sentence in item])
        return cut(document)

    def resample(self, examples: Sequence[Document], random: np.random.Generator) -> list[Document]:
        return [window(document, self.recipe.network.window, random) for document in examples]

    def labels_of(self, examples: Sequence[Document]) -> list[str]:
        """Returns the genres of the documents."""
        return sorted({document.genre for document in examples if document.genre})

    def texts(self, example: Document) -> list[Tokens]:
        return list(example.sentences)

    def has_tokens(self, example: Document) -> bool:
        return any(example.sentences)

    # Network.

    def network(self, vectors: TokenVectors) -> keras.Model:
        settings = self.recipe.network
        tokens, speakers = (keras.Input((None,), dtype="string", name=name) for name in ("tokens", "speakers"))
        documents, genres = (keras.Input((), dtype="int32", name=name) for name in ("documents", "genres"))
        embedded = vectors(tokens)
        static = keras.layers.Dropout(settings.lexical_dropout_rate)(embedded.static)
        below = joined(static, embedded.elmo)
        directions = (
            CoupledLSTM(settings.units, settings.dropout_rate, go_backwards, name=name)(below)
            for name, go_backwards in (("forward", False), ("backward", True))
        )
        hidden = keras.layers.Dropout(settings.dropout_rate)(keras.layers.Concatenate()(list(directions)))
        scorers = {
            "feature_dim": settings.feature_dim,
            "units": settings.hidden_units,
            "dropout_rate": settings.dropout_rate,
        }
        mentions = MentionSpans(settings.max_width, settings.ratio, **scorers, name="mentions")(
            {"hidden": embedded.above(hidden), "vectors": static, "documents": documents}
        )
        sentences = {"documents": documents, "genres": genres, "speakers": speakers}
        num_genres = len(self.labels) if settings.genres else 0
        antecedents = AntecedentScores(
            settings.antecedents, num_genres=num_genres, speakers=settings.speakers, **scorers, name="antecedents"
        )
        scores = antecedents({name: mentions[name] for name in ("vectors", "scores", "positions")} | sentences)
        return keras.Model({"tokens": tokens} | sentences, {"scores": scores, "spans": mentions["spans"]})

    def inputs(self, examples: Sequence[Document]) -> dict[str, np.ndarray]:
        sentences = [sentence for document in examples for sentence in document.sentences]
        speakers = [
            names
            for document in examples
            for names in document.speakers or [[""] * len(sentence) for sentence in document.sentences]
        ]
        lengths = [len(document.sentences) for document in examples]
        numbers = {label: number for number, label in enumerate(self.labels, 1)}
        genres = [numbers.get(document.genre or "", 0) for document in examples]
        return {
            "tokens": padded(sentences),
            "speakers": padded(speakers),
            "documents": np.repeat(np.arange(len(examples), dtype=np.int32), lengths),
            "genres": np.repeat(np.array(genres, np.int32), lengths),
        }

    def targets(self, examples: Sequence[Document]) -> dict[str, np.ndarray]:
        return {"mentions": mention_rows(examples)}

    def num_examples(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.cast(tf.reduce_max(inputs["documents"]) + 1, tf.float32)

    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        spans, mentions = outputs["spans"], targets["mentions"]
        equal = tf.reduce_all(spans[:, None] == mentions[None, :, :2], -1)
        # The number of each span's cluster; without any mention the maximum would be the lowest int32.
        clusters = tf.maximum(tf.reduce_max(tf.where(equal, mentions[None, :, 2], 0), 1), 0)
        return antecedent_loss(outputs["scores"], clusters)

    # Predictions.

    def decode(self, network: keras.Model, outputs: Any) -> dict[str, tf.Tensor]:
        return {"spans": outputs["spans"], "steps": tf.argmax(outputs["scores"], 1)}

    def predict(self, decoded: dict[str, np.ndarray], examples: Sequence[Document]) -> list[list[list[Mention]]]:
        return clusters_of(decoded["spans"], decoded["steps"], examples)

    def empty_prediction(self) -> list[list[Mention]]:
        return []

    def scores(self, examples: Sequence[Document], predictions: Sequence[list[list[Mention]]]) -> dict[str, float]:
        counts = coref_eval.score([document.clusters for document in examples], predictions)
        return {self.metric: coref_eval.average_f1(counts)} | {
            f"{name}_{measure}": value for name, count in counts.items() for measure, value in count.scores().items()
        }

    def to_json(self, example: Document, prediction: list[list[Mention]]) -> dict[str, Any]:
        words = [word for sentence in example.sentences for word in sentence]
        answer = {
            "doc_key": example.key,
            "sentences": example.sentences,
            "clusters": [[[first, end - 1] for first, end in cluster] for cluster in prediction],
            "mentions": [[" ".join(words[first:end]) for first, end in cluster] for cluster in prediction],
        }
        if example.offsets:
            starts, ends = zip(*example.offsets, strict=True)
            answer["offsets"] = [[[starts[first], ends[end - 1]] for first, end in cluster] for cluster in prediction]
        return answer


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


def antecedent_loss(scores: tf.Tensor, clusters: tf.Tensor) -> tf.Tensor:
    """Returns minus the log probability that each span refers to one of its gold antecedents, summed over spans.

    A span without a gold antecedent should refer to no span. `scores` are those of `AntecedentScores`. `clusters`,
    int32 `(spans,)`, count from 1; 0: the span is not a gold mention.
    """
    spans, columns = tf.unstack(tf.shape(scores))
    earlier = tf.range(spans)[:, None] - tf.range(1, columns)[None]
    same = tf.gather(clusters, tf.maximum(earlier, 0)) == clusters[:, None]
    gold = same & (clusters > 0)[:, None] & (earlier >= 0) & (scores[:, 1:] > NO_ANTECEDENT)
    gold = tf.concat([~tf.reduce_any(gold, 1, keepdims=True), gold], 1)
    gold_scores = tf.reduce_logsumexp(tf.where(gold, scores, NO_ANTECEDENT), 1)
    return tf.reduce_sum(tf.reduce_logsumexp(scores, 1) - gold_scores)
