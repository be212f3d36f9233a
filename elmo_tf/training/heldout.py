"""Evaluation during training: which part of the held-out text is used, and whether perplexity still improves."""

import logging
import time
from typing import NamedTuple

from elmo_tf.config import TrainConfig
from elmo_tf.records.record_folder import Records
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.workers import Alone, Workers
from elmo_tf.workdir import metrics_file
from elmo_tf.workdir.metrics_file import HeldoutLine

_log = logging.getLogger("elmo_tf")


class Part(NamedTuple):
    """The first windows of a held-out text.

    Perplexities can be compared if they have the same `id`: it depends on the text, on the number of windows, and on
    how the text is divided into streams and windows.
    """

    id: str
    windows: int | None  # None: the whole text


def parts_of(records: Records, config: TrainConfig) -> list[Part]:
    """Returns the part that each evaluation uses and, unless that is all, the whole text for the last evaluation.

    The part has `eval_tokens` tokens, rounded up to windows of `batch_size` streams of `unroll_steps`.
    """
    shape = config.batch_size, config.unroll_steps
    whole = Part(records.text_id(*shape), None)
    tokens_per_window = config.batch_size * config.unroll_steps
    windows = -(-config.eval_tokens // tokens_per_window)
    if 0 < windows * tokens_per_window < records.num_tokens:
        return [Part(records.text_id(windows, *shape), windows), whole]
    return [whole]


class HeldoutEvaluation:
    """Evaluates a network in training repeatedly; without a text, no evaluation is ever due.

    All workers evaluate, each on its streams. The chief knows the earlier evaluations.

    Args:
        records: the held-out text.
        config: the recipe.
        monitor: records the evaluations.
        evaluator: of the network in training.
        workers: the processes that train.

    Attributes:
        out_of_patience: whether `train.patience` evaluations have passed without a better perplexity.
        seconds: spent on evaluations.
    """

    def __init__(
        self,
        records: Records | None,
        config: TrainConfig,
        monitor: Monitor,
        evaluator: Evaluator,
        workers: Alone | Workers,
    ):
        self.out_of_patience = False
        self.seconds = 0.0
        self._records = records
        self._config = config
        self._monitor = monitor
        self._evaluator = evaluator
        self._workers = workers
        self._parts = [] if records is None else parts_of(records, config)
        self._eval_steps = config.checkpoint_steps if config.eval_steps is None else config.eval_steps

    @property
    def has_text(self) -> bool:
        """Whether there is a text to evaluate on."""
        return self._records is not None

    def due(self, step: int) -> bool:
        """Whether an evaluation is due; then a checkpoint is due too, because it may be the best."""
        return bool(self._parts) and self._eval_steps > 0 and step % self._eval_steps == 0

    def evaluate(self, step: int, final: bool = False) -> bool:
        """Evaluates the weights after `step` steps, unless that was done before; if `final`, also on the whole text.

        Returns:
            False if the evaluation was interrupted.
        """
        if self._records is None:
            return True
        started_at, config = time.monotonic(), self._config
        due_parts = self._unevaluated(self._parts if final else self._parts[:1], step)
        counts = [part.windows for part in due_parts]
        results = self._evaluator.parts(self._records, counts, config.batch_size, config.unroll_steps)
        for part, result in zip(due_parts, results, strict=False):
            note = "" if part.windows is None else f", of the first {result.tokens:,} tokens"
            self._monitor.record_evaluation(result, part.id, note, part != self._parts[0])
        since_best = metrics_file.evaluations_since_best(self.evaluations())
        self.out_of_patience = bool(self._workers.chief(0 < config.patience <= since_best))
        seconds = time.monotonic() - started_at
        self.seconds += seconds
        if results and not final and len(self.evaluations()) == 1:
            _log.info(
                "the evaluation took %.1f s, building its graph included: %s of %s held-out tokens "
                "(train.eval_tokens), every %s steps (train.eval_steps); the final one uses all tokens",
                seconds,
                f"{results[0].tokens:,}",
                f"{self._records.num_tokens:,}",
                f"{self._eval_steps:,}",
            )
        self._monitor.resume_clock()
        return len(results) == len(due_parts)

    def _unevaluated(self, parts: list[Part], step: int) -> list[Part]:
        """Returns the parts without an evaluation of this step."""
        evaluated = {line.heldout for line in self.evaluations() if line.step == step}
        return [part for part in parts if self._workers.chief(part.id not in evaluated)]

    def evaluations(self) -> list[HeldoutLine]:
        """Returns the evaluations on this held-out text so far."""
        ids = [part.id for part in self._parts]
        return [line for line in self._monitor.evaluations if line.heldout in ids]

    def warn_of_others(self) -> None:
        """Warns if earlier evaluations cannot be compared with those to come."""
        if self._parts and self._monitor.evaluations and not self.evaluations():
            _log.warning(
                "warning: earlier evaluations used another held-out text, another part of it, or another number of "
                "streams (train.batch_size); the best checkpoint and train.patience consider only those from now on"
            )
