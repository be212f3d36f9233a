"""Several workers on one machine: generated text, records, training, checkpoints, evaluations.

    .venv/bin/python benchmarks/several_workers.py [--workers 2] [--replicas 2] [--preset tiny] [--vocab-size 793471]
        [--steps 20] [--batch-size 4] [--set KEY=VALUE]

Each worker is a process with the given number of replicas, on logical CPUs; they find each other by `TF_CONFIG`. There
are checkpoints and evaluations after half of the steps and at the end. Prints the peak memory of each process and, as
the last line, JSON with the median time of a step without a checkpoint. All processes share this machine's cores, so
the time says little about several machines. `--child` is for the processes that it starts.
"""

import argparse
import json
import logging
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import zipf_text
from elmo_tf import config as config_lib
from elmo_tf.training import loop, workers


def use_cpus(count: int) -> None:
    """Makes each worker use `count` logical CPUs; by default, TensorFlow uses one."""
    from tensorflow.python.distribute import collective_all_reduce_strategy as collective  # noqa: PLC0415

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)

    def local_devices(_strategy, _resolver, worker_device):
        return tuple(f"{worker_device}/device:CPU:{number}" for number in range(count)), "CPU"

    collective.CollectiveAllReduceExtended._initialize_local_devices = local_devices


def environments(count: int) -> list[dict[str, str]]:
    """Returns `TF_CONFIG` for so many workers on free ports of this machine."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    tasks = [{"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}} for index in range(count)]
    return [{workers.VARIABLE: json.dumps(task)} for task in tasks]


def train(folder: pathlib.Path, index: int, replicas: int, steps: int, config: config_lib.Config) -> None:
    """Trains as one of the workers; writes its figures to a file."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    use_cpus(replicas)
    ends: list[float] = []

    def on_record(record):
        if "forward_loss" in record:
            ends.append(time.monotonic())

    strategy = workers.from_environment()
    loop.train(config, folder / "records", folder / "workdir", folder / "heldout", steps, strategy, on_record=on_record)
    # The first step builds the graph; after half of them is a checkpoint, and an evaluation.
    seconds = [ends[number] - ends[number - 1] for number in range(2, len(ends)) if number != steps // 2]
    figures = {
        "worker": index,
        "replicas": f"{len(strategy.extended.worker_devices)} of {strategy.num_replicas_in_sync}",
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "step_seconds": statistics.median(seconds) if seconds else None,
    }
    (folder / f"worker-{index}.json").write_text(json.dumps(figures))


def run(folder: pathlib.Path, arguments: argparse.Namespace) -> list[dict]:
    """Returns the figures of all workers; `folder` gets everything they need."""
    unroll_steps = config_of(arguments).train.unroll_steps
    tokens = arguments.workers * arguments.replicas * arguments.batch_size * unroll_steps
    zipf_text.write_records(folder, arguments.vocab_size, (arguments.steps + 2) * tokens)
    zipf_text.write_heldout(folder, 2 * tokens)
    started = []
    for index, environment in enumerate(environments(arguments.workers)):
        child = [sys.executable, __file__, *sys.argv[1:], "--child", str(folder), str(index)]
        output = None if index == 0 else (folder / f"worker-{index}.log").open("wb")
        started.append(subprocess.Popen(child, env=os.environ | environment, stdout=output, stderr=output))
    failed = [index for index, process in enumerate(started) if process.wait()]
    if failed:
        logs = [(folder / f"worker-{index}.log").read_text()[-2000:] for index in failed if index > 0]
        raise RuntimeError("\n".join([f"workers that failed: {failed}", *logs]))
    return [json.loads((folder / f"worker-{index}.json").read_text()) for index in range(len(started))]


def config_of(arguments: argparse.Namespace) -> config_lib.Config:
    """Returns the configuration of all workers."""
    half = max(1, arguments.steps // 2)
    assignments = [
        *(f"train.batch_size={arguments.batch_size}", "train.log_steps=1", "train.look_steps=0"),
        *(f"train.checkpoint_steps={half}", "train.eval_tokens=1", "train.keep_checkpoints=1"),
    ]
    return config_lib.override(config_lib.preset(arguments.preset), [*assignments, *arguments.set])


def main(argv: list[str] | None = None) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes (2)")
    parser.add_argument("--replicas", type=int, default=2, metavar="N", help="of each worker (2)")
    parser.add_argument("--preset", default="tiny", choices=config_lib.PRESETS)
    parser.add_argument("--vocab-size", type=int, default=793_471, help="words of the softmax (793471)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="(20)")
    parser.add_argument("--batch-size", type=int, default=4, metavar="N", help="streams of each replica (4)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for `elmo-tf train`")
    parser.add_argument("--child", nargs=2, metavar="ARGUMENT", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        folder, index = arguments.child
        train(pathlib.Path(folder), int(index), arguments.replicas, arguments.steps, config_of(arguments))
        return 0
    with tempfile.TemporaryDirectory(prefix="elmo_tf-workers-") as folder:
        found = run(pathlib.Path(folder), arguments)
    print(f"{'worker':>6}  {'replicas':<10}{'peak memory, MB':>16}")
    for row in found:
        print(f"{row['worker']:>6}  {row['replicas']:<10}{row['peak_rss_mb']:>16,.0f}")
    seconds = found[0]["step_seconds"]
    print("too few steps to time one" if seconds is None else f"{seconds:.2f} s per step")
    print(json.dumps({"step_seconds": seconds, "peak_rss_mb": [round(row["peak_rss_mb"]) for row in found]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
