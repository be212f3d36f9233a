"""Embedding with bfloat16 products compared with float32: speed, and the cosines of each layer's vectors.

    python benchmarks/precision.py --model english --input FILE
    python benchmarks/precision.py --preset original --input FILE

With `--preset`, the network has random weights. Embeds the text with `elmo_tf.load(...).encode`, which sorts by length,
then its first sentences one at a time. The precisions take turns; figures are medians of the rounds. Prints a table and
a line of JSON.
"""

import argparse
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks.measuring import report, timed
from elmo_tf.embedder import Embedder, Encoded
from elmo_tf.published import weights
from elmo_tf.sources import PRECISIONS

_ALONE = 20  # sentences that are embedded one at a time


def load(arguments: argparse.Namespace) -> list[Embedder]:
    """Returns the model in each precision."""
    if arguments.preset is None:
        return [elmo_tf.load(arguments.model, precision=precision) for precision in PRECISIONS]
    with tempfile.TemporaryDirectory() as folder:
        bilm = elmo_tf.BiLM(elmo_tf.preset(arguments.preset).model)
        files = weights.dump(bilm, pathlib.Path(folder, "files"))
        return [elmo_tf.load(files, precision=precision) for precision in PRECISIONS]


def lowest_cosines(exact: list[Encoded], rounded: list[Encoded]) -> np.ndarray:
    """Returns the lowest cosine of a token's vectors in each layer."""
    pairs = [np.concatenate([text.vectors for text in encoded], 1).astype(np.float64) for encoded in (exact, rounded)]
    norms = [np.linalg.norm(vectors, axis=-1) for vectors in pairs]
    return ((pairs[0] * pairs[1]).sum(-1) / (norms[0] * norms[1])).min(-1)


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--model", help="as for elmo_tf.load, but no SavedModel")
    model.add_argument("--preset", help="random weights of this size")
    parser.add_argument("--input", required=True, metavar="FILE", help="one sentence per line")
    parser.add_argument("--sentences", type=int, default=500, help="how many of the text, from its beginning (500)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements, of which the median counts (3)")
    arguments = parser.parse_args(argv)
    lines = pathlib.Path(arguments.input).read_text("utf-8").split("\n")
    texts = [line for line in lines if line.split()][: arguments.sentences]
    models = load(arguments)
    cosines = lowest_cosines(*(embedder.encode(texts, layers="all") for embedder in models))
    figures = {f"lowest_cosine_layer_{number}": float(cosine) for number, cosine in enumerate(cosines)}
    ways = {"sorted": [texts], "alone": [[text] for text in texts[:_ALONE]]}
    for way, batches in ways.items():
        num_tokens = sum(len(text.split()) for batch in batches for text in batch)
        seconds = [
            [timed(lambda: [embedder.encode(batch) for batch in batches])[0] for embedder in models]  # noqa: B023
            for _ in range(arguments.rounds)
        ]
        speeds = num_tokens / np.median(seconds, 0)
        figures |= {f"{way}_{name}_tokens_per_second": speed for name, speed in zip(PRECISIONS, speeds, strict=True)}
        figures[f"{way}_bfloat16_times_as_fast"] = speeds[1] / speeds[0]
    report(figures)


if __name__ == "__main__":
    main()
