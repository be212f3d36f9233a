"""The probes of one model in one table.

    python benchmarks/probes.py --model DIR --data DIR --output DIR

--data is a folder with ud_ewt and semcor30, see DATA.md. Runs `elmo-tf probe` as a user would, and prints
each command, a table and a line of JSON. Every result is kept in --output; an interrupted run resumes. For gains in
tasks, see `paper_table.py`.
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

from benchmarks.measuring import cpu_seconds
from elmo_tf.files import stores

FILES = {
    "pos": {"train": "ud_ewt/en_ewt-ud-train.conllu.xz", "test": "ud_ewt/en_ewt-ud-test.conllu"},
    "wsd": {"train": "semcor30/semcor30.tsv.xz"},
}

TIMES = ("seconds", "cpu_seconds", "command")  # what `result` adds to a command's own values


def main(argv: list[str] | None = None) -> None:
    """Runs the chosen probes that have no result yet, and prints all results."""
    arguments = parse_arguments(argv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    results = {}
    for probe in arguments.only:
        command = [sys.executable, "-m", "elmo_tf.cli", "probe", probe, "--model", str(arguments.model)]
        for option, name in FILES[probe].items():
            command += [f"--{option}", str(arguments.data / name)]
        command += ["--json", "--output", str(arguments.output / probe)]
        results[probe] = result(probe, command, arguments.output)
    print()
    for name, scored in results.items():
        print(f"{name:20} {scored['seconds']:7.0f} s  {summary(scored)}")
    print(json.dumps(results))


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=pathlib.Path, required=True, help="a version's folder")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for results")
    parser.add_argument("--only", nargs="+", choices=FILES, default=list(FILES), metavar="PROBE", help=", ".join(FILES))
    return parser.parse_args(argv)


def tenths(articles: list[str]) -> dict[str, list[str]]:
    """Returns eight tenths of a list to train on, one to choose by and one to test on, in a random order."""
    order = np.random.default_rng(0).permutation(len(articles))
    parts = np.split(order, [len(order) * 8 // 10, len(order) * 9 // 10])
    named = zip(("train", "dev", "test"), parts, strict=True)
    return {name: [articles[number] for number in part] for name, part in named}


def result(name: str, command: list[str], output: pathlib.Path, resumes: bool = False) -> dict:
    """Returns the JSON in a command's last line and its times: from its file, or by running the command.

    `seconds` are the command's own if the JSON has them, else those of the process; `cpu_seconds` are the process's.

    Args:
        name: of the result.
        command: what to run.
        output: a folder for results.
        resumes: whether the command resumes what an interrupted run left in the folder of its name.
    """
    path = output / f"{name}.result.json"
    if not path.exists():
        if not resumes:
            # Left by an interrupted run.
            shutil.rmtree(output / name, ignore_errors=True)
        print("$", shlex.join(command), flush=True)
        started, used = time.monotonic(), cpu_seconds()
        lines = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        if process.returncode:
            sys.exit(process.returncode)
        printed = json.loads(lines[-1])
        times = {"seconds": round(time.monotonic() - started), "cpu_seconds": round(cpu_seconds() - used)}
        # A command that resumes knows the seconds of its earlier runs.
        kept = times | printed | {"command": shlex.join(command)}
        stores.write(path, json.dumps(kept).encode() + b"\n")
    kept = json.loads(path.read_bytes())
    # Without its first word, because another clone has another interpreter.
    if shlex.split(kept["command"])[1:] != command[1:]:
        sys.exit(f"--output: expected results of {shlex.join(command)}, found those of {kept['command']} in {path}")
    return kept


def summary(scored: dict) -> str:
    """Returns the scores of one result on a line."""
    return "  ".join(f"{name} {100 * next(iter(row.values())):.1f}" for name, row in scored["scores"].items())


if __name__ == "__main__":
    main()
