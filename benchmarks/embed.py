"""How fast a SavedModel embeds sentences, compared with plain matrix products in the same process.

    python benchmarks/embed.py --model savedmodels/NAME/1 --input FILE
    python benchmarks/embed.py --preset original

With `--preset`, a model with random weights is exported first. Without `--input`, the text is generated, with words as
frequent as in real text. Calls the signature `default` on batches in text order; with `--only OUTPUT`, in a
`tf.function` that returns only this output, so that TensorFlow prunes the rest.

Prints a table and a line of JSON. `tokens_per_second` counts real tokens. `share_of_limit` is the time that plain
products would need for these tokens (each distinct token of a batch encoded once), divided by the time taken;
`share_of_limit_cpu` is the same in CPU time, for busy machines. `share_of_bandwidth` is the time needed to read the
recurrent weights from memory at every time step, divided by the time taken: the limit of small batches. Products and
batches take turns, so that other work affects both; figures are medians of the rounds. `peak_rss_mb` includes
TensorFlow and 50 MB for the plain product.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import arithmetic, zipf_text
from benchmarks.measuring import report, timed
from elmo_tf import config as config_lib
from elmo_tf.text import char_ids as char_ids_lib

_PRODUCT = 2048  # rows and columns of the bare product
_READ = 100_000_000  # numbers that are read to measure the memory's bandwidth


def make_model(preset: str, folder: str) -> None:
    """Exports a network of random weights to `folder/1`."""
    from elmo_tf.model.fast import BiLM  # noqa: PLC0415
    from elmo_tf.savedmodel import writing  # noqa: PLC0415 - only this process, which is not the one measured

    config = config_lib.preset(preset)
    writing.export(BiLM(config.model), config, folder)


def read_batches(arguments: argparse.Namespace) -> list[list[bytes]]:
    """Returns the sentences to embed, in batches."""
    if arguments.input is None:
        lines = [line.encode() for line in zipf_text.sentences(16_000, 40 * arguments.sentences)]
    else:
        lines = pathlib.Path(arguments.input).read_bytes().split(b"\n")
    sentences = [line for line in lines if line.split()][: arguments.sentences]
    if arguments.sorted:
        sentences.sort(key=lambda line: len(line.split()))
    size = arguments.batch_size
    return [sentences[start : start + size] for start in range(0, len(sentences), size)]


def arithmetic_of(model: config_lib.ModelConfig, batch: list[bytes]) -> tuple[float, float]:
    """Returns a batch's floating-point operations, and how many bytes of recurrent weights it reads."""
    words = [line.split() for line in batch]
    distinct = char_ids_lib.encode_tokens(sorted({word for line in words for word in line}))
    encoder = arithmetic.per_window(model) * arithmetic.num_windows(distinct)
    encoder += arithmetic.per_distinct_token(model) * len(distinct)
    num_read = 2 * model.lstm.num_layers * arithmetic.recurrent_weights(model) * max(map(len, words))
    return 2.0 * (encoder + 2 * arithmetic.per_token(model) * sum(map(len, words))), 4.0 * num_read


def bandwidth() -> float:
    """Returns the best rate of reading memory, in bytes per second."""
    numbers = tf.zeros((_READ,))
    read = tf.function(lambda: tf.reduce_max(numbers))
    read()
    return 4 * _READ / min(timed(lambda: read().numpy())[0] for _ in range(5))


def memory_mb(name: str) -> float:
    """Returns a figure of this process's memory, `VmRSS` or `VmHWM` (the peak), in units of 2^20 bytes."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def measure(savedmodel: pathlib.Path, batches: list[list[bytes]], rounds: int, only: str | None) -> dict[str, float]:
    """Returns the figures of a model: with all outputs of its signature, or with only one."""
    config = json.loads((savedmodel / "assets" / "config.json").read_text())
    model = config_lib.from_dict(config["model"], config_lib.ModelConfig)
    started = time.perf_counter()
    loaded = tf.saved_model.load(str(savedmodel))  # has the variables
    signature = loaded.signatures["default"]
    figures = {"load_seconds": time.perf_counter() - started, "loaded_rss_mb": memory_mb("VmRSS")}
    inputs = [tf.constant(batch) for batch in batches]
    embed = signature if only is None else tf.function(lambda strings: signature(strings=strings)[only])
    embed(strings=inputs[0])  # prepares the graph
    matrix = tf.random.stateless_uniform((_PRODUCT, _PRODUCT), (0, 0))
    product = tf.function(lambda: tf.linalg.matmul(matrix, matrix)[0, 0])
    product()
    products, embeddings = [], []
    for _ in range(rounds):
        turns = [(timed(lambda: product().numpy()), timed(lambda: embed(strings=batch))) for batch in inputs]  # noqa: B023
        products.append(np.mean([turn[0] for turn in turns], 0))
        embeddings.append(np.sum([turn[1] for turn in turns], 0))
    figures["peak_rss_mb"] = memory_mb("VmHWM")
    flops, num_bytes = np.sum([arithmetic_of(model, batch) for batch in batches], 0)
    num_tokens = sum(len(line.split()) for batch in batches for line in batch)
    products, embeddings = np.array(products), np.array(embeddings)
    shares = np.median(flops / (2 * _PRODUCT**3) * products / embeddings, 0)
    seconds = float(np.median(embeddings[:, 0]))
    gb_per_second = bandwidth() / 1e9
    return {
        "tokens_per_second": num_tokens / seconds,
        "share_of_limit": shares[0],
        "share_of_limit_cpu": shares[1],
        "share_of_bandwidth": num_bytes / gb_per_second / 1e9 / seconds,
        "gemm_gflops": 2 * _PRODUCT**3 / float(np.median(products[:, 0])) / 1e9,
        "memory_gb_per_second": gb_per_second,
        **figures,
    }


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say which model embeds which text."""
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--model", metavar="DIR", help="a version's folder")
    model.add_argument("--preset", choices=config_lib.PRESETS, help="random weights of this size")
    parser.add_argument("--input", metavar="FILE", help="one sentence per line (default: generated text)")
    parser.add_argument("--sentences", type=int, default=256, help="how many of the text, from its beginning (256)")
    parser.add_argument("--batch-size", type=int, default=32, help="sentences per call (32)")
    parser.add_argument("--sorted", action="store_true", help="batches of about equal lengths")


def savedmodel_of(arguments: argparse.Namespace, folder: str) -> str:
    """Returns the model's folder; with `--preset`, a new model below `folder`, written by a process of its own."""
    if arguments.preset is None:
        return arguments.model
    code = "import sys; from benchmarks import embed; embed.make_model(*sys.argv[1:])"
    made = [arguments.preset, folder]
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", code, *made], check=True, env=environment)
    return f"{folder}/1"


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3, help="measurements, of which the median counts (3)")
    parser.add_argument("--only", metavar="OUTPUT", help="one of the signature's outputs (default: all)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        batches = read_batches(arguments)
        model = pathlib.Path(savedmodel_of(arguments, folder))
        figures = measure(model, batches, arguments.rounds, arguments.only)
    report(figures)


if __name__ == "__main__":
    main()
