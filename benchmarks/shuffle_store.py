"""How long a worker of `preprocess --shuffle` waits for a remote store to gather one shard.

    .venv/bin/python benchmarks/shuffle_store.py [--tasks 1000] [--milliseconds 20]

The store is the simulated one of `driver_scale.py`. Every task of the first phase has left one record for each of as
many shards. Prints the seconds and requests of a worker that gathers a shard; the last line is JSON.
"""

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Callable

import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from driver_scale import FOLDER, STORE  # noqa: E402

from elmo_tf.beam.preprocess import shards, shuffle  # noqa: E402
from elmo_tf.beam.running import journal  # noqa: E402

FRAME = bytes(16)  # a record without data
SPLIT = "train"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000, metavar="N", help="tasks, and shards (1,000)")
    parser.add_argument("--milliseconds", type=float, default=20, metavar="MS", help="of a question to the store (20)")
    arguments = parser.parse_args()
    num_tasks, notes = arguments.tasks, journal.Journal(FOLDER, "run")

    index = np.zeros((num_tasks, len(shards.COUNTED) + 2), np.int64)
    index[:, -2:] = np.arange(num_tasks)[:, None] * len(FRAME) + (0, len(FRAME))
    results = []
    for number in range(num_tasks):
        files = {"run": FRAME * num_tasks, "index": index.tobytes()}
        paths = {shuffle._path(notes, number, SPLIT, ending): content for ending, content in files.items()}
        STORE.files |= paths
        results.append({"files": {path: len(content) for path, content in paths.items()}})
    STORE.files[notes.results_path(shuffle.Scatter.phase)] = json.dumps(results).encode()
    STORE.seconds = arguments.milliseconds / 1000

    gather = shuffle.Gather(notes, {SPLIT: FOLDER}, 0, num_tasks, num_tasks, num_tasks)
    gather.setup()
    (found, _), worker = _timed(lambda: gather._bucket(SPLIT, num_tasks // 2))
    assert found == [FRAME] * num_tasks
    measured = {"tasks": num_tasks, "milliseconds": arguments.milliseconds, "worker": worker}
    for name, value in measured.items():
        print(f"{name:<16} {value}")
    print(json.dumps(measured))


def _timed(do: Callable) -> tuple:
    """Returns what a function returns, and its seconds and questions."""
    STORE.questions.clear()
    start = time.monotonic()
    found = do()
    return found, {"seconds": round(time.monotonic() - start, 1), "questions": sum(STORE.questions.values())}


if __name__ == "__main__":
    main()
