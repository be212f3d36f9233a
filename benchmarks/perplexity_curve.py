"""Draws the held-out perplexity of a training run over the tokens it has seen.

    python benchmarks/perplexity_curve.py runs/english docs/english-model.png

The evaluations are those in `metrics.jsonl` of the workdir, which `elmo-tf train --heldout` makes at each checkpoint.
Prints a line of JSON with the first and the last one.
"""

import argparse
import json
import pathlib
import sys

from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from elmo_tf.errors import InputError
from elmo_tf.workdir import metrics_file
from elmo_tf.workdir.folder import open_workdir

_TICKS = (20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 1000)


def points(workdir: pathlib.Path, replicas: int = 1) -> list[tuple[float, float]]:
    """Returns millions of training tokens and the perplexity at that point, for each comparable evaluation of a run.

    Args:
        workdir: of `elmo-tf train`.
        replicas: GPUs of all workers; a step has one batch on each.

    Raises:
        InputError: if the run has no evaluation.
    """
    run = open_workdir(workdir)
    train = run.config.train
    tokens = train.batch_size * train.unroll_steps * replicas
    found = metrics_file.evaluations(run.metrics)
    if not found:
        raise InputError(str(workdir), "a run with evaluations on held-out text", "none")
    return [(one.step * tokens / 1e6, one.perplexity) for one in metrics_file.comparable(found)]


def draw(curve: list[tuple[float, float]], path: pathlib.Path) -> None:
    """Draws a curve of `points`."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*curve, strict=True), marker=".", color="tab:blue")
    axes.set(xlabel="training tokens, millions", ylabel="held-out perplexity", yscale="log")
    lowest, highest = (select(perplexity for _, perplexity in curve) for select in (min, max))
    ticks = [tick for tick in _TICKS if lowest / 1.2 < tick < highest * 1.2]
    axes.minorticks_off()
    axes.set_yticks(ticks, labels=[str(tick) for tick in ticks])
    axes.grid(alpha=0.3)
    axes.annotate(f"{curve[-1][1]:.1f}", curve[-1], xytext=(-4, 8), textcoords="offset points", ha="right")
    figure.savefig(path, dpi=120)


def main(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("workdir", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path, help="a PNG file")
    parser.add_argument("--replicas", type=int, default=1, help="GPUs that trained it (1)")
    arguments = parser.parse_args(argv)
    curve = points(arguments.workdir, arguments.replicas)
    draw(curve, arguments.output)
    print(json.dumps({"evaluations": len(curve), "first": curve[0], "last": curve[-1]}))


if __name__ == "__main__":
    main()
