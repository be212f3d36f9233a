"""Evaluation during training: on which part of the held-out text, and whether it still gets better."""

import dataclasses
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from elmo_tf.config import Config, TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.record_folder import Records
from elmo_tf.training.coordination import OneWorker
from elmo_tf.training.evaluation import Evaluator, num_tokens, text_id
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.step import Trainer
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


def parts(records: Records, config: TrainConfig) -> list[Part]:
    """Returns the part that each evaluation takes and, unless that is all, the whole text for the last evaluation.

    The part has `eval_tokens` tokens, rounded up to windows of `batch_size` streams of `unroll_steps`.
    """
    shape = config.batch_size, config.unroll_steps
    whole = Part(text_id(records, *shape), None)
    tokens_per_window = config.batch_size * config.unroll_steps
    windows = -(-config.eval_tokens // tokens_per_window)
    if 0 < windows * tokens_per_window < num_tokens(records):
        return [Part(text_id(records, windows, *shape), windows), whole]
    return [whole]


def check_patience(config: Config, heldout: object | None) -> None:
    """Raises `InputError` if `train.patience` is set and there is no held-out text."""
    if config.train.patience and heldout is None:
        raise InputError("train.patience", "a held-out text with it", "none")


@dataclasses.dataclass
class HeldoutEvaluation:
    """Evaluates a network in training repeatedly; all workers must call `evaluate` at the same step."""

    records: Records  # the held-out text
    trainer: Trainer
    workers: OneWorker
    monitor: Monitor  # records the evaluations; only the chief's has them
    interrupted: Callable[[], bool]  # asked between windows whether to stop

    def __post_init__(self) -> None:
        self.config = config = self.trainer.config
        self._evaluator = Evaluator(self.trainer.bilm, self.trainer.strategy)
        self._parts = parts(self.records, config)
        self._eval_steps = config.checkpoint_steps if config.eval_steps is None else config.eval_steps
        self.out_of_patience = False  # whether `train.patience` evaluations have passed without a better one
        self.seconds = 0.0  # spent on evaluations

    def due(self, step: int) -> bool:
        """Whether an evaluation is due; a checkpoint is due too, because it may be the best."""
        return self._eval_steps > 0 and step % self._eval_steps == 0

    def evaluate(self, step: int, final: bool = False) -> bool:
        """Evaluates the weights after `step` steps, unless that was done before; if `final`, also on the whole text.

        Returns:
            False if the evaluation was interrupted on any worker.
        """
        started_at, config, workers = time.monotonic(), self.config, self.workers
        known = {one.heldout for one in self.earlier() if one.step == step}
        wanted = self._parts if final else self._parts[:1]
        missing = [part for part in wanted if workers.any(workers.is_chief and part.id not in known)]
        found = self._evaluator.parts(
            self.records,
            [part.windows for part in missing],
            *(config.batch_size, config.unroll_steps, self.interrupted),
        )
        if workers.is_chief:
            for part, result in zip(missing, found, strict=False):
                note = "" if part.windows is None else f", of the first {result.tokens:,} tokens"
                self.monitor.record_evaluation(result, part.id, note, part != self._parts[0])
        waited = metrics_file.evaluations_since_best(self.earlier())
        self.out_of_patience = workers.any(0 < config.patience <= waited)
        seconds = time.monotonic() - started_at
        self.seconds += seconds
        if found and not final and len(self.earlier()) == 1:
            workers.info(
                "the evaluation took %.1f s, building its graph included: %s of %s held-out tokens "
                "(train.eval_tokens), every %s steps (train.eval_steps); the final one uses all tokens",
                *(seconds, f"{found[0].tokens:,}", f"{num_tokens(self.records):,}", f"{self._eval_steps:,}"),
            )
        self.monitor.resume_clock()
        return len(found) == len(missing)

    def earlier(self) -> list[HeldoutLine]:
        """Returns the evaluations on this held-out text so far."""
        ids = [part.id for part in self._parts]
        return [one for one in self.monitor.evaluations if one.heldout in ids]

    def warn_of_others(self) -> None:
        """Warns if earlier evaluations cannot be compared with those to come."""
        if self.monitor.evaluations and not self.earlier():
            _log.warning(
                "warning: earlier evaluations were of another held-out text, another part of it, or another number of "
                "streams (train.batch_size); the best checkpoint and train.patience count only those from here on"
            )
