"""Whether a run that is killed again and again ends with the same bits as an uninterrupted one.

    .venv/bin/python benchmarks/kills.py [--kills 100] [--replicas 1 2]

A small network is trained on generated text with a checkpoint every five steps, written in the background, and an
evaluation every ten. One run is left alone. Another one is killed with SIGKILL: nine of ten times shortly after a
random step, otherwise while it starts. Then `metrics.jsonl` and all variables, LSTM states and the position of the last
checkpoint must be the same, bit for bit.

Prints each kill to stderr, then a table and, as the last line, JSON; the exit status is 1 if anything differs. Each
kill costs a start of TensorFlow, 10 to 20 s of CPU time. `--child` is for the processes that it starts.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import zipf_text
from elmo_tf.config import CharCNNConfig, Config, LSTMConfig, ModelConfig, TrainConfig
from elmo_tf.training import loop

MODEL = ModelConfig(
    CharCNNConfig(embedding_dim=4, filters=((1, 8), (2, 8), (3, 16)), num_highway=1),
    LSTMConfig(units=32, projection_dim=16),
)
TRAIN = TrainConfig(
    batch_size=4,
    unroll_steps=10,
    num_sampled=64,
    checkpoint_steps=5,
    eval_steps=10,
    eval_tokens=400,
    log_steps=1,
    look_steps=0,
    optimizer="muon",  # as the presets but `original`
    learning_rate=0.003,
)
_VOCABULARY, _TOKENS = 500, 20_000
_MOST_SECONDS = 300  # that a run may take to reach a step
_MOMENT = 0.3  # seconds


def train(data: pathlib.Path, workdir: pathlib.Path, steps: int, replicas: int) -> None:
    """Trains in this process, on logical CPUs."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
    # So many streams in all, on any number of replicas.
    config = Config(MODEL, dataclasses.replace(TRAIN, batch_size=TRAIN.batch_size // replicas))
    loop.train(config, data / "records", workdir, data / "records", steps, strategy)


def start(data: pathlib.Path, workdir: pathlib.Path, steps: int, replicas: int, log: pathlib.Path) -> subprocess.Popen:
    """Starts a process that trains."""
    child = [sys.executable, __file__, "--child", str(data), str(workdir), str(steps), str(replicas)]
    with log.open("ab") as file:
        return subprocess.Popen(child, stdout=file, stderr=file)


def steps_of(workdir: pathlib.Path) -> int:
    """Returns the last step in `metrics.jsonl`; 0 if there is none."""
    path = workdir / "metrics.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return next((json.loads(line)["step"] for line in reversed(lines) if line.endswith(b"}")), 0)


def kill_at(process: subprocess.Popen, workdir: pathlib.Path, step: int, wait: float) -> bool:
    """Kills a run `wait` seconds after it has reached a step; returns whether it was still running."""
    deadline = time.monotonic() + _MOST_SECONDS
    while process.poll() is None and steps_of(workdir) < step:
        if time.monotonic() > deadline:
            process.kill()
            raise TimeoutError(f"step {step} was not reached within {_MOST_SECONDS} s")
        time.sleep(0.005)
    time.sleep(wait)
    running = process.poll() is None
    process.kill()
    process.wait()
    return running


def killed_run(data: pathlib.Path, workdir: pathlib.Path, steps: int, replicas: int, kills: int, seed: int) -> int:
    """Trains in a workdir with so many kills on the way, and to the end; returns how often it was killed."""
    draw, log, count = random.Random(seed), workdir.with_suffix(".log"), 0
    for step in sorted(draw.randrange(1, steps) for _ in range(kills)):
        started = start(data, workdir, steps, replicas, log)
        early = draw.random() < 0.1
        # An early one is killed while Python imports, the graph is built or the checkpoint is read.
        wait = draw.uniform(0, 10) if early else draw.uniform(0, _MOMENT)
        count += kill_at(started, workdir, 0 if early else step, wait)
        print(f"--replicas {replicas}: killed {count} times, at step {steps_of(workdir)}", file=sys.stderr, flush=True)
    if start(data, workdir, steps, replicas, log).wait():
        raise RuntimeError(log.read_text()[-2000:])
    return count


def differences(whole: pathlib.Path, killed: pathlib.Path) -> list[str]:
    """Returns the names of what differs between two workdirs."""
    metrics = [(workdir / "metrics.jsonl").read_bytes() for workdir in (whole, killed)]
    different = [] if metrics[0] == metrics[1] else ["metrics.jsonl"]
    names = [sorted(path.name for path in (workdir / "checkpoints").iterdir()) for workdir in (whole, killed)]
    if names[0] != names[1]:
        return [*different, f"checkpoints: {names[0]}, {names[1]}"]
    last = [workdir / "checkpoints" / names[0][-1] for workdir in (whole, killed)]
    different += [
        name
        for name in ("states.npz", "progress.json")
        if (last[0] / name).read_bytes() != (last[1] / name).read_bytes()
    ]
    readers = [tf.train.load_checkpoint(str(folder / "variables")) for folder in last]
    for name in readers[0].get_variable_to_shape_map():
        if not name.startswith("_") and not np.array_equal(*(reader.get_tensor(name) for reader in readers)):
            different.append(name)
    return different


def run(folder: pathlib.Path, kills: int, replicas: int, steps: int, seed: int) -> dict[str, object]:
    """Returns how often the run was killed and what differs; `folder` has the records."""
    started_at = time.monotonic()
    whole, killed = folder / f"whole-{replicas}", folder / f"killed-{replicas}"
    if start(folder, whole, steps, replicas, whole.with_suffix(".log")).wait():
        raise RuntimeError(whole.with_suffix(".log").read_text()[-2000:])
    count = killed_run(folder, killed, steps, replicas, kills, seed)
    different = differences(whole, killed)
    seconds = round(time.monotonic() - started_at)
    return {"replicas": replicas, "kills": count, "steps": steps, "different": different, "seconds": seconds}


def main(argv: list[str] | None = None) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="of each run (100)")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2], choices=(1, 2, 4), help="(1 2)")
    parser.add_argument("--steps", type=int, default=1000, metavar="N", help="of each run (1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the moments (0)")
    parser.add_argument("--child", nargs=4, metavar="ARGUMENT", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        data, workdir, steps, replicas = arguments.child
        train(pathlib.Path(data), pathlib.Path(workdir), int(steps), int(replicas))
        return 0
    with tempfile.TemporaryDirectory(prefix="elmo_tf-kills-") as folder:
        zipf_text.write_records(pathlib.Path(folder), _VOCABULARY, _TOKENS)
        rows = [
            run(pathlib.Path(folder), arguments.kills, replicas, arguments.steps, arguments.seed)
            for replicas in arguments.replicas
        ]
    print(f"{'replicas':>8}{'steps':>8}{'kills':>8}{'seconds':>9}  different")
    for row in rows:
        different = ", ".join(row["different"]) or "nothing"
        print(f"{row['replicas']:>8}{row['steps']:>8}{row['kills']:>8}{row['seconds']:>9}  {different}")
    print(json.dumps(rows))
    return int(any(row["different"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
