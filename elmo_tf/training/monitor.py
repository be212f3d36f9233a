"""Checks the losses of a training, and reports its progress: on stderr, in `metrics.jsonl`, as TensorBoard's curves."""

import datetime
import math
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine
from elmo_tf.training.evaluation import Evaluation
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import StepResult
from elmo_tf.training.tensorboard import Before, Board, Diagnostics
from elmo_tf.workdir.metrics_file import HeldoutLine, MetricsFile, comparable

if TYPE_CHECKING:
    from elmo_tf.records.windows import Window


class Reports(NamedTuple):
    """Where a run reports."""

    metrics: MetricsFile
    board: Board
    diagnostics: Diagnostics  # computes values of some steps for `board`


class Monitor:
    """Collects the results of steps and checks them.

    Args:
        state: of the training, before its first step.
        reports: where to report; None on workers that are not the chief, which only check.
    """

    def __init__(self, state: TrainState, reports: Reports | None):
        self._state = state
        self._reports = reports
        self._config = state.trainer.config
        self._last_step = state.last_step
        self._step = state.step
        self._pending: list[StepResult] = []
        self._learning_rate = 0.0  # of the last step
        self._before: Before | None = None  # diagnostics of the step in progress, if they are due
        self._timing_started_at = 0.0  # start of the timed steps; 0: the first step has not ended yet
        self._timed_steps = 0  # steps since then
        self._rate: float | None = None  # seconds per step, a running mean
        self._perplexity = math.nan
        self._line = ProgressLine()
        if reports and self._step < self._last_step:
            self._line.leave("building the graph of a step ...")

    @property
    def evaluations(self) -> list[HeldoutLine]:
        """All evaluations of the workdir so far, which the chief knows."""
        return self._reports.metrics.evaluations if self._reports else []

    def before_step(self, window: "Window") -> None:
        """Called before each step: every `look_steps` steps, computes diagnostics of the step."""
        every = self._config.look_steps
        self._before = None
        if self._reports and every > 0 and (self._step + 1) % every == 0:
            self._before = self._reports.diagnostics.before(window, self._step)

    def record(self, result: StepResult, learning_rate: float) -> None:
        """Adds a step's result; raises `InputError` if a loss is not finite."""
        self._step += 1
        self._learning_rate = learning_rate
        self._pending.append(result)
        if not self._timing_started_at:
            # Waits for the step that builds the graph, which is not timed.
            float(result.gradient_norm)
            self.resume_clock()
        else:
            self._timed_steps += 1
        if len(self._pending) == self._config.log_steps or self._step == self._last_step:
            self.flush()
        if self._reports:
            if self._step < self._last_step and self._line.due():
                self._line.show(self._progress())
            if self._before is not None:
                self._reports.diagnostics.write(self._reports.board, self._step, self._before)

    def flush(self, sync: bool = False) -> None:
        """Reads the pending results from the device, checks and writes them, with `sync` down to the disk."""
        if self._pending:
            values = checked_values(self._pending, self._step)
            self._pending.clear()
            if self._reports:
                self._write(values, self._reports)
        if self._reports:
            self._reports.metrics.flush(sync)
        self.resume_clock()

    def resume_clock(self) -> None:
        """Excludes the time since the last step, such as an evaluation, from the measured speed."""
        self._timing_started_at, self._timed_steps = time.monotonic(), 0

    def record_evaluation(self, evaluation: Evaluation, heldout_id: str, note: str, whole: bool) -> None:
        """Writes and shows a held-out evaluation of the text or part that `heldout_id` identifies.

        `whole`: whether it is of the whole text, though the run's other evaluations, shown as a curve, are of a part.
        """
        if self._reports is None:
            return
        metrics, board, _ = self._reports
        names = ("perplexity", "forward_perplexity", "backward_perplexity")
        values = {name: getattr(evaluation, name) for name in names}
        line = {"step": self._step, "heldout": heldout_id} | values | {"tokens": evaluation.tokens}
        metrics.add(line | {"whole": True} if whole else line)
        if not whole:
            lowest = min(line.rank for line in comparable(metrics.evaluations))
            board.scalars("heldout", values | {"best_perplexity": lowest}, self._step)
            board.flush()
        metrics.flush(sync=True)
        self._line.leave(f"step {self._step:,}: {evaluation.summary()}{note}")

    def close(self) -> None:
        """Ends the progress line and closes TensorBoard's files."""
        if self._reports:
            self._line.leave()
            self._reports.board.close()

    def _write(self, values: np.ndarray, reports: Reports) -> None:
        self._perplexity = float(np.exp(values[:, :2].mean()))
        first = self._step - len(values) + 1
        for number, (forward, backward, norm) in enumerate(values.tolist(), first):
            losses = {"forward_loss": forward, "backward_loss": backward}
            reports.metrics.add({"step": number} | losses | {"gradient_norm": norm})
        forward, backward, norm = values.mean(axis=0)
        learning = {
            "loss_forward_nats": forward,
            "loss_backward_nats": backward,
            "perplexity_sampled_softmax": self._perplexity,
            "epoch": self._state.epochs_at(self._step),
        }
        if self._timed_steps:
            seconds = (time.monotonic() - self._timing_started_at) / self._timed_steps
            self._rate = seconds if self._rate is None else 0.7 * self._rate + 0.3 * seconds
            learning["tokens_per_second"] = self._state.tokens_per_step / seconds
        optimizer = {
            "gradient_norm_before_clip": norm,
            "gradient_norm_after_clip": np.minimum(values[:, 2], self._config.clip_norm).mean(),
            "learning_rate": self._learning_rate,
        }
        reports.board.scalars("learning", learning, self._step)
        reports.board.scalars("optimizer", optimizer, self._step)
        if self._step == self._last_step:
            self._line.leave(self._progress())

    def _progress(self) -> str:
        step = self._step
        done, epoch = f"step {step:,}/{self._last_step:,}", f"epoch {self._state.epochs_at(step):.2f}"
        if self._rate is None:
            return f"{done}  {epoch}"
        left = datetime.timedelta(seconds=round((self._last_step - step) * self._rate))
        speed = self._state.tokens_per_step / self._rate
        # A narrow terminal shows only the first items.
        return f"{done}  {left} left  perplexity {self._perplexity:,.1f}  {speed:,.0f} tokens/s  {epoch}"


def checked_values(results: list[StepResult], last_step: int) -> np.ndarray:
    """Reads the results of the steps up to `last_step`, float64 `(steps, 3)`; `InputError` if one is not finite."""
    values = np.array([[float(value) for value in result] for result in results])
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad.size:
        forward, backward, norm = values[bad[0]].tolist()
        raise InputError(
            "train.learning_rate",
            f"training diverged at step {last_step - len(values) + 1 + bad[0]:,}: forward loss {forward}, backward "
            f"loss {backward}, gradient norm {norm}; run again with a smaller rate: that resumes from the last "
            "checkpoint, if there is one",
        )
    return values
