"""The cost of `metrics.jsonl` in a run of millions of steps: at its beginning, at its end, and on resuming.

    .venv/bin/python benchmarks/long_metrics.py [--steps 3000000] [--eval-steps 1000]

Lines are added as in training, twenty steps at a time. Every `--eval-steps` steps, an evaluation is added and the best
one looked up. Prints a table and, as the last line, JSON.
"""

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks.measuring import report
from elmo_tf.workdir import metrics_file
from elmo_tf.workdir.metrics_file import MetricsFile

_LOG_STEPS = 20


def add(metrics: MetricsFile, first: int, last: int, eval_steps: int) -> float:
    """Adds the lines of steps `first + 1` to `last`; returns microseconds per step."""
    started_at = time.perf_counter()
    for step in range(first + 1, last + 1):
        losses = {"forward_loss": 4.0 + 1 / step, "backward_loss": 4.1 + 1 / step, "gradient_norm": 9.0 + 1 / step}
        metrics.add({"step": step} | losses)
        if step % _LOG_STEPS == 0:
            metrics.flush()
        if step % eval_steps == 0:
            metrics.add({"step": step, "heldout": "text", "perplexity": 50 + 1 / step, "tokens": 1000})
            metrics.flush()
            metrics_file.best(metrics.evaluations, steps=[step])
            metrics_file.evaluations_since_best(metrics.evaluations)
    return 1e6 * (time.perf_counter() - started_at) / (last - first)


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=3_000_000, metavar="N", help="of the run (3000000)")
    parser.add_argument("--eval-steps", type=int, default=1000, metavar="N", help="steps between evaluations (1000)")
    arguments = parser.parse_args(argv)
    steps, tenth = arguments.steps, arguments.steps // 10
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, metrics_file.FILE)
        metrics = MetricsFile(path, None)
        figures = {"first_tenth_us_per_step": add(metrics, 0, tenth, arguments.eval_steps)}
        add(metrics, tenth, steps - tenth, arguments.eval_steps)
        figures["last_tenth_us_per_step"] = add(metrics, steps - tenth, steps, arguments.eval_steps)
        started_at = time.perf_counter()
        again = MetricsFile(path, steps)
        figures["resume_seconds"] = time.perf_counter() - started_at
        assert again.evaluations == metrics.evaluations
        figures["megabytes"] = path.stat().st_size / 1e6
    report(figures)


if __name__ == "__main__":
    main()
