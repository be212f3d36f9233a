"""Perplexity on held-out text: the full softmax, every token, each direction."""

import contextlib
import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.config import ModelConfig
from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine
from elmo_tf.records import record_folder
from elmo_tf.records.windows import Windows, prefetch
from elmo_tf.text.vocabulary import UNKNOWN_ID, Vocabulary


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Perplexities are exp of mean nats per token, `perplexity` that of the mean of both directions' means."""

    forward_perplexity: float
    backward_perplexity: float
    perplexity: float
    tokens: int  # predicted by each direction: the words and one boundary a sentence
    unknown_rate: float  # share of these that are <UNK>


class Evaluator:
    """Evaluates one network again and again; its graph is built once.

    Args:
        bilm: a network with a softmax; its weights at the time of a call count.
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
            batch_size: streams that the sentences are dealt to as they end; the LSTM state is carried along each. One
                stream is one text from its first token to its last.
            unroll_steps: tokens a window; does not change the result.
            interrupted: asked between windows; when it says yes, None is returned.
        """
        states = self._bilm.zero_states(batch_size)
        max_chars = self._bilm.config.char_cnn.max_chars_per_token
        nats, tokens, unknown = np.zeros(2), 0, 0
        total, line = records.info["tokens"] + records.info["sentences"], ProgressLine()
        windows = prefetch(iter(Windows(records, batch_size, unroll_steps, max_chars, epochs=1)))
        with contextlib.closing(windows):
            for window, _ in windows:
                losses, states = self._losses(tf.nest.map_structure(tf.constant, window), states)
                nats += [np.sum(loss.numpy(), dtype=np.float64) for loss in losses]
                tokens += int(window.mask.sum())
                unknown += int((window.forward_targets == UNKNOWN_ID).sum())
                if line.due():
                    line.show(f"evaluating {tokens:,}/{total:,} tokens")
                if interrupted():
                    line.clear()
                    return None
        line.clear()
        forward, backward = nats / tokens
        mean = (forward + backward) / 2
        return Evaluation(*(float(np.exp(value)) for value in (forward, backward, mean)), tokens, unknown / tokens)


def evaluate(bilm: BiLM, records: record_folder.Records, batch_size: int = 32, unroll_steps: int = 20) -> Evaluation:
    """Evaluates `bilm` once; arguments as for `Evaluator`."""
    return Evaluator(bilm)(records, batch_size, unroll_steps)


def check_records(
    model: ModelConfig, vocabulary: Vocabulary | None, records: record_folder.Records, argument: str
) -> None:
    """Raises `InputError`, naming `argument`, if a network with that vocabulary cannot be tried on `records`."""
    if vocabulary is None:
        raise InputError(
            "--workdir: expected a model with a softmax, found one without; `elmo-tf finetune` gives it one"
        )
    if vocabulary.sha256() != records.vocabulary.sha256():
        raise InputError(
            f"{argument}: expected records made with the model's vocabulary of {len(vocabulary):,} words "
            f"(elmo-tf preprocess --vocab), found another one of {len(records.vocabulary):,}: {records.path}"
        )
    stored, needed = records.info["max_chars_per_token"], model.char_cnn.max_chars_per_token
    if stored < needed:
        raise InputError(
            f"{argument}: expected records with at least {needed} characters a token, found {stored}: {records.path}"
        )
