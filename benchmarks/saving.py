"""What a checkpoint every few steps costs training, and how much memory it takes.

    .venv/bin/python benchmarks/saving.py --preset original --vocab-size 793471 [--every 20] [--rounds 5]

Rounds of steps that begin with a checkpoint, written in the background, take turns with the same steps without one. A
round with a checkpoint ends when it is written, as the next one would wait for it. The windows are the same in all
rounds. Prints a table and, as the last line, JSON.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import zipf_text
from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.records.windows import Window, Windows
from elmo_tf.training import checkpoints, snapshots
from elmo_tf.training.loop import _all_gpus
from elmo_tf.training.saver import Saver
from elmo_tf.training.snapshots import Progress
from elmo_tf.training.step import Trainer


def steps(trainer: Trainer, windows: list[Window], first: int) -> None:
    """Trains on the windows, and waits for the last step."""
    for number, window in enumerate(windows, first):
        result = trainer.step(window, number)
    float(result.gradient_norm)


def measure(trainer: Trainer, saver: Saver, windows: list[Window], rounds: int) -> dict[str, float]:
    """Returns the medians of the rounds, in seconds, and of the ratio of both kinds."""
    steps(trainer, windows[:2], 0)
    found: dict[str, list[float]] = {"with": [], "without": [], "copy": [], "left": []}
    memory = _peak()
    for number in range(1, rounds + 1):
        begun = time.perf_counter()
        progress = Progress(number, None, None, trainer.gathered_states())
        saver.start(snapshots.taken(trainer.bilm, trainer.optimizer, progress), [])
        found["copy"].append(time.perf_counter() - begun)
        steps(trainer, windows, 0)
        trained = time.perf_counter()
        saver.finish()
        found["left"].append(time.perf_counter() - trained)
        found["with"].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        steps(trainer, windows, 0)
        found["without"].append(time.perf_counter() - begun)
    ratios = [one / other for one, other in zip(found["with"], found["without"], strict=True)]
    return {
        "step_seconds_without": statistics.median(found["without"]) / len(windows),
        "step_seconds_with": statistics.median(found["with"]) / len(windows),
        "with_to_without": statistics.median(ratios),
        "copy_seconds": statistics.median(found["copy"]),
        "waited_seconds": statistics.median(found["left"]),
        "more_peak_rss_mb": _peak() - memory,
        "peak_rss_mb": _peak(),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str] | None = None) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="tiny", choices=config_lib.PRESETS)
    parser.add_argument("--vocab-size", type=int, default=16_306, help="words of the softmax (16306)")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="steps between two checkpoints (20)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each kind; medians count (5)")
    parser.add_argument("--folder", metavar="DIR", help="where the checkpoints are written (a temporary folder)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for `elmo-tf train`")
    arguments = parser.parse_args(argv)
    assignments = ["train.keep_checkpoints=1", *arguments.set]
    config = config_lib.override(config_lib.preset(arguments.preset), assignments)
    per_step = config.train.batch_size * config.train.unroll_steps
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        place = pathlib.Path(folder)
        records = zipf_text.write_records(place, arguments.vocab_size, 2 * arguments.every * per_step)
        with checkpoints.new_workdir(place / "workdir", config, records.vocabulary):
            pass
        workdir = checkpoints.open_workdir(place / "workdir")
        trainer = Trainer(_all_gpus(), config.train, lambda: BiLM(config.model, len(records.vocabulary)))
        cut = Windows(records, trainer.batch_size, config.train.unroll_steps, seed=0)
        windows = [window for (window, _), _ in zip(cut, range(arguments.every), strict=False)]
        size = snapshots.num_bytes(trainer.bilm, trainer.optimizer, trainer.gathered_states())
        figures = {"checkpoint_mb": size / 1e6} | measure(trainer, Saver(workdir, None), windows, arguments.rounds)
    for name, value in figures.items():
        print(f"{name:24} {value:12,.3f}")
    print(json.dumps({name: float(f"{value:.5g}") for name, value in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
