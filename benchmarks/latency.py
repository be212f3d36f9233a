"""The latency of one sentence, warm: `Embedder.encode` with both engines, a SavedModel and the Keras layer.

    python benchmarks/latency.py --model english --tokens 20

The SavedModel is exported first; its signature is `default`. They take turns, so that other work affects all. Each
call has another sentence of generated text, with words as frequent as in real text: `encode` remembers the vectors of
tokens that it has seen. Prints the 50th and the 99th percentile of each in milliseconds, and a line of JSON.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import zipf_text
from benchmarks.measuring import report
from elmo_tf import sources
from elmo_tf.config import Config
from elmo_tf.savedmodel import writing

WARM_UP = 10  # calls that are not counted


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="english", help="as for elmo_tf.load (english)")
    parser.add_argument("--tokens", type=int, default=20, help="of the sentence (20)")
    parser.add_argument("--calls", type=int, default=300, help="of each way (300)")
    arguments = parser.parse_args(argv)
    numpy, tensorflow = (elmo_tf.load(arguments.model, engine=engine) for engine in ("numpy", "tensorflow"))
    layer = elmo_tf.ELMo(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        bilm = sources.network(arguments.model, trainable=True)
        path = writing.export(bilm, Config(model=bilm.config), pathlib.Path(folder, "model"))
        signature = tf.saved_model.load(str(path)).signatures["default"]
    tokens, calls = arguments.tokens, WARM_UP + arguments.calls
    words = " ".join(zipf_text.sentences(20_000, tokens * calls + 50)).split()
    sentences = [" ".join(words[start : start + tokens]) for start in range(0, tokens * calls, tokens)]
    ways = {
        "numpy": lambda text: numpy.encode([text])[0].vectors,
        "tensorflow": lambda text: tensorflow.encode([text])[0].vectors,
        "savedmodel": lambda text: signature(strings=tf.constant([text]))["elmo"].numpy()[0],
        "layer": lambda text: layer(tf.constant([text])).numpy()[0],
    }
    for way in ways.values():
        np.testing.assert_allclose(way(sentences[0]), ways["numpy"](sentences[0]), atol=1e-4)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for sentence in sentences:
        for name, way in ways.items():
            started_at = time.perf_counter()
            way(sentence)
            seconds[name].append(time.perf_counter() - started_at)
    seconds = {name: times[WARM_UP:] for name, times in seconds.items()}
    report(
        {f"{name}_p{p}_ms": 1000 * float(np.percentile(times, p)) for name, times in seconds.items() for p in (50, 99)}
    )


if __name__ == "__main__":
    main()
