"""Words a minute of `Embedder.surprisal`.

    OPENBLAS_NUM_THREADS=1 python benchmarks/surprisal_speed.py --input FILE [--model english]

--input is text, a sentence per line, blank lines between passages. The second of two passes counts: by the clock, and
in CPU time of all threads.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import measuring

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--input", type=pathlib.Path, required=True, help="text, a sentence per line")
parser.add_argument("--model", default="english", help="a source with a softmax")
arguments = parser.parse_args()
model, lines = elmo_tf.load(arguments.model), arguments.input.read_text("utf-8").splitlines()
num_words = sum(len(line.split()) for line in lines)
figures = {"words": num_words}
for context in ("sentence", "passage"):
    for _ in range(2):
        seconds, cpu_seconds = measuring.timed(lambda: model.surprisal(lines, context))  # noqa: B023 - called at once
    figures |= {f"{context}: words a minute": 60 * num_words / seconds}
    figures |= {f"{context}: words a minute of CPU time": 60 * num_words / cpu_seconds}
measuring.report(figures)
