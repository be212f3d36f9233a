"""How long a sentence takes where other processes use the same cores, as in a web server.

    python benchmarks/busy.py
    python benchmarks/busy.py --ways savedmodel

Each process loads the model and encodes sentences of 22 tokens, one after the other, in generated text with words as
frequent as in real text. `one thread` is the same in processes whose libraries may use a single thread.
Prints milliseconds a sentence over all processes of a row: the median, the 95th percentile, and the CPU time.
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import zipf_text
from benchmarks.measuring import aligned

# How many processes encode, and how many others are busy.
SITUATIONS = {
    "alone": (1, 0),
    "beside one busy process": (1, 1),
    "beside four busy processes": (1, 4),
    "two processes": (2, 0),
    "four processes": (4, 0),
}
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")
WAYS = ("numpy", "tensorflow", "savedmodel")
TOKENS, WARM_UP = 22, 20


def encode(way: str, model: str, calls: int, seed: int) -> None:
    """Encodes sentences when told so by a line on stdin; prints the seconds of each, and then the CPU seconds."""
    words = " ".join(zipf_text.sentences(20_000, TOKENS * (WARM_UP + calls) + 50, seed)).split()
    sentences = [" ".join(words[start : start + TOKENS]) for start in range(0, TOKENS * (WARM_UP + calls), TOKENS)]
    if way == "savedmodel":
        import tensorflow as tf  # noqa: PLC0415 - the other processes do not use it

        loaded = tf.saved_model.load(model)
        signature = loaded.signatures["default"]

        def call(sentence: str) -> object:
            return signature(tf.constant([sentence]))["elmo"].numpy()
    else:
        import elmo_tf  # noqa: PLC0415 - as above

        embedder = elmo_tf.load(model, engine=way)

        def call(sentence: str) -> object:
            return embedder.encode([sentence])

    for sentence in sentences[:WARM_UP]:
        call(sentence)
    print("ready", flush=True)
    sys.stdin.readline()
    times, cpu = [time.perf_counter()], time.process_time()
    for sentence in sentences[WARM_UP:]:
        call(sentence)
        times.append(time.perf_counter())
    print(*np.diff(times), time.process_time() - cpu, flush=True)
    sys.stdin.readline()  # the others go on meanwhile, so that all have the same company


def run(way: str, model: str, calls: int, situation: str, environment: dict[str, str]) -> tuple[str, str, str]:
    """Returns the median, the 95th percentile and the CPU time in milliseconds a sentence."""
    num_encoding, num_busy = SITUATIONS[situation]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(num_busy)]
    commands = [[sys.executable, __file__, "--encode", way, model, str(calls), str(n)] for n in range(num_encoding)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": os.environ | environment}
    processes = [subprocess.Popen(command, **pipes) for command in commands]
    try:
        for process in processes:
            process.stdout.readline()
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        printed = [[1000 * float(seconds) for seconds in process.stdout.readline().split()] for process in processes]
    finally:
        for process in (*busy, *processes):
            process.kill()
            process.wait()
    milliseconds = [call for line in printed for call in line[:-1]]
    cpu = sum(line[-1] for line in printed) / len(milliseconds)
    return tuple(f"{value:.1f}" for value in (*np.percentile(milliseconds, (50, 95)), cpu))


def main(argv: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="english", help="as for elmo_tf.load (english)")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS, help="what encodes (all)")
    parser.add_argument("--situations", nargs="+", default=list(SITUATIONS), choices=SITUATIONS, help="(all)")
    parser.add_argument("--calls", type=int, default=200, help="sentences of each process (200)")
    parser.add_argument("--encode", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.encode:
        way, model, calls, seed = arguments.encode
        encode(way, model, int(calls), int(seed))
        return
    rows = [("way", "situation", "", "median ms", "p95 ms", "CPU ms")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = temporary + "/model"
        models = dict.fromkeys(WAYS, arguments.model)
        if "savedmodel" in arguments.ways:
            importing = [sys.executable, "-m", "elmo_tf.cli", "import", arguments.model, "--output", folder]
            subprocess.run(importing, check=True, stdout=subprocess.DEVNULL)
            models["savedmodel"] = folder + "/1"
        for way, situation in itertools.product(arguments.ways, arguments.situations):
            for name, environment in (("", {}), ("one thread", ONE_THREAD)):
                row = way, situation, name, *run(way, models[way], arguments.calls, situation, environment)
                rows.append(row)
                print(*row, sep="\t", file=sys.stderr)
    print(aligned(rows))


if __name__ == "__main__":
    main()
