"""How fast records become training windows: tokens per second of one process on one core, and its peak memory.

    python benchmarks/input_pipeline.py
    python benchmarks/input_pipeline.py --input corpus.txt
    python benchmarks/input_pipeline.py --data data/train

Without --data, `elmo-tf preprocess` first makes records of --input, or of generated text, in a temporary folder. Counts
the tokens of the windows, without padding and once for both directions. A pass reads all records in shuffled order,
checksums included, in a new process on one core; the result is the CPU time of the best of --repeat passes. To tell a
slow machine from slow code, the same process also times an empty Python loop over as many numbers, and a copy of as
many bytes as the windows have. Prints a table and a line of JSON; takes about half a minute with generated text.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from elmo_tf.records import record_folder
from elmo_tf.records.windows import Windows

SEED = 1


def write_text(path: pathlib.Path, num_tokens: int) -> None:
    """Writes sentences of words with frequencies and lengths similar to those of English."""
    random = np.random.default_rng(SEED)
    letters = np.array(list("etaoinshrdlucmfwygpb"))
    lengths = np.minimum(1 + random.poisson(1 + np.log10(np.arange(1, 200_001)) * 1.4), 40)
    words = np.array(["".join(random.choice(letters, length)) for length in lengths], object)
    with open(path, "w", encoding="utf-8") as file:
        while num_tokens > 0:
            lengths = 1 + random.negative_binomial(2, 0.09, 10_000)
            # The frequency of the n-th word is proportional to 1 / n.
            ids = (len(words) ** random.random(lengths.sum())).astype(int) - 1
            for sentence in np.split(words[ids], np.cumsum(lengths)[:-1]):
                file.write(" ".join(sentence) + "\n")
            num_tokens -= len(ids)


def preprocess(source: str | None, num_tokens: int, folder: pathlib.Path) -> pathlib.Path:
    """Returns a folder of records made by `elmo-tf preprocess`."""
    if source is None:
        source = str(folder / "text.txt")
        write_text(pathlib.Path(source), num_tokens)
    command = [sys.executable, "-m", "elmo_tf.cli", "preprocess", "--min-count", "3"]
    subprocess.run([*command, "--input", source, "--output", str(folder / "records")], check=True)
    return folder / "records"


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Reads the records once, in this process."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    records = record_folder.open_folder(arguments.data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, wall = time.process_time(), time.perf_counter()
    tokens, window = 0, None
    for window, _ in Windows(records, arguments.batch_size, arguments.unroll_steps, seed=SEED, epochs=1):
        tokens += int(window.mask.sum())
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    for _ in range(tokens):
        pass
    python_seconds = time.process_time() - start
    start = time.process_time()
    for _ in range(-(-tokens // window.mask.size)):
        [array.copy() for array in window]
    return {
        "tokens": tokens,
        "seconds": seconds,
        "wall_seconds": wall,
        "python_pass_seconds": python_seconds,
        "copy_seconds": time.process_time() - start,
        "peak_rss_mb": peak / 1024,
        "rss_before_mb": before / 1024,
        "records_mb": sum(shard.bytes for shard in records.info.shards) / 1e6,
    }


def in_a_process(arguments: argparse.Namespace, data: pathlib.Path) -> dict[str, float]:
    """Returns the result of `measure` in a new process."""
    command = [sys.executable, __file__, "--measure", "--data", str(data)]
    command += ["--batch-size", str(arguments.batch_size), "--unroll-steps", str(arguments.unroll_steps)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measures, prints a table and a line of JSON."""
    parser = argparse.ArgumentParser(description="Measures how fast records become training windows.")
    parser.add_argument("--data", help="records of elmo-tf preprocess (default: made from --input)")
    parser.add_argument("--input", help="text to make records from (default: generated)")
    parser.add_argument("--tokens", type=int, default=3_000_000, help="of the generated text (default: 3,000,000)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--unroll-steps", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3, help="passes, each in a process of its own (default: 3)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments)))
        return
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or preprocess(arguments.input, arguments.tokens, pathlib.Path(folder))
        passes = [in_a_process(arguments, data) for _ in range(arguments.repeat)]
    print(f"{'pass':>4} {'CPU s':>7} {'wall s':>7} {'tokens/s':>10} {'x Python pass':>13} {'x copy':>6} {'peak MB':>8}")
    for number, one in enumerate(passes, 1):
        one["tokens_per_second"] = one["tokens"] / one["seconds"]
        one["ratio_to_python_pass"] = one["seconds"] / one["python_pass_seconds"]
        one["ratio_to_copy"] = one["seconds"] / one["copy_seconds"]
        print(
            f"{number:4} {one['seconds']:7.2f} {one['wall_seconds']:7.2f} {one['tokens_per_second']:10,.0f} "
            f"{one['ratio_to_python_pass']:13.1f} {one['ratio_to_copy']:6.1f} {one['peak_rss_mb']:8.0f}"
        )
    best = min(passes, key=lambda one: one["seconds"])
    print(json.dumps({name: round(value, 3) for name, value in best.items()}))


if __name__ == "__main__":
    main()
