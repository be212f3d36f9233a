"""Both Beam jobs on a Flink cluster on this machine, compared with the same number of local processes.

    .venv/bin/python -m tests.cluster.engine
    .venv/bin/python benchmarks/cluster_jobs.py --input corpus/ [--model MODEL --sentences sentences.txt]

The cluster has two machines: a TaskManager and a worker pool each. With `--kill`, one of them is killed after a third
of the shards and restarted. The output of every job must have the same bytes as the local one's. Prints a table and, as
the last line, JSON.
"""

import argparse
import filecmp
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.cluster import engine, flink  # noqa: E402

LOCAL = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
_SHARDS = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True, metavar="GLOB", help="text to preprocess")
    parser.add_argument("--model", metavar="DIR", help="model to embed --sentences with")
    parser.add_argument("--sentences", metavar="FILE", help="text to embed")
    parser.add_argument(
        "--kill", action="store_true", help="kill a machine in the middle of each job on the cluster too"
    )
    arguments = parser.parse_args()
    if missing := engine.engine().missing():
        sys.exit(missing)

    commands = {"preprocess": ["preprocess", "--input", arguments.input, f"--shards={_SHARDS}", "--min-count=3"]}
    if arguments.model:
        embed = ["embed", "--model", arguments.model, "--input", arguments.sentences]
        embed.append("--processes-per-machine=2")
        commands["embed to HDF5"] = embed
        commands["embed to TFRecords"] = [*embed, "--format=tfrecord", f"--shards={_SHARDS}"]
    rows = []
    with tempfile.TemporaryDirectory(prefix="elmo_tf-cluster-") as folder, flink.running() as cluster:
        for number, (name, command) in enumerate(commands.items()):
            outputs = {kind: pathlib.Path(folder, f"{number}-{kind}") for kind in ("local", "cluster", "killed")}
            row = {"job": name, "local": _run([*command, f"--output={outputs['local']}", *LOCAL])}
            row["cluster"] = _run([*command, f"--output={outputs['cluster']}", *cluster.options])
            row["same"] = _same(outputs["local"], outputs["cluster"])
            if arguments.kill:
                row["killed"] = _run([*command, f"--output={outputs['killed']}", *cluster.options], cluster)
                row["same"] = row["same"] and _same(outputs["local"], outputs["killed"])
            rows.append(row)
            print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
    print(json.dumps(rows))


def _run(command: list[str], kill: flink.Cluster | None = None) -> float:
    """Returns the seconds that a command takes; a machine of `kill` fails meanwhile, and the command is repeated."""
    start = time.monotonic()
    environment = {**os.environ, "TF_NUM_INTEROP_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-m", "elmo_tf.cli", *command], cwd=ROOT, env=environment)
    if kill:
        output = pathlib.Path(next(option for option in command if option.startswith("--output=")).partition("=")[2])
        while process.poll() is None and _num_done(output) < _SHARDS // 3:
            time.sleep(0.1)
        if process.poll() is None:
            kill.machines[0].kill()
            kill.machines[0].start()
    if process.wait():
        if not kill:
            sys.exit(f"failed: {' '.join(command)}")
        kill.wait_for_machines()
        subprocess.run(process.args, cwd=ROOT, env=environment, check=True)
    return round(time.monotonic() - start, 1)


def _num_done(output: pathlib.Path) -> int:
    """Returns how many shards are finished."""
    return sum(len(list(folder.glob("shard-*"))) for folder in (output, pathlib.Path(f"{output}.unfinished")))


def _same(local: pathlib.Path, remote: pathlib.Path) -> bool:
    """Whether two outputs have the same bytes."""
    if local.is_file():
        return filecmp.cmp(local, remote, shallow=False)
    names = sorted(os.listdir(local))
    return names == sorted(os.listdir(remote)) and filecmp.cmpfiles(local, remote, names, shallow=False)[1:] == ([], [])


if __name__ == "__main__":
    main()
