"""Held-out perplexities of recipes after the same number of tokens, with several seeds each.

    python benchmarks/learning.py --train train.txt --heldout valid.txt --output DIR \\
        --recipe preset --recipe "released --paper-recipe" \\
        --recipe "adam --set train.optimizer=adam"

A recipe is a name and options of `elmo-tf train`; its own `--steps`, for another batch size, replaces that of all. Runs
`elmo-tf preprocess`, `train` and `evaluate` as a user would. The learning rate decays until the last step, and
`evaluate` divides the held-out text into 32 streams for every recipe. Each result is kept in --output; an interrupted
run resumes. Prints each run, a table and, as the last line, JSON. For the first table of benchmarks/tried.md, the texts
are LitBank's first 60,000 lines and the first 4,000 of its validation text.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import probes
from benchmarks.measuring import aligned

_ELMO_TF = [sys.executable, "-m", "elmo_tf.cli"]
_STREAMS = 32


class Records(NamedTuple):
    """Folders with records."""

    train: pathlib.Path
    heldout: pathlib.Path


def main(argv: list[str] | None = None) -> None:
    """Runs what has no result yet, and prints all results."""
    arguments = parse_arguments(argv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    records = preprocess(arguments)
    recipes = [shlex.split(recipe) for recipe in arguments.recipe or ["preset"]]
    results = [run(name, options, seed, arguments, records) for name, *options in recipes for seed in arguments.seeds]
    print(table(results))
    print(json.dumps(results))


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", nargs="+", required=True, metavar="GLOB", help="text to train on")
    parser.add_argument("--heldout", nargs="+", required=True, metavar="GLOB", help="text to evaluate on")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for records, workdirs and results")
    parser.add_argument("--min-count", type=int, default=3, help="of `elmo-tf preprocess` (3)")
    parser.add_argument("--preset", default="tiny", help="of all recipes (tiny)")
    parser.add_argument("--steps", type=int, default=3000, help="of each run (3000)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="a run with each (0)")
    parser.add_argument("--recipe", action="append", metavar="'NAME [OPTION ...]'", help="may be repeated (preset)")
    return parser.parse_args(argv)


def preprocess(arguments: argparse.Namespace) -> Records:
    """Makes records of both texts with the vocabulary of the first."""
    train, heldout = arguments.output / "records", arguments.output / "heldout"
    words = ["--min-count", str(arguments.min_count)]
    known = ["--vocab", str(train / "vocab.txt")]
    for text, options, folder in ((arguments.train, words, train), (arguments.heldout, known, heldout)):
        command = [*_ELMO_TF, "preprocess", "--input", *text, *options, "--output", str(folder)]
        _result(folder.name, f"{shlex.join(command)} && echo {{}}", arguments)
    return Records(train, heldout)


def run(name: str, options: list[str], seed: int, arguments: argparse.Namespace, records: Records) -> dict:
    """Returns a run's perplexities, CPU time and seconds: from its file, or by training and evaluating."""
    run_name = f"{name}-{seed}"
    workdir = ["--workdir", str(arguments.output / run_name)]
    train = ["train", "--preset", arguments.preset, "--data", str(records.train), *workdir]
    train += ["--seed", str(seed), "--steps", str(arguments.steps), *options]
    evaluate = ["evaluate", "--data", str(records.heldout), *workdir, "--batch-size", str(_STREAMS)]
    commands = " && ".join(shlex.join([*_ELMO_TF, *command]) for command in (train, evaluate))
    return {"recipe": name, **_result(run_name, commands, arguments)}


def _result(name: str, command: str, arguments: argparse.Namespace) -> dict:
    return probes.result(name, ["bash", "-c", command], arguments.output, resumes=True)


def table(results: list[dict]) -> str:
    """Returns a line for each recipe: mean perplexity, that of each seed, mean CPU time with the evaluation."""
    lines = [("recipe", "perplexity", "by seed", "CPU seconds")]
    for name in dict.fromkeys(result["recipe"] for result in results):
        runs = [result for result in results if result["recipe"] == name]
        perplexities = [result["perplexity"] for result in runs]
        by_seed = " ".join(f"{perplexity:.1f}" for perplexity in perplexities)
        seconds = statistics.mean(result["cpu_seconds"] for result in runs)
        lines.append((name, f"{statistics.mean(perplexities):.1f}", by_seed, f"{seconds:.0f}"))
    return aligned(lines)


if __name__ == "__main__":
    main()
