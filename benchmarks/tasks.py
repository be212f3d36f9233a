"""The probes and the examples on one SavedModel, as one table: what a model knows, and what it does for tasks.

    python benchmarks/tasks.py --savedmodel DIR --data DIR --output DIR

--data is a folder with ud_ewt, semcor30, wnut17, wikigold, sentence_polarity and glove_small; the code has the names of
their files. Runs `elmo-tf probe` and the programs of examples/ as a user would, and prints each command, a table and a
line of JSON. Every command's result is kept in --output; an interrupted run resumes there. --only chooses tasks; --mix,
--fractions, --seeds and --epochs choose runs of each.
"""

import argparse
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from elmo_tf.files import staging

ROOT = pathlib.Path(__file__).resolve().parent.parent
TASKS = ("pos", "wsd", "wnut17", "wikigold", "polarity")


def main(argv: list[str] | None = None) -> None:
    """Runs the chosen tasks that have no result yet, and prints all results."""
    arguments = parse_arguments(argv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    found = {}
    for task in arguments.only:
        for name, command in commands(task, arguments).items():
            found[name] = result(name, [str(word) for word in command], arguments.output)
    print()
    for name, values in found.items():
        print(f"{name:20} {values['seconds']:7.0f} s  {summary(values)}")
    print(json.dumps(found))


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--savedmodel", type=pathlib.Path, required=True, help="a version's folder")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for results")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=TASKS, metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--fractions", nargs="+", type=float, default=(0.1, 1.0), help="of the training data (0.1 1.0)")
    parser.add_argument("--mix", nargs="+", default=("learned", "top"), help="of ELMo's layers (learned top)")
    parser.add_argument("--seeds", type=int, default=3, help="repetitions of each task (3)")
    parser.add_argument(
        "--epochs", type=int, help="passes over the whole training data; up to 4 times as many over a fraction"
    )
    return parser.parse_args(argv)


def commands(task: str, arguments: argparse.Namespace) -> dict[str, list]:
    """Returns a task's commands by name."""
    data, output = arguments.data, arguments.output
    if task in ("pos", "wsd"):
        files = {
            "pos": [
                "--train",
                data / "ud_ewt/en_ewt-ud-train.conllu.xz",
                "--test",
                data / "ud_ewt/en_ewt-ud-test.conllu",
            ],
            "wsd": ["--train", data / "semcor30/semcor30.tsv.xz"],
        }[task]
        probe = [sys.executable, "-m", "elmo_tf.cli", "probe", task, "--savedmodel", arguments.savedmodel]
        return {task: [*probe, *files, "--output", output / task]}
    found = {}
    for fraction in arguments.fractions:
        name = f"{task}_{100 * fraction:g}"
        common = ["--elmo", arguments.savedmodel, "--glove", data / "glove_small/glove.twitter.27B.25d.12k.txt"]
        common += ["--fraction", fraction, "--seeds", arguments.seeds, "--save", output / name]
        common += ["--mix", *arguments.mix]
        if task == "polarity":
            folder = data / "sentence_polarity"
            files = ["--class", f"pos={folder / 'rt-polarity.pos'}", "--class", f"neg={folder / 'rt-polarity.neg'}"]
            program, epochs = "sentence_classifier.py", arguments.epochs or 4
        else:
            files, program, epochs = (
                [*entities(task, data, output), "--output-mix"],
                "ner_tagger.py",
                arguments.epochs or 10,
            )
        # Less data: more passes, but fewer steps.
        epochs = round(epochs * min(4, 1 / fraction))
        found[name] = [sys.executable, ROOT / "examples" / program, *common, *files, "--epochs", epochs]
    return found


def entities(task: str, data: pathlib.Path, output: pathlib.Path) -> list:
    """Returns the options with an entity task's files; wikigold's articles are split into 8, 1 and 1 tenths."""
    if task == "wnut17":
        names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
        files = [data / "wnut17" / name for name in names]
    else:
        # Whole articles, because names recur within one.
        articles = (data / "wikigold" / "wikigold.conll.txt").read_text("utf-8").split("-DOCSTART- O\n")
        articles = [article.strip() for article in articles if article.strip()]
        order = np.random.default_rng(0).permutation(len(articles))
        files = [output / f"wikigold.{part}" for part in ("train", "dev", "test")]
        for part, places in zip(files, np.split(order, [len(order) * 8 // 10, len(order) * 9 // 10]), strict=True):
            part.write_text("\n\n".join(articles[place] for place in places) + "\n", "utf-8")
    return [word for option, path in zip(("--train", "--dev", "--test"), files, strict=True) for word in (option, path)]


def result(name: str, command: list[str], output: pathlib.Path) -> dict:
    """Returns the JSON in a command's last line, and its seconds: from its file, or by running the command."""
    path = output / f"{name}.result.json"
    if not path.exists():
        # Left by an interrupted run.
        shutil.rmtree(output / name, ignore_errors=True)
        print("$", shlex.join(command), flush=True)
        started = time.monotonic()
        lines = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        if process.returncode:
            sys.exit(process.returncode)
        values = json.loads(lines[-1])
        values |= {"seconds": round(time.monotonic() - started), "command": shlex.join(command)}
        staging.write_file(path, json.dumps(values).encode() + b"\n")
    values = json.loads(path.read_bytes())
    if values["command"] != shlex.join(command):
        sys.exit(f"--output: expected results of {shlex.join(command)}, found those of {values['command']} in {path}")
    return values


def deviation(scores: list[float]) -> float:
    """Returns the sample standard deviation of the scores; NaN for one score."""
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan")


def summary(values: dict) -> str:
    """Returns the scores of one result on a line."""
    if "scores" in values:
        return "  ".join(f"{name} {100 * next(iter(row.values())):.1f}" for name, row in values["scores"].items())
    measure = "f1" if "f1" in values else "accuracy"
    return "  ".join(
        f"{way}: {measure} {100 * np.mean(scores):.1f} +- {100 * deviation(scores):.1f}"
        for way, scores in values[measure].items()
    )


if __name__ == "__main__":
    main()
