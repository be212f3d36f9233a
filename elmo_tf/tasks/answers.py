"""Answers to questions, parts of a paragraph: the system of Clark and Gardner (Peters et al. 2018, supplement A.4).

Sources of the settings: [P] the paper, [D] the code of document-qa, which produced its results.
"""

import dataclasses
import logging
import os
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.annotated import squad
from elmo_tf.annotated.squad import Question
from elmo_tf.config import Checked, Positive, Rate
from elmo_tf.errors import InputError
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.tasks.layers.trilinear_attention import BiAttention, SelfAttention
from elmo_tf.tasks.recipe import Elmo, Fit, Recipe, Spelling, Words
from elmo_tf.tasks.scores import squad_eval
from elmo_tf.tasks.system import System, mean_log_probabilities, most_common
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors

# Longest paragraph trained on, in tokens; memory is quadratic in it. No paragraph of SQuAD has over 1,000.
_MAX_TRAINING_TOKENS = 1024
_MASKED_SCORE = -1e9  # below any score
_IMPOSSIBLE = "questions without an answer"  # the label of a network that scores "no answer"
_NO_ANSWER_UNITS = 80  # of the hidden layer before that score [D]

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Network(Checked):
    """Bidirectional attention, then self-attention."""

    units: Positive = 90  # of each GRU in each direction, and half the width of the dense layers [P]
    baseline_units: Positive = 100  # likewise, without ELMo [D]
    dropout_rate: Rate = 0.2  # [P]; variational, before and after each GRU but the last two [D]
    longest_answer: Positive = 17  # tokens [P]


@dataclasses.dataclass(frozen=True)
class AnswersRecipe(Recipe):
    """The settings that all systems share, and the attention network's."""

    network: Network = Network()


class AnswerSpan(NamedTuple):
    """An answer: its first and last token in the paragraph, and its probability among all possible answers."""

    first: int
    last: int
    probability: float
    no_answer: float = 0.0  # the probability that the question has no answer


class Task(System):
    """Finds the answer to a question in a paragraph. The paragraph is a single sequence [D]."""

    name = "answers"
    metric = "f1"
    token_inputs = ("paragraph", "question")
    splits_sentences = False  # its tokens are those of `squad.paragraph_of`
    predicts_labels = False
    recipes: ClassVar = {
        "paper": AnswersRecipe(
            words=Words(dim=300, lower=False, trainable=False),  # [P]
            spelling=Spelling(filters=100, dim=20, width=5),  # [D]
            elmo=Elmo(place="both", penalty=0.0, dropout_rate=0.5),  # [P]; dropout [D]
            # Batch, Adadelta, a moving average of the weights [P]; the rest [D], which trains to the last epoch.
            # A batch of long paragraphs has fewer questions (`batching.py`).
            fit=Fit(
                batch_size=45, epochs=24, patience=24, optimizer="adadelta", learning_rate=1.0, epsilon=1e-8, ema=0.999
            ),
        ),
        "small": AnswersRecipe(
            words=Words(dim=50, lower=True, trainable=True),
            spelling=Spelling(filters=50, dim=16, width=5),
            elmo=Elmo(place="both", penalty=0.0, dropout_rate=0.3),
            fit=Fit(batch_size=45, epochs=20, patience=3, learning_rate=0.002, clip_norm=5.0, ema=0.99),
            network=Network(units=50, baseline_units=50),
        ),
    }

    def read(self, path: str | os.PathLike, labeled: bool = True) -> list[Question]:
        return squad.read_questions(path, self.reading, labeled)

    def example_of(self, item: Sequence[str]) -> Question:
        if isinstance(item, str) or len(item) != 2 or not all(isinstance(text, str) for text in item):
            raise InputError("sentences", "pairs of a paragraph and a question, two texts", repr(item))
        tokenizer = self.reading.tokenizer
        return squad.question_of(squad.paragraph_of(item[0], tokenizer), item[1], tokenizer=tokenizer)

    def examples(self, items: Sequence[Question], training: bool) -> list[Question]:
        kept = [question for question in items if not training or len(question.paragraph.words) <= _MAX_TRAINING_TOKENS]
        if len(kept) < len(items):
            message = "warning: training skips questions about paragraphs of more than %d tokens: %d of %d"
            _log.warning(message, _MAX_TRAINING_TOKENS, len(items) - len(kept), len(items))
        return kept

    def labels_of(self, examples: Sequence[Question]) -> list[str]:
        """Returns `[_IMPOSSIBLE]` if some questions have no answer, else `[]`."""
        return [_IMPOSSIBLE] if any(question.is_impossible for question in examples) else []

    def texts(self, example: Question) -> list[Tokens]:
        return [example.paragraph.tokens, example.tokens]

    def network(self, vectors: TokenVectors) -> keras.Model:
        settings = self.recipe.network
        units = settings.baseline_units if vectors.elmo is None else settings.units

        def dropout(hidden: keras.KerasTensor) -> keras.KerasTensor:
            """Applies variational dropout: all tokens share a mask."""
            return keras.layers.SpatialDropout1D(settings.dropout_rate)(hidden)

        inputs = {name: keras.Input((None,), dtype="string", name=name) for name in self.token_inputs}
        encoder = _bigru(units)
        encoded = []
        for tokens in inputs.values():
            embedded = vectors(tokens)
            encoded.append(embedded.above(dropout(encoder(dropout(embedded.below)))))
        merged = keras.layers.Dense(2 * units, "relu")(BiAttention()(encoded))
        # Each token attends to the rest of the paragraph; the result is added to it.
        hidden = dropout(_bigru(units)(dropout(merged)))
        attended = SelfAttention()(hidden)
        both = keras.layers.Concatenate()([attended, hidden, keras.layers.Multiply()([attended, hidden])])
        refined = dropout(keras.layers.Add()([merged, keras.layers.Dense(2 * units, "relu")(both)]))
        # The scores of the answer's end also depend on those of its start.
        start_states = _bigru(units)(refined)
        end_states = _bigru(units)(keras.layers.Concatenate()([refined, start_states]))
        real = TokenMask()(inputs["paragraph"])
        states = {"start": start_states, "end": end_states}
        outputs = {name: _scores(hidden, real, name) for name, hidden in states.items()}
        if self.labels:
            outputs["none"] = _no_answer_score(outputs, states)
        return keras.Model(inputs, outputs)

    def targets(self, examples: Sequence[Question]) -> dict[str, np.ndarray]:
        shape = (len(examples), max(len(question.paragraph.words) for question in examples))
        targets = {name: np.zeros(shape, bool) for name in ("start", "end")}
        for row, question in enumerate(examples):
            for answer in question.answers:
                if words := question.paragraph.token_span(answer):
                    targets["start"][row, words[0]] = targets["end"][row, words[1]] = True
        if self.labels:
            targets["none"] = np.array([question.is_impossible for question in examples])
        return targets

    def loss(self, network: keras.Model, outputs: Any, targets: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the mean of -log p(start) - log p(end), with the probabilities of several answers added up [D].

        The no-answer score is one more class of both softmaxes.
        """
        losses = []
        for name in ("start", "end"):
            scores, gold = outputs[name], targets[name]
            if "none" in outputs:
                scores = tf.concat([scores, outputs["none"]], 1)
                gold = tf.concat([gold, targets["none"][:, None]], 1)
            gold_scores = tf.where(gold, scores, _MASKED_SCORE)
            losses.append(tf.reduce_logsumexp(scores, -1) - tf.reduce_logsumexp(gold_scores, -1))
        return tf.reduce_mean(tf.add_n(losses))

    def decode(self, network: keras.Model, outputs: Any) -> dict[str, tf.Tensor]:
        longest = self.recipe.network.longest_answer
        return best_spans(outputs["start"], outputs["end"], longest, outputs.get("none"))

    def decode_together(self, networks: Sequence[keras.Model], outputs: Sequence[Any]) -> dict[str, tf.Tensor]:
        """Like `decode`. The no-answer score is one more class of both softmaxes."""
        names = ["none"] if self.labels else []
        start, end = (
            mean_log_probabilities([tf.concat([scores[name] for name in (side, *names)], 1) for scores in outputs])
            for side in ("start", "end")
        )
        together = {"start": start, "end": end}
        if names:
            none = (start[:, -1:] + end[:, -1:]) / 2
            together = {"start": start[:, :-1], "end": end[:, :-1], "none": none}
        return self.decode(networks[0], together)

    def predict(self, decoded: dict[str, np.ndarray], examples: Sequence[Question]) -> list[AnswerSpan]:
        columns = (decoded[name].tolist() for name in AnswerSpan._fields if name in decoded)
        return [AnswerSpan(*row) for row in zip(*columns, strict=True)]

    def scores(self, examples: Sequence[Question], predictions: Sequence[AnswerSpan]) -> dict[str, float]:
        pairs = zip(examples, predictions, strict=True)
        predicted = [question.paragraph.text_of(span.first, span.last).text for question, span in pairs]
        return self._scores(examples, predicted, [span.no_answer for span in predictions])

    def _scores(
        self, examples: Sequence[Question], predicted: Sequence[str], no_answer: Sequence[float]
    ) -> dict[str, float]:
        gold = [[answer.text for answer in question.answers] for question in examples]
        by_characters = self.notes(examples)["unit"] == "characters"
        if not self.labels_of(examples) and not self.labels:
            return squad_eval.score(gold, predicted, by_characters)
        return squad_eval.score_with_unanswerable(gold, predicted, no_answer, by_characters)

    def most_frequent(self, examples: Sequence[Question]) -> dict[str, Any]:
        text = most_common(question.answers[0].text if question.answers else "" for question in examples)
        scores = self._scores(examples, [text] * len(examples), [float(not text)] * len(examples))
        return {"answer": text or "no answer", self.metric: scores[self.metric]}

    def notes(self, examples: Sequence[Question]) -> dict[str, str]:
        """Returns the unit of F1: `words`, or `characters` where no spaces separate words."""
        text = "".join({question.paragraph.text for question in examples})
        return {"unit": "characters" if squad_eval.is_without_spaces(text) else "words"}

    def to_json(self, example: Question, prediction: AnswerSpan | None) -> dict[str, Any]:
        named = {} if example.id is None else {"id": example.id}
        if prediction is None:
            unknown = dict.fromkeys(("start", "end", "probability", *(["no_answer"] if self.labels else [])))
            return named | {"question": example.text, "answer": ""} | unknown
        part = example.paragraph.text_of(prediction.first, prediction.last)
        answer = {
            "question": example.text,
            "answer": part.text,
            "start": part.start,
            "end": part.start + len(part.text),
            "probability": round(prediction.probability, 4),
        }
        if self.labels:
            answer["no_answer"] = round(prediction.no_answer, 4)
            if prediction.no_answer > squad_eval.NO_ANSWER_THRESHOLD:
                answer |= {"answer": "", "start": None, "end": None}
        return named | answer


def best_spans(
    start: tf.Tensor, end: tf.Tensor, max_length: int, none: tf.Tensor | None = None
) -> dict[str, tf.Tensor]:
    """Returns each row's span of up to `max_length` tokens with the highest score; ties: the shortest, then the first.

    `start` and `end`, float `(batch, time)`, are the scores of each token as the first and the last of an answer, far
    below all others at padding. `none`, float `(batch, 1)`, replaces both scores where there is no answer. The results
    have the names of `AnswerSpan`'s fields, `no_answer` only if `none` is given: int32 `(batch,)`, and float64 for the
    probabilities.
    """
    start, time = tf.cast(start, tf.float64), tf.shape(start)[1]
    padded_end = tf.pad(tf.cast(end, tf.float64), ((0, 0), (0, max_length - 1)), constant_values=-np.inf)
    # Rows by the number of tokens after the first, columns by the first token.
    sums = tf.stack([start + padded_end[:, length : length + time] for length in range(max_length)], 1)
    sums = tf.reshape(sums, (-1, max_length * time))
    best = tf.argmax(sums, 1, tf.int32)
    scores = sums if none is None else tf.concat([sums, 2 * tf.cast(none, tf.float64)], 1)
    total = tf.reduce_logsumexp(scores, 1)
    probability = tf.exp(tf.reduce_max(sums, 1) - total)
    spans = {"first": best % time, "last": best % time + best // time, "probability": probability}
    return spans if none is None else spans | {"no_answer": tf.exp(scores[:, -1] - total)}


def _no_answer_score(scores: dict[str, keras.KerasTensor], hidden: dict[str, keras.KerasTensor]) -> keras.KerasTensor:
    """Returns the score of "no answer", float32 `(batch, 1)`, from the likeliest starts and ends [D]."""
    pooled = []
    for name, states in hidden.items():
        weights = keras.layers.Softmax()(scores[name])
        pooled.append(keras.layers.Dot((1, 1))([weights, states]))
    joined = keras.layers.Dense(_NO_ANSWER_UNITS, "relu")(keras.layers.Concatenate()(pooled))
    return keras.layers.Dense(1, name="none")(joined)


def _bigru(units: Positive) -> keras.layers.Layer:
    """Returns a bidirectional GRU that cuDNN supports, with the initial values of [D]."""
    initializers = dict.fromkeys(("kernel_initializer", "recurrent_initializer"), "truncated_normal")  # stddev 0.05
    return keras.layers.Bidirectional(keras.layers.GRU(units, return_sequences=True, **initializers))


def _scores(hidden: keras.KerasTensor, real: keras.KerasTensor, name: str) -> keras.KerasTensor:
    """Returns a score for each token, float32 `(batch, time)`, far below all others at padding."""
    # A bias would be the same for all tokens and have no effect.
    scores = keras.ops.squeeze(keras.layers.Dense(1, use_bias=False, name=name)(hidden), -1)
    return keras.ops.where(real, scores, _MASKED_SCORE)
