"""How long a worker of `preprocess --shuffle` waits for a remote store to gather one shard.

    .venv/bin/python benchmarks/shuffle_store.py [--tasks 1000] [--milliseconds 20]

The store is simulated: each request takes the given time. Every task of the first phase has left one record for each of
as many shards. Prints the seconds and requests of a worker that gathers a shard; the last line is JSON.
"""

import argparse
import itertools
import json
import pathlib
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from elmo_tf.beam import output_folder  # noqa: E402
from elmo_tf.beam.preprocess import encoder, shards, shuffle  # noqa: E402
from elmo_tf.corpus import sentences  # noqa: E402
from elmo_tf.files import stores  # noqa: E402

FRAME = bytes(16)  # a record without data
SPLIT = "train"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000, metavar="N", help="tasks, and shards (1,000)")
    parser.add_argument("--milliseconds", type=float, default=20, metavar="MS", help="of a request to the store (20)")
    arguments = parser.parse_args()
    count, requests = arguments.tasks, itertools.count()
    index = np.zeros((count, len(encoder.COUNTED) + 2), np.int64)
    index[:, -2:] = np.arange(count)[:, None] * len(FRAME) + (0, len(FRAME))
    contents = {".run": FRAME * count, ".index": index.tobytes()}

    def read_range(path: str, start: int, end: int) -> bytes:
        next(requests)
        time.sleep(arguments.milliseconds / 1000)
        return contents[path[path.rindex(".") :]][start:end]

    stores.read_range = read_range
    folders = {SPLIT: output_folder.Folder("simulated://bucket/records", "0" * 16, "run")}
    output = shards.Output(folders, sentences.Settings("whitespace", sentences.SENTENCE), count, 1)
    gather = shuffle.Gather(output.folder, True, output, count, count)
    started_at = time.monotonic()
    records, _ = gather._bucket(SPLIT, count // 2, [index[0].nbytes] * count)
    measured = {
        "tasks": count,
        "milliseconds": arguments.milliseconds,
        "seconds": round(time.monotonic() - started_at, 1),
        "requests": next(requests),
    }
    assert records == [FRAME] * count
    for name, value in measured.items():
        print(f"{name:<16} {value}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
