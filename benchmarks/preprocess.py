"""The speed of `elmo-tf preprocess`, compared with one Python process that only counts the words.

    .venv/bin/python benchmarks/preprocess.py --input corpus.txt [--workers 2] [--repeat 3]

The two take turns, `--repeat` times each, in new processes; the best times, start-up included, are reported. Prints a
table and, as the last line, JSON.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
PYTHON_PASS = """
import collections, sys
words = collections.Counter()
with open(sys.argv[1], "rb") as file:
    for line in file:
        words.update(line.split())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True, metavar="FILE", help="UTF-8 text, one tokenized sentence per line")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes of the Beam job (1)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each (1)")
    parser.add_argument("--min-count", type=int, default=3, metavar="N", help="of the vocabulary (3)")
    arguments = parser.parse_args()

    several = [f"--direct_num_workers={arguments.workers}", "--direct_running_mode=multi_processing"]
    options = several if arguments.workers > 1 else []
    passes, jobs = [], []
    with tempfile.TemporaryDirectory(prefix="elmo_tf-preprocess-") as folder:
        for number in range(arguments.repeat):
            passes.append(timed([sys.executable, "-c", PYTHON_PASS, arguments.input]))
            output = pathlib.Path(folder, str(number))
            command = [sys.executable, "-m", "elmo_tf.cli", "preprocess", "--input", arguments.input]
            jobs.append(timed([*command, f"--output={output}", f"--min-count={arguments.min_count}", *options]))
        info = json.loads((output / "info.json").read_text())
    # ru_maxrss: of the largest process, in kB.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    report(
        {
            "tokens": info["tokens"],
            "workers": arguments.workers,
            "seconds": round(min(jobs), 2),
            "tokens_per_second": round(info["tokens"] / min(jobs)),
            "bytes_ratio": round(info["bytes"] / sum(file["bytes"] for file in info["inputs"]), 3),
            "peak_rss_mb": round(peak),
            "python_pass_seconds": round(min(passes), 2),
            "ratio_to_python_pass": round(min(jobs) / min(passes), 2),
        }
    )


def timed(command: list[str]) -> float:
    """Returns the seconds that a command took."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True)
    return time.perf_counter() - start


def report(measured: dict[str, float]) -> None:
    """Prints a table and the same values as one line of JSON."""
    for name, value in measured.items():
        print(f"{name:22} {value:>14,}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
