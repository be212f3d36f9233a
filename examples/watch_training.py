"""Trains, and sends the metrics to Weights & Biases or MLflow.

    python examples/watch_training.py --data data/train --heldout data/heldout --workdir runs/mine --preset tiny \\
        --to wandb --project elmo

Install wandb or mlflow and log in first. A resumed training continues the same run there. With several workers
(`TF_CONFIG`), the first one sends.
"""

import argparse
import functools
import importlib
import pathlib
import sys
import zlib
from collections.abc import Callable
from typing import Any

import elmo_tf
from elmo_tf.training import cluster

Record = dict[str, Any]


def values_of(record: Record) -> dict[str, float]:
    """Returns the numbers of a record, their names prefixed with a group."""
    group = "train" if "heldout" not in record else "heldout_whole" if record.get("whole") else "heldout"
    numbers = {name: value for name, value in record.items() if isinstance(value, float)}
    return {f"{group}/{name}": value for name, value in numbers.items()}


def to_wandb(project: str, name: str) -> Callable[[Record], None]:
    """Returns a function that sends a record to Weights & Biases."""
    # The name is the id, so that the same command continues the same run.
    run = importlib.import_module("wandb").init(project=project, id=name, resume="allow")
    return lambda record: run.log(values_of(record), step=record["step"])


def to_mlflow(project: str, name: str) -> Callable[[Record], None]:
    """Returns a function that sends a record to MLflow."""
    mlflow = importlib.import_module("mlflow")
    mlflow.set_experiment(project)
    runs = mlflow.search_runs(filter_string=f"attributes.run_name = '{name}'", output_format="list")
    mlflow.start_run(run_id=runs[0].info.run_id if runs else None, run_name=name)
    return lambda record: mlflow.log_metrics(values_of(record), step=record["step"])


SERVICES = {"wandb": to_wandb, "mlflow": to_mlflow}


def name_of(workdir: str) -> str:
    """Returns the folder's name with a checksum of its path, so that workdirs of one name are different runs."""
    path = pathlib.Path(workdir).resolve()
    return f"{path.name}-{zlib.crc32(str(path).encode()):08x}"


def every(steps: int, begin: Callable[[], Callable[[Record], None]]) -> Callable[[Record], None]:
    """Returns a function that sends every evaluation, and the losses of every `steps` steps; training waits for it.

    The run begins with the first record sent, so workers that get no records begin none.
    """
    send = functools.cache(begin)

    def chosen(record: Record) -> None:
        if "heldout" in record or record["step"] % steps == 0:
            send()(record)

    return chosen


def main(argv: list[str] | None = None) -> None:
    """Trains as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="records to train on")
    parser.add_argument("--heldout", help="records to evaluate on")
    parser.add_argument("--workdir", required=True, help="checkpoints and logs")
    parser.add_argument("--preset", default="tiny", help="size and recipe (default: tiny)")
    parser.add_argument("--steps", type=int, help="train up to this step (default: 10 epochs)")
    parser.add_argument("--to", required=True, choices=SERVICES)
    parser.add_argument("--project", default="elmo", help="project name in that service (default: elmo)")
    parser.add_argument("--every", type=int, default=20, help="send the losses of every so many steps (default: 20)")
    arguments = parser.parse_args(argv)
    begin = functools.partial(SERVICES[arguments.to], arguments.project, name_of(arguments.workdir))
    elmo_tf.train(
        elmo_tf.preset(arguments.preset),
        arguments.data,
        arguments.workdir,
        heldout=arguments.heldout,
        steps=arguments.steps,
        strategy=cluster.from_environment(),
        on_record=every(arguments.every, begin),
    )


if __name__ == "__main__":
    try:
        main()
    except (elmo_tf.InputError, OSError) as error:
        sys.exit(f"watch_training.py: error: {error}")
    except KeyboardInterrupt as interrupt:
        print("watch_training.py:", interrupt.args[0] if interrupt.args else "interrupted", file=sys.stderr)
        sys.exit(130)
