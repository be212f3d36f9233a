"""Perplexity on held-out text: the full softmax, every token, each direction."""

import contextlib
import dataclasses
import os
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.config import ModelConfig
from elmo_tf.errors import InputError, memory_explained, renamed
from elmo_tf.files.progress import ProgressLine
from elmo_tf.records import record_folder
from elmo_tf.records.windows import Windows, prefetch
from elmo_tf.text.vocabulary import END_ID, UNKNOWN_ID, Vocabulary


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    Perplexities are exp of the mean nats per token; `perplexity` is exp of the mean of both directions' means.
    """

    forward_perplexity: float
    backward_perplexity: float
    perplexity: float
    tokens: int  # predicted by each direction: the words and one boundary per sentence
    unknown_rate: float  # share of these that are <UNK>
    words: int  # tokens of the text, without boundaries, as `preprocess` counts them
    streams: int  # texts that the sentences were divided into, the LSTM state carried along each
    unroll_steps: int  # tokens per window

    def summary(self) -> str:
        """Returns the perplexities and what they depend on, for a line of the log."""
        directions = f"forward {self.forward_perplexity:.1f}, backward {self.backward_perplexity:.1f}"
        return (
            f"held-out perplexity {self.perplexity:.1f} ({directions}), "
            f"{self.streams} streams of {self.unroll_steps} tokens per window"
        )


class Evaluator:
    """Evaluates one network again and again; its graph is built once.

    Args:
        bilm: a network with a softmax; each call uses its weights at that time.
    """

    def __init__(self, bilm: BiLM):
        self._bilm = bilm
        self._losses = tf.function(bilm.language_model_losses)

    def __call__(
        self,
        records: record_folder.Records,
        batch_size: int = 32,
        unroll_steps: int = 20,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> Evaluation | None:
        """Evaluates on all of `records`, in the files' order.

        Args:
            records: the held-out text.
            batch_size: number of streams. A stream that ends gets the next sentence, and its LSTM state is carried on.
                One stream is one text from its first token to its last.
            unroll_steps: tokens per window. Sentences are assigned to streams window by window; so with several
                streams both numbers decide which sentences follow each other, and change the result a little.
            interrupted: asked between windows; when it returns True, the result is None.
        """
        states = self._bilm.zero_states(batch_size)
        max_chars = self._bilm.config.char_cnn.max_chars_per_token
        nats, tokens, words, unknown = np.zeros(2), 0, 0, 0
        total, line = records.info["tokens"] + records.info["sentences"], ProgressLine()
        made = iter(Windows(records, batch_size, unroll_steps, max_chars, epochs=1))
        with contextlib.closing(prefetch(made, interrupted=interrupted)) as windows:
            for window, _ in windows:
                losses, states = self._losses(tf.nest.map_structure(tf.constant, window), states)
                nats += [np.sum(loss.numpy(), dtype=np.float64) for loss in losses]
                tokens += int(window.mask.sum())
                words += int((window.mask & (window.forward_targets != END_ID)).sum())
                unknown += int((window.forward_targets == UNKNOWN_ID).sum())
                if line.due():
                    line.show(f"evaluating {tokens:,}/{total:,} tokens, sentence boundaries included")
                if interrupted():
                    break
        line.clear()
        if interrupted():
            return None
        forward, backward = nats / tokens
        perplexities = (float(np.exp(value)) for value in (forward, backward, (forward + backward) / 2))
        return Evaluation(*perplexities, tokens, unknown / tokens, words, batch_size, unroll_steps)


def evaluate(bilm: BiLM, records: record_folder.Records, batch_size: int = 32, unroll_steps: int = 20) -> Evaluation:
    """Evaluates `bilm` once; arguments as for `Evaluator`.

    Raises:
        InputError: if the memory is not sufficient.
    """
    with memory_explained("batch_size", "fewer streams"):
        return Evaluator(bilm)(records, batch_size, unroll_steps)


def open_records(
    data: str | os.PathLike, heldout: str | os.PathLike | None
) -> tuple[record_folder.Records, record_folder.Records | None]:
    """Returns the records to train on and those to evaluate on; raises `InputError`, naming `data` or `heldout`."""
    with renamed(path="data"):
        records = record_folder.open_folder(data)
    if heldout is None:
        return records, None
    with renamed(path="heldout"):
        return records, record_folder.open_folder(heldout)


def check_records(model: ModelConfig, vocabulary: Vocabulary | None, records: record_folder.Records) -> None:
    """Raises `InputError`, naming `workdir` or `records`, if a network with that vocabulary cannot read `records`."""
    if vocabulary is None:
        raise InputError("workdir", "a model with a softmax", "one without; `elmo-tf finetune` adds one")
    if vocabulary.sha256() != records.vocabulary.sha256():
        raise InputError(
            "records",
            f"records made with the model's vocabulary of {len(vocabulary):,} words (elmo-tf preprocess --vocab)",
            f"another one of {len(records.vocabulary):,}: {records.path}",
        )
    stored, needed = records.info["max_chars_per_token"], model.char_cnn.max_chars_per_token
    if stored < needed:
        raise InputError("records", f"records with at least {needed} characters per token", f"{stored}: {records.path}")


def check_training_records(
    model: ModelConfig,
    vocabulary: Vocabulary | None,
    records: record_folder.Records,
    heldout: record_folder.Records | None,
) -> None:
    """Does `check_records` for both folders of a training; raises `InputError`, naming `data` or `heldout`."""
    with renamed(records="data"):
        check_records(model, vocabulary, records)
    if heldout is not None:
        with renamed(records="heldout"):
            check_records(model, vocabulary, heldout)
