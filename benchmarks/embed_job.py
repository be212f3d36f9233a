"""The speed of `elmo-tf embed` compared with the model alone, and whether its memory grows with the text.

    .venv/bin/python benchmarks/embed_job.py --model savedmodels/mine --input corpus.txt [--repeat 3] [--memory]

The model alone is measured twice: with unsorted batches of 32 sentences, and with the job's own batches. The job is all
of `elmo-tf embed` from text to a finished file on disk, except for loading the model. All take turns in one process,
and the best time of each is reported. For memory, the command runs in new processes, on the text and on ten times the
text. Prints a table and, as the last line, JSON.
"""

import argparse
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks.measuring import timed
from elmo_tf import embedder, engines, sources
from elmo_tf.cli import jobs

ROOT = pathlib.Path(__file__).parents[1]
BATCH_SIZE = 32
# The peak as the process itself sees it: what the parent sees of a child begins with the parent's own peak.
COMMAND = """
import pathlib, re, sys
from elmo_tf import cli
status = cli.main(sys.argv[1:])
print(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
sys.exit(status)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, metavar="DIR", help="a source of a model")
    parser.add_argument("--input", required=True, metavar="FILE", help="UTF-8 text, one tokenized sentence per line")
    parser.add_argument("--sentences", type=int, default=512, metavar="N", help="sentences to embed (512)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (3)")
    parser.add_argument("--layers", default="all", choices=embedder.LAYERS, help="as in `elmo-tf embed` (all)")
    parser.add_argument("--memory", action="store_true", help="also measure memory, with ten times the text")
    arguments = parser.parse_args()
    logging.getLogger("elmo_tf").setLevel(logging.WARNING)

    with open(arguments.input, "rb") as file:
        lines = [line for line, _ in zip(file, range(arguments.sentences), strict=False)]
    sentences = [line.split() for line in lines]
    num_tokens = sum(map(len, sentences))
    source = sources.find(arguments.model)
    engine = engines.make(source, "tensorflow")
    engines.make = lambda *_: engine  # the runs of the job share one loaded model
    alone = embedder.Embedder(source, engine="tensorflow")
    rows: dict[str, list[np.ndarray]] = {"model alone": [], "its batches": [], "hdf5": [], "tfrecord": []}
    with tempfile.TemporaryDirectory(prefix="elmo_tf-embed-") as folder:
        text = pathlib.Path(folder, "text.txt")
        text.write_bytes(b"".join(lines))
        options = ["--model", source.name, "--input", str(text), f"--layers={arguments.layers}"]
        run_alone(engine, sentences[:BATCH_SIZE])
        for number in range(arguments.repeat):
            rows["model alone"].append(timed(lambda: run_alone(engine, sentences)))
            rows["its batches"].append(timed(lambda: run_batches(alone, sentences, arguments.layers)))
            for kind in ("hdf5", "tfrecord"):
                output = pathlib.Path(folder, f"{kind}-{number}")
                job = [*options, f"--output={output}", f"--format={kind}"]
                rows[kind].append(timed(lambda job=job: jobs.run("embed", job)))
        multiples = (1, 10) if arguments.memory else ()
        peaks = [peak(folder, options[:3], lines * times, arguments.layers) for times in multiples]
    report(num_tokens, rows, peaks)


def run_alone(engine: engines.Engine, sentences: list[list[bytes]]) -> None:
    for start in range(0, len(sentences), BATCH_SIZE):
        engine.vectors(sentences[start : start + BATCH_SIZE], mixed=False)


def run_batches(model: embedder.Embedder, sentences: list[list[bytes]], layers: str) -> None:
    for _ in model.embed(sentences, layers):
        pass


def peak(folder: str, options: list[str], lines: list[bytes], layers: str) -> int:
    """Returns the peak memory of the command in MB."""
    text, output = (pathlib.Path(folder, f"{name}-{len(lines)}") for name in ("text", "vectors"))
    text.write_bytes(b"".join(lines))
    arguments = ["embed", *options, str(text), f"--layers={layers}", "--output", str(output)]
    done = subprocess.run([sys.executable, "-c", COMMAND, *arguments], cwd=ROOT, check=True, capture_output=True)
    output.unlink()
    return int(done.stdout) // 1024


def report(num_tokens: int, rows: dict[str, list[np.ndarray]], peaks: list[int]) -> None:
    """Prints the table and the line of JSON."""
    best = {name: list(map(min, zip(*times, strict=True))) for name, times in rows.items()}
    wall, cpu = best["model alone"]
    print(f"{'':<14}{'tokens/s':>10}{'of alone':>10}{'of its CPU time':>18}")
    for name, (seconds, used) in best.items():
        print(f"{name:<14}{num_tokens / seconds:>10,.0f}{wall / seconds:>10.2f}{cpu / used:>18.2f}")
    result = {
        "tokens": num_tokens,
        "tokens_per_second": round(num_tokens / best["hdf5"][0]),
        "share_of_model_alone": {name: round(wall / best[name][0], 3) for name in ("hdf5", "tfrecord")},
        "share_of_cpu_time": {name: round(cpu / best[name][1], 3) for name in ("hdf5", "tfrecord")},
    }
    if peaks:
        print(f"peak memory: {peaks[0]:,} MB, with ten times the text {peaks[1]:,} MB")
        result["peak_rss_mb"] = peaks
    print(json.dumps(result))


if __name__ == "__main__":
    main()
