"""The cost of a checkpoint every few training steps, in time and memory.

    .venv/bin/python benchmarks/saving.py --preset original --vocab-size 793471 [--every 20] [--rounds 5] [--minutes 60]

Rounds of steps that begin with a checkpoint, written in the background, alternate with the same steps without one. A
round ends when its checkpoint is written, as the next one would wait for it. The cost of a checkpoint does not depend
on the number of steps, so on a slow machine use fewer and smaller ones (`--every 4 --set train.batch_size=8`); on two
cores, 20 steps of `original` take six minutes. Logs to stderr, then prints a table and, as the last line, JSON.
"""

import argparse
import os
import pathlib
import resource
import sys
import tempfile
import time
from concurrent import futures

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import zipf_text
from benchmarks.measuring import report, timed
from elmo_tf import config as config_lib
from elmo_tf.model.bilm import BiLM
from elmo_tf.records.windows import Window, Windows
from elmo_tf.training import devices
from elmo_tf.training.step import Trainer
from elmo_tf.workdir import checkpoint_files, checkpoints
from elmo_tf.workdir.checkpoint_progress import Progress
from elmo_tf.workdir.folder import Workdir, new_workdir, open_workdir

_STARTED = time.perf_counter()


def log(text: str) -> None:
    """Prints a line with the time since the start."""
    print(f"{time.perf_counter() - _STARTED:7.0f} s  {text}", file=sys.stderr, flush=True)


def steps(trainer: Trainer, windows: list[Window]) -> None:
    """Trains on the windows, and waits for the last step."""
    for number, window in enumerate(windows):
        result = trainer.step(window, number, trainer.config.learning_rate)
    float(result.gradient_norm)


class Rounds:
    """Steps with and without a checkpoint in turns, and what they took."""

    def __init__(self, trainer: Trainer, workdir: Workdir, windows: list[Window]):
        self._trainer, self._workdir, self._windows = trainer, workdir, windows
        self._pool = futures.ThreadPoolExecutor(1)
        self.without: list[np.ndarray] = []  # wall-clock and CPU seconds
        self.saving: list[np.ndarray] = []
        self.copying: list[float] = []
        self.waiting: list[float] = []

    def plain(self) -> None:
        """Trains on the windows."""
        self.without.append(timed(lambda: steps(self._trainer, self._windows)))
        log(f"{len(self._windows)} steps without a checkpoint: {self.without[-1][0]:.1f} s")

    def with_checkpoint(self) -> None:
        """Starts a checkpoint, trains on the windows, and waits until it is written, as the next one would."""
        parts = [timed(part) for part in (self._start, lambda: steps(self._trainer, self._windows), self._finish)]
        self.copying.append(parts[0][0])
        self.waiting.append(parts[2][0])
        self.saving.append(sum(parts))
        log(f"{len(self._windows)} steps with one: {self.saving[-1][0]:.1f} s")

    def _start(self) -> None:
        trainer = self._trainer
        progress = Progress(len(self.saving) + 1, states=trainer.gathered_states())
        snapshot = checkpoint_files.take_snapshot(trainer.bilm, trainer.optimizer.slots, progress)
        self._writing = self._pool.submit(checkpoints.store, self._workdir, snapshot, [])

    def _finish(self) -> None:
        self._writing.result()

    def figures(self) -> dict[str, float]:
        """Returns medians, in seconds: of a step, and of what a checkpoint adds to the steps after it."""
        (without, cpu_without), (saving, cpu_saving) = (np.median(kind, 0) for kind in (self.without, self.saving))
        return {
            "rounds": len(self.saving),
            "step_seconds_without": without / len(self._windows),
            "step_seconds_with": saving / len(self._windows),
            "with_to_without": saving / without,
            "added_seconds": saving - without,
            "added_cpu_seconds": cpu_saving - cpu_without,
            "copy_seconds": np.median(self.copying),
            "waited_seconds": np.median(self.waiting),
        }


def measure(trainer: Trainer, workdir: Workdir, windows: list[Window], rounds: int, minutes: float) -> dict[str, float]:
    """Returns the figures of so many rounds, or of those that begin before the time is up; at least one."""
    steps(trainer, windows[:1])
    log(f"graph built; a step takes {timed(lambda: steps(trainer, windows[:1]))[0]:.1f} s")
    memory, taken = _peak(), Rounds(trainer, workdir, windows)
    # The first steps without one before the first with one: peaks of memory only grow.
    taken.plain()
    plain = _peak() - memory
    for number in range(rounds):
        if number and time.perf_counter() - _STARTED > 60 * minutes:
            log(f"the {minutes:g} minutes are up")
            break
        if number:
            taken.plain()
        taken.with_checkpoint()
    return taken.figures() | {"more_peak_rss_mb": _peak() - memory - plain, "peak_rss_mb": _peak()}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="tiny", choices=config_lib.PRESETS)
    parser.add_argument("--vocab-size", type=int, default=16_306, help="words of the softmax (16306)")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="steps between two checkpoints (20)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each kind; medians count (5)")
    parser.add_argument("--minutes", type=float, default=60, help="after which no more rounds start (60)")
    parser.add_argument("--folder", metavar="DIR", help="where the checkpoints are written (a temporary folder)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for `elmo-tf train`")
    arguments = parser.parse_args(argv)
    assignments = ["train.keep_checkpoints=1", *arguments.set]
    config = config_lib.override(config_lib.preset(arguments.preset), assignments)
    per_step = config.train.batch_size * config.train.unroll_steps
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        place = pathlib.Path(folder)
        records = zipf_text.write_records(place, arguments.vocab_size, 2 * arguments.every * per_step)
        log("records made")
        with new_workdir(place / "workdir", config, records.vocabulary):
            pass
        workdir = open_workdir(place / "workdir")
        trainer = Trainer(devices.all_gpus(), config.train, lambda: BiLM(config.model, len(records.vocabulary)))
        cut = Windows(records, trainer.batch_size, config.train.unroll_steps, seed=0)
        windows = [window for (window, _), _ in zip(cut, range(arguments.every), strict=False)]
        size = checkpoint_files.num_bytes(trainer.bilm, trainer.optimizer.slots, trainer.gathered_states())
        log(f"network of {sum(one.shape.num_elements() for one in trainer.variables):,} parameters made")
        measured = measure(trainer, workdir, windows, arguments.rounds, arguments.minutes)
    figures = {"checkpoint_mb": size / 1e6} | measured
    report(figures)


if __name__ == "__main__":
    main()
