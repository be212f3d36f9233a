"""Records sent to services, with stand-ins for them; the Slurm script and the Kubernetes job."""

import json
import os
import pathlib
import re
import subprocess
import sys
from unittest import mock

import pytest

import elmo_tf
from tests.examples.test_small_programs import imported
from tests.helpers import ROOT

EXAMPLES = ROOT / "examples"
RECORDS = [
    *({"step": step, "forward_loss": 5.0 / step, "backward_loss": 6.0 / step} for step in (1, 2, 3)),
    {"step": 3, "heldout": "abc", "perplexity": 90.0, "tokens": 1000},
    {"step": 3, "heldout": "def", "perplexity": 95.0, "tokens": 9000, "whole": True},
]
SENT = [
    ({"train/forward_loss": 2.5, "train/backward_loss": 3.0}, 2),
    ({"heldout/perplexity": 90.0}, 3),
    ({"heldout_whole/perplexity": 95.0}, 3),
]


@pytest.fixture
def trained(monkeypatch):
    """Stands in for training: passes the records on, and keeps the other arguments."""
    seen = {}

    def train(config, data, workdir, on_record, **more):
        seen.update(more, data=data, workdir=workdir)
        for record in RECORDS:
            on_record(dict(record))

    monkeypatch.setattr(elmo_tf, "train", train)
    return seen


def name_of(workdir: str) -> str:
    return imported("watch_training").name_of(workdir)


def test_workdirs_of_one_name_are_different_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [name_of(path) for path in ("a/run", "b/run", str(tmp_path / "a" / "run"))]
    assert names[0] == names[2] != names[1]
    assert all(re.fullmatch(r"run-[0-9a-f]{8}", name) for name in names)


def watch(service: str) -> None:
    command = ["--data", "data", "--heldout", "held", "--workdir", "runs/mine", "--to", service, "--every", "2"]
    imported("watch_training").main(command)


def test_weights_and_biases_gets_the_records(trained, monkeypatch):
    wandb = mock.Mock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    watch("wandb")
    wandb.init.assert_called_once_with(project="elmo", id=name_of("runs/mine"), resume="allow")
    assert wandb.init.return_value.log.mock_calls == [mock.call(values, step=step) for values, step in SENT]
    assert (trained["data"], trained["heldout"], trained["workdir"]) == ("data", "held", "runs/mine")


@pytest.mark.parametrize("before", [[], [mock.Mock(**{"info.run_id": "run7"})]])
def test_mlflow_gets_the_records_in_the_run_of_that_name(trained, monkeypatch, before):
    mlflow = mock.Mock(**{"search_runs.return_value": before})
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    watch("mlflow")
    mlflow.set_experiment.assert_called_once_with("elmo")
    assert mlflow.search_runs.call_args.kwargs["output_format"] == "list"
    run_id = "run7" if before else None
    mlflow.start_run.assert_called_once_with(run_id=run_id, run_name=name_of("runs/mine"))
    assert mlflow.log_metrics.mock_calls == [mock.call(values, step=step) for values, step in SENT]


def stand_in(folder: pathlib.Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def slurm(folder: pathlib.Path, *arguments: str) -> int:
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "42"}
    environment["SLURM_CPUS_PER_TASK"] = "16"
    return subprocess.run(["bash", EXAMPLES / "slurm.sh", *arguments], env=environment, check=False).returncode


@pytest.mark.parametrize("status", [0, 1, 130, 137])
def test_the_slurm_script_tells_each_worker_its_place_and_queues_again_when_stopped(tmp_path, status):
    lists = f'if [ "$1" = show ]; then echo n1; echo n2; else echo "$@" >> {tmp_path}/queued; fi'
    stand_in(tmp_path, "scontrol", lists)
    # Like srun, runs the command in the process of a rank, here rank 1.
    stand_in(tmp_path, "srun", f'echo "$1 $SRUN_CPUS_PER_TASK" > {tmp_path}/option; shift; SLURM_PROCID=1 "$@"')
    trains = f'echo "$TF_CONFIG" > {tmp_path}/config; echo "$@" > {tmp_path}/command; exit {status}'
    stand_in(tmp_path, "elmo-tf", trains)
    assert slurm(tmp_path, "--data", "a b", "--workdir", "w") == status
    expected = {"cluster": {"worker": ["n1:20042", "n2:20042"]}, "task": {"type": "worker", "index": 1}}
    assert json.loads((tmp_path / "config").read_text()) == expected
    assert (tmp_path / "command").read_text() == "train --data a b --workdir w\n"
    assert (tmp_path / "queued").exists() == (status == 130)
    # Otherwise srun kills the other workers, while they stop, and its own status is 137.
    assert (tmp_path / "option").read_text() == "--kill-on-bad-exit=0 16\n"


def test_the_kubernetes_job_gives_each_pod_a_cluster_that_can_be_read(tmp_path):
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    stand_in(tmp_path, "elmo-tf", 'echo "$TF_CONFIG"')
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB_COMPLETION_INDEX": "1"}
    command = [*container["command"], *container["args"]]
    config = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    assert config["task"] == {"type": "worker", "index": 1}
    names = [f"{job['metadata']['name']}-{number}.{service['metadata']['name']}:2222" for number in (0, 1)]
    assert config["cluster"]["worker"] == names and job["spec"]["completions"] == len(names)
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
