"""Which words of a document mean the same person or thing: span ranking (Peters et al. 2018, supplement A.6).

Sources of what is set here: [P] the paper, [C] Lee et al. 2017, whose system it is, and its code; [C18] the code of Lee
et al. 2018, in which ELMo is used. Sentences are encoded one by one [C]. ELMo is not in the vectors that a span's head
is made of [C18].
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated import conll2012, coref_jsonlines
from elmo_tf.annotated.conll2012 import Document, Mention
from elmo_tf.annotated.numbered_lines import numbered_lines, require_some
from elmo_tf.errors import InputError
from elmo_tf.tasks.documents import clusters_of, cut, mention_rows, window
from elmo_tf.tasks.layers.antecedents import NONE, AntecedentScores
from elmo_tf.tasks.layers.coupled_lstm import CoupledLSTM
from elmo_tf.tasks.layers.mention_spans import MentionSpans
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Spelling, Words
from elmo_tf.tasks.scores import coref_eval
from elmo_tf.tasks.system import System, checked_tokens
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors, joined, padded


@dataclasses.dataclass(frozen=True)
class Network:
    """The span ranking system; numbers are [C]'s."""

    units: int = 200  # of the LSTM in each direction
    hidden_units: int = 150  # of both hidden layers of the networks that score spans and pairs
    feature_dim: int = 20  # of the vectors of widths, distances, speakers and genres
    max_width: int = 10  # words of a mention at most
    ratio: float = 0.4  # spans that are kept for each word
    antecedents: int = 250  # kept spans before a span that it may refer to
    window: int = 50  # sentences of a document that a training step sees at most, others each time
    speakers: bool = True  # whether it counts that two mentions have one speaker
    genres: bool = True  # whether the genre counts, where the documents' names have it
    lexical_dropout_rate: float = 0.5  # of the words' vectors
    dropout_rate: float = 0.2  # of the LSTM's output, recurrent and other; of hidden layers and features

    def __post_init__(self) -> None:
        for name in ("feature_dim", "max_width", "antecedents", "window"):
            if getattr(self, name) < 1:
                raise InputError(name, "at least 1", getattr(self, name))
        if not self.ratio > 0:
            raise InputError("ratio", "above 0", self.ratio)


@dataclasses.dataclass(frozen=True)
class CoreferenceRecipe(Recipe):
    """All that can be set."""

    network: Network = Network()


class Task(System):
    """Finds the clusters of mentions of documents."""

    name = "coreference"
    metric = "average_f1"
    judged_together = 1
    recipes: ClassVar = {
        "paper": CoreferenceRecipe(
            words=Words(dim=300, lower=False, trainable=False, normalize=True),  # [C], which adds Turian's vectors
            spelling=Spelling(filters=50, dim=8, width=3, more_widths=(4, 5)),  # [C]
            elmo=Elmo(place="input", dropout_rate=0.5),  # [P]
            # Adam, rate, decay, clipping, a document a step [C]. 400,000 steps are 143 epochs of OntoNotes' 2,802
            # documents; patience is AllenNLP's.
            fit=Fit(batch_size=1, epochs=150, patience=10, clip_norm=5.0, decay_rate=0.999, decay_steps=100),
        ),
        "small": CoreferenceRecipe(
            words=Words(dim=50, lower=True, trainable=True),
            spelling=Spelling(filters=50, dim=8, width=3),
            elmo=Elmo(place="input", dropout_rate=0.5),
            # With few documents the first epochs score 0, as no span refers to another yet: patience has to be longer.
            fit=Fit(batch_size=1, epochs=20, patience=10, clip_norm=5.0, decay_rate=0.999, decay_steps=100),
            network=Network(units=100, hidden_units=100, antecedents=100, lexical_dropout_rate=0.4),
        ),
    }

    # Data.

    @classmethod
    def read(cls, path: str | os.PathLike, recipe: CoreferenceRecipe) -> list[Document]:
        if _begins(path, "{"):
            return _cut(coref_jsonlines.read_jsonlines(path))
        return _cut(conll2012.read_documents(path))

    @classmethod
    def read_unlabelled(cls, path: str | os.PathLike) -> list[Document]:
        if _begins(path, "{"):
            return _cut(coref_jsonlines.read_jsonlines(path, labelled=False))
        if _begins(path, "#begin document"):
            return _cut(conll2012.read_documents(path))
        text = "\n".join(line for _, line in numbered_lines(path))
        return _cut(
            require_some([one for one in [coref_jsonlines.document_of_text(text)] if one.sentences], path, "word")
        )

    @classmethod
    def example_of(cls, item: str | Sequence[Sequence[str]]) -> Document:
        if isinstance(item, str):
            found = coref_jsonlines.document_of_text(item)
            if not found.sentences:
                raise InputError("sentences", "a text with words", repr(item))
            return cut(found)
        if not isinstance(item, Sequence) or not item:
            raise InputError("sentences", "documents: lists of sentences, or texts; none of them empty", repr(item))
        return cut(Document("", [checked_tokens(sentence) for sentence in item]))

    def drawn(self, examples: Sequence[Document], random: np.random.Generator) -> list[Document]:
        return [window(one, self.recipe.network.window, random) for one in examples]

    @classmethod
    def labels_of(cls, examples: Sequence[Document]) -> list[str]:
        """Returns the genres of the documents."""
        return sorted({one.genre for one in examples if one.genre})

    @classmethod
    def texts(cls, example: Document) -> list[Tokens]:
        return list(example.sentences)

    # Network.

    def network(self, vectors: TokenVectors) -> keras.Model:
        own = self.recipe.network
        tokens, speakers = (keras.Input((None,), dtype="string", name=name) for name in ("tokens", "speakers"))
        documents, genres = (keras.Input((), dtype="int32", name=name) for name in ("documents", "genres"))
        known = vectors(tokens)
        static = keras.layers.Dropout(own.lexical_dropout_rate)(known.static)
        below = joined(static, known.elmo)
        directions = (
            CoupledLSTM(own.units, own.dropout_rate, reverse, name=name)(below)
            for name, reverse in (("forward", False), ("backward", True))
        )
        hidden = keras.layers.Dropout(own.dropout_rate)(keras.layers.Concatenate()(list(directions)))
        scorers = {"feature_dim": own.feature_dim, "units": own.hidden_units, "dropout_rate": own.dropout_rate}
        found = MentionSpans(own.max_width, own.ratio, **scorers, name="mentions")(
            {"hidden": known.above(hidden), "vectors": static, "documents": documents}
        )
        sentences = {"documents": documents, "genres": genres, "speakers": speakers}
        num_genres = len(self.labels) if own.genres else 0
        antecedents = AntecedentScores(
            own.antecedents, num_genres=num_genres, speakers=own.speakers, **scorers, name="antecedents"
        )
        scores = antecedents({name: found[name] for name in ("vectors", "scores", "places")} | sentences)
        return keras.Model({"tokens": tokens} | sentences, {"scores": scores, "spans": found["spans"]})

    def inputs(self, examples: Sequence[Document]) -> dict[str, np.ndarray]:
        sentences = [sentence for one in examples for sentence in one.sentences]
        speakers = [one.speakers or [[""] * len(sentence) for sentence in one.sentences] for one in examples]
        lengths = [len(one.sentences) for one in examples]
        numbers = {label: number for number, label in enumerate(self.labels, 1)}
        genres = [numbers.get(one.genre or "", 0) for one in examples]
        return {
            "tokens": padded(sentences),
            "speakers": padded([names for one in speakers for names in one]),
            "documents": np.repeat(np.arange(len(examples), dtype=np.int32), lengths),
            "genres": np.repeat(np.array(genres, np.int32), lengths),
        }

    def targets(self, examples: Sequence[Document]) -> dict[str, np.ndarray]:
        return {"mentions": mention_rows(examples)}

    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        clusters = _cluster_of_each(outputs["spans"], targets["mentions"])
        return antecedent_loss(outputs["scores"], clusters)

    # Answers.

    def answers(self, network: keras.Model, outputs: Any, examples: Sequence[Document]) -> list[list[list[Mention]]]:
        return clusters_of(outputs["spans"], outputs["scores"].argmax(1), examples)

    def scores(self, examples: Sequence[Document], answers: Sequence[list[list[Mention]]]) -> dict[str, float]:
        counts = coref_eval.score([one.clusters for one in examples], answers)
        return {self.metric: coref_eval.average_f1(counts)} | {
            f"{name}_{measure}": value for name, one in counts.items() for measure, value in one.scores().items()
        }

    def to_json(self, example: Document, answer: list[list[Mention]]) -> dict[str, Any]:
        words = [word for sentence in example.sentences for word in sentence]
        found = {
            "doc_key": example.key,
            "sentences": example.sentences,
            "clusters": [[[first, behind - 1] for first, behind in cluster] for cluster in answer],
            "mentions": [[" ".join(words[first:behind]) for first, behind in cluster] for cluster in answer],
        }
        if example.offsets:
            begins, ends = zip(*example.offsets, strict=True)
            found["offsets"] = [[[begins[first], ends[behind - 1]] for first, behind in cluster] for cluster in answer]
        return found


def antecedent_loss(scores: tf.Tensor, clusters: tf.Tensor) -> tf.Tensor:
    """Returns minus the log probability that each span refers to any of its right antecedents, summed over spans.

    A span without a right antecedent refers to none.

    Args:
        scores: float32 `(spans, 1 + antecedents)`, of `AntecedentScores`.
        clusters: int32 `(spans,)`, from 1; 0: the span is no mention.
    """
    spans, columns = tf.unstack(tf.shape(scores))
    earlier = tf.range(spans)[:, None] - tf.range(1, columns)[None]
    same = tf.gather(clusters, tf.maximum(earlier, 0)) == clusters[:, None]
    right = same & (clusters > 0)[:, None] & (earlier >= 0) & (scores[:, 1:] > NONE)
    right = tf.concat([~tf.reduce_any(right, 1, keepdims=True), right], 1)
    of_right = tf.reduce_logsumexp(tf.where(right, scores, NONE), 1)
    return tf.reduce_sum(tf.reduce_logsumexp(scores, 1) - of_right)


def _cluster_of_each(spans: tf.Tensor, mentions: tf.Tensor) -> tf.Tensor:
    """Returns the number of the cluster of each span, int32 `(spans,)`, 0 for one that is no mention."""
    equal = tf.reduce_all(spans[:, None] == mentions[None, :, :2], -1)
    # Without any mention the maximum would be the smallest number.
    return tf.maximum(tf.reduce_max(tf.where(equal, mentions[None, :, 2], 0), 1), 0)


def _cut(documents: list[Document]) -> list[Document]:
    return [cut(one) for one in documents]


def _begins(path: str | os.PathLike, mark: str) -> bool:
    """Whether the first line that is not empty begins with a mark."""
    return next((line for _, line in numbered_lines(path) if line.strip()), "").lstrip().startswith(mark)
