"""When a system with ELMo passes the best dev score of the one without (section 5.4 of the paper), from their workdirs.

`paper_table.py` prints it. Updates are the optimizer's steps.
"""

import json
import pathlib
import statistics

from elmo_tf.tasks import trained


def first_better(baseline: pathlib.Path, with_elmo: pathlib.Path) -> str:
    """Returns the first epoch with a dev score above the baseline's best, and how many fewer updates that takes.

    Both are workdirs of `elmo-tf task NAME train`. Of several seeds, the mean; "never" if one seed never passes; "-" if
    a workdir is gone.
    """
    runs = [_passing(path, with_elmo / path.relative_to(baseline)) for path in _scores(baseline)]
    if not runs or None in runs:
        return "-"
    if any(passing == 0 for (_, passing), _ in runs):
        return "never"
    best, passing = (statistics.mean(epochs) for epochs in zip(*(epochs for epochs, _ in runs), strict=True))
    before, after = map(sum, zip(*(steps for _, steps in runs), strict=True))
    return f"epoch {passing:.3g}, not {best:.3g}: {100 - 100 * after / before:.0f} % fewer updates"


def _scores(workdir: pathlib.Path) -> list[pathlib.Path]:
    """Returns the scores of each seed."""
    seeds = sorted(workdir.glob(f"seed_*/{trained.SCORES}"))
    return seeds or list(workdir.glob(trained.SCORES))


def _passing(baseline: pathlib.Path, with_elmo: pathlib.Path) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Returns the baseline's best epoch and the first above it with ELMo, from 1, or 0; and the steps until each."""
    if not with_elmo.exists():
        return None
    runs = [json.loads(path.read_text("utf-8")) for path in (baseline, with_elmo)]
    metric = runs[0]["metric"]
    scores = [[epoch["dev"][metric] if "dev" in epoch else -1 for epoch in run["history"]] for run in runs]
    best = max(scores[0])
    passing = next((number for number, score in enumerate(scores[1], 1) if score > best), 0)
    epochs = (scores[0].index(best) + 1, passing)
    steps = (sum(epoch["steps"] for epoch in run["history"][:end]) for run, end in zip(runs, epochs, strict=True))
    return epochs, (next(steps), next(steps))
