"""What a person sees of a training: TensorBoard scalars and a progress line."""

import datetime
import math
import os
import time

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.progress import ProgressLine
from elmo_tf.training.evaluation import Evaluation
from elmo_tf.training.step import StepResult


class Monitor:
    """Collects step results, writes their means to TensorBoard and tells on stderr how training goes.

    Args:
        logs: TensorBoard's log folder.
        first_step: steps made before.
        last_step: steps there will be.
        steps_per_epoch: steps a pass over the corpus takes.
        tokens_per_step: tokens a step trains on, each counted once for both directions.
        log_steps: steps between points in TensorBoard.
    """

    def __init__(
        self,
        logs: str | os.PathLike,
        first_step: int,
        last_step: int,
        steps_per_epoch: float,
        tokens_per_step: int,
        log_steps: int,
    ):
        self._writer = tf.summary.create_file_writer(str(logs))
        self._step = first_step
        self._last_step = last_step
        self._steps_per_epoch = steps_per_epoch
        self._tokens_per_step = tokens_per_step
        self._log_steps = log_steps
        self._pending: list[StepResult] = []
        self._since = None  # when the first timed step of those pending began; None before any step
        self._timed = 0  # steps since then
        self._rate = None  # seconds a step, a running mean
        self._perplexity = math.nan
        self._line = ProgressLine()
        if first_step < last_step:
            self._line.leave("building the graph of a step ...")

    def record(self, result: StepResult) -> None:
        """Takes one step's result; raises `InputError` if a loss is not finite."""
        self._step += 1
        self._pending.append(result)
        if self._since is None:
            float(result.gradient_norm)  # waits for the step that built the graph, which is not timed
            self.resume_clock()
        else:
            self._timed += 1
        if len(self._pending) == self._log_steps or self._step == self._last_step:
            self.flush()
        if self._step < self._last_step and self._line.due():
            self._line.show(self._progress())

    def flush(self) -> None:
        """Reads the pending results from the device, writes them and the progress line."""
        if not self._pending:
            return
        values = np.array([[float(value) for value in result] for result in self._pending])
        first = self._step - len(values) + 1
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if bad.size:
            raise InputError(
                f"training: expected finite losses, found {values[bad[0]].tolist()} (forward, backward, gradient norm) "
                f"at step {first + bad[0]:,}; go on from the last checkpoint with a smaller train.learning_rate"
            )
        forward, backward, norm = values.mean(axis=0)
        self._perplexity = float(np.exp((forward + backward) / 2))
        scalars = {
            "train/loss_forward_nats": forward,
            "train/loss_backward_nats": backward,
            "train/perplexity_sampled_softmax": self._perplexity,
            "train/gradient_norm_before_clipping": norm,
            "train/epoch": self._step / self._steps_per_epoch,
        }
        if self._timed:
            seconds = (time.monotonic() - self._since) / self._timed
            self._rate = seconds if self._rate is None else 0.7 * self._rate + 0.3 * seconds
            scalars["train/tokens_per_second"] = self._tokens_per_step / seconds
        self._write(scalars)
        self._pending.clear()
        if self._step == self._last_step:
            self._line.leave(self._progress())
        self.resume_clock()

    def resume_clock(self) -> None:
        """Leaves out of the speed what was done since the last step: an evaluation, a checkpoint."""
        self._since, self._timed = time.monotonic(), 0

    def record_evaluation(self, evaluation: Evaluation) -> None:
        """Writes a held-out evaluation and a line about it."""
        self._write(
            {
                "heldout/perplexity": evaluation.perplexity,
                "heldout/perplexity_forward": evaluation.forward_perplexity,
                "heldout/perplexity_backward": evaluation.backward_perplexity,
            }
        )
        self._writer.flush()
        self._line.leave(
            f"step {self._step:,}: held-out perplexity {evaluation.perplexity:.1f} "
            f"(forward {evaluation.forward_perplexity:.1f}, backward {evaluation.backward_perplexity:.1f})"
        )

    def close(self) -> None:
        """Writes out what is left."""
        self._line.leave()
        self._writer.close()

    def _write(self, scalars: dict[str, float]) -> None:
        with self._writer.as_default():
            for name, value in scalars.items():
                tf.summary.scalar(name, value, step=self._step)

    def _progress(self) -> str:
        line = f"step {self._step:,}/{self._last_step:,}  epoch {self._step / self._steps_per_epoch:.2f}"
        if self._rate is None:
            return line
        left = datetime.timedelta(seconds=round((self._last_step - self._step) * self._rate))
        speed = self._tokens_per_step / self._rate
        return f"{line}  training perplexity {self._perplexity:,.1f}  {speed:,.0f} tokens/s  {left} left"
