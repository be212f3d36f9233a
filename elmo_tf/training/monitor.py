"""Reports the progress of a training: a line on stderr, `metrics.jsonl`, TensorBoard's curves."""

import dataclasses
import datetime
import math
import time

import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files.progress import ProgressLine
from elmo_tf.records.windows import Window
from elmo_tf.training.board import Board
from elmo_tf.training.diagnostics import Diagnostics
from elmo_tf.training.evaluation import Evaluation
from elmo_tf.training.state import TrainState
from elmo_tf.training.step import StepResult
from elmo_tf.workdir.metrics_file import HeldoutLine, MetricsFile

# Steps of a run that are traced, after the one that builds the graph.
_PROFILED = range(5, 10)


@dataclasses.dataclass
class Monitor:
    """Collects step results, checks them, and reports the progress."""

    state: dataclasses.InitVar[TrainState]  # what the run starts from
    last_step: int  # total number of steps
    metrics: MetricsFile | None = None  # None except on the chief: nothing is shown or written
    board: Board | None = None  # None if `metrics` is
    diagnostics: Diagnostics | None = None  # computes values of some steps for `board`; None if `metrics` is
    profile: bool = False  # whether to trace some steps

    def __post_init__(self, state: TrainState) -> None:
        self._config, self._epochs = state.trainer.config, state.epochs
        self._first_step = self._step = state.step
        self._diagnosing = False
        self._pending: list[StepResult] = []
        self._timed_since: float | None = None  # start of the timed steps; None before the first step
        self._timed = 0  # steps since then
        self._rate: float | None = None  # seconds per step, a running mean
        self._perplexity = math.nan
        self._line = ProgressLine()
        if self.metrics is not None and state.step < self.last_step:
            self._line.leave("building the graph of a step ...")

    def record(self, result: StepResult, learning_rate: float) -> None:
        """Adds a step's result; raises `InputError` if a loss is not finite."""
        self._step += 1
        self._learning_rate = learning_rate
        self._pending.append(result)
        if self._timed_since is None:
            # Waits for the step that builds the graph, which is not timed.
            float(result.gradient_norm)
            self.resume_clock()
        else:
            self._timed += 1
        if len(self._pending) == self._config.log_steps or self._step == self.last_step:
            self.flush()
        if self.metrics is not None and self._step < self.last_step and self._line.due():
            self._line.show(self._progress())
        if self._diagnosing:
            self.diagnostics.write(self.board, self._step)
        made = self._step - self._first_step
        if self.profile and made == _PROFILED.start:
            self.board.start_profile()
        elif self.profile and made == _PROFILED.stop:
            self.board.stop_profile()

    def flush(self, sync: bool = False) -> None:
        """Reads the pending results from the device and writes them, with `sync` down to the disk."""
        if self._pending:
            values = np.array([[float(value) for value in result] for result in self._pending])
            self._pending.clear()
            self._check(values)
            self._perplexity = float(np.exp(values[:, :2].mean()))
            if self.metrics is not None:
                self._write(values)
                if self._step == self.last_step:
                    self._line.leave(self._progress())
        if self.metrics is not None:
            self.metrics.flush(sync)
        self.resume_clock()

    def resume_clock(self) -> None:
        """Excludes the time since the last step, such as an evaluation, from the measured speed."""
        self._timed_since, self._timed = time.monotonic(), 0

    @property
    def evaluations(self) -> list[HeldoutLine]:
        """All evaluations of the workdir so far; none except on the chief."""
        return [] if self.metrics is None else self.metrics.evaluations

    def record_evaluation(self, evaluation: Evaluation, heldout_id: str, note: str, whole: bool) -> None:
        """Writes and shows a held-out evaluation of the text or part that `heldout_id` identifies.

        `whole`: it took the whole text, while the run's other evaluations, which make the curve, take a part.
        """
        found = dataclasses.asdict(evaluation)
        values = {name: found[name] for name in ("perplexity", "forward_perplexity", "backward_perplexity")}
        if not whole:
            self.board.scalars("heldout", values, self._step)
            self.board.flush()
        line = {"step": self._step, "heldout": heldout_id} | values | {"tokens": evaluation.tokens}
        self.metrics.add(line | {"whole": True} if whole else line)
        self.metrics.flush(sync=True)
        self._line.leave(f"step {self._step:,}: {evaluation.summary()}{note}")

    def before_step(self, window: Window) -> None:
        """Called before each step: every `look_steps` steps, computes diagnostics of the step."""
        every = self._config.look_steps
        self._diagnosing = self.diagnostics is not None and every > 0 and (self._step + 1) % every == 0
        if self._diagnosing:
            self.diagnostics.before(window, self._step)

    def close(self) -> None:
        """Ends the progress line and closes TensorBoard's files."""
        if self.metrics is not None:
            self._line.leave()
            self.board.close()

    def _check(self, values: np.ndarray) -> None:
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if bad.size:
            first = self._step - len(values) + 1
            raise InputError(
                "train.learning_rate",
                "finite losses",
                f"{values[bad[0]].tolist()} (forward, backward, gradient norm) at step {first + bad[0]:,} (checked: "
                f"{first:,} to {self._step:,}); "
                "run again with a smaller rate; that resumes from the last checkpoint, if there is one",
            )

    def _write(self, values: np.ndarray) -> None:
        first = self._step - len(values) + 1
        for number, (forward, backward, norm) in enumerate(values.tolist(), first):
            losses = {"forward_loss": forward, "backward_loss": backward}
            self.metrics.add({"step": number} | losses | {"gradient_norm": norm})
        forward, backward, norm = values.mean(axis=0)
        learning = {
            "loss_forward_nats": forward,
            "loss_backward_nats": backward,
            "perplexity_sampled_softmax": self._perplexity,
            "epoch": self._epochs.at(self._step),
        }
        if self._timed:
            seconds = (time.monotonic() - self._timed_since) / self._timed
            self._rate = seconds if self._rate is None else 0.7 * self._rate + 0.3 * seconds
            learning["tokens_per_second"] = self._epochs.tokens_per_step / seconds
        optimizer = {
            "gradient_norm_before_clip": norm,
            "gradient_norm_after_clip": np.minimum(values[:, 2], self._config.clip_norm).mean(),
            "learning_rate": self._learning_rate,
        }
        self.board.scalars("learning", learning, self._step)
        self.board.scalars("optimizer", optimizer, self._step)

    def _progress(self) -> str:
        step = self._step
        done, epoch = f"step {step:,}/{self.last_step:,}", f"epoch {self._epochs.at(step):.2f}"
        if self._rate is None:
            return f"{done}  {epoch}"
        left = datetime.timedelta(seconds=round((self.last_step - step) * self._rate))
        speed = self._epochs.tokens_per_step / self._rate
        # A narrow terminal shows only the first items.
        return f"{done}  {left} left  perplexity {self._perplexity:,.1f}  {speed:,.0f} tokens/s  {epoch}"
