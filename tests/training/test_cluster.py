"""The cluster in `TF_CONFIG`: processes that find each other, and do not wait for ever for one that does not come."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.training import cluster
from tests.training import commands


@pytest.mark.slow
def test_a_worker_that_waits_for_another_to_start_can_be_stopped(records, tmp_path):
    environment, log = commands.environments(2)[1], tmp_path / "log"
    (tmp_path / "w").mkdir()
    process = commands.start(commands.arguments(records, tmp_path / "w"), log, **environment)
    try:
        commands.wait_for_line("worker 1 of 2: waiting for the others at 127.0.0.1:", log, process)
        process.terminate()
        assert process.wait(timeout=30) == 130
    finally:
        process.kill()
    assert log.read_text().splitlines()[-1] == "elmo-tf: interrupted"


JOIN = """
import logging
logging.basicConfig(level=logging.INFO)
from elmo_tf.training import cluster
cluster._JOIN_SECONDS = 2
cluster.from_environment()
"""


@pytest.mark.slow
def test_a_worker_does_not_wait_for_ever_for_one_that_ends_before_it_has_joined(tmp_path):
    environment, log = commands.environments(2)[0], tmp_path / "log"
    _, other = json.loads(environment["TF_CONFIG"])["cluster"]["worker"]
    # The second is there when the two meet, but never joins.
    with cluster._listening(int(other.rpartition(":")[2])), log.open("w") as file:
        environment |= {"PYTHONPATH": str(commands.ROOT)}
        process = subprocess.Popen([sys.executable, "-c", JOIN], env=os.environ | environment, stderr=file)
        commands.wait_for_line("joining the others", log, process)
    assert process.wait(timeout=60) == 1
    assert "worker 0 of 2: joining the others; if that takes more than 2 s, this process ends" in log.read_text()


TASKS = {"worker": ["a:1", "b:1"], "evaluator": ["c:1"], "ps": ["d:1"]}


@pytest.mark.parametrize("task", [{"type": "worker", "index": 2}, {"type": "evaluator"}, {"type": "ps"}, {}, "{"])
def test_a_value_that_is_not_a_cluster_with_a_worker_is_refused(monkeypatch, task):
    value = task if task == "{" else json.dumps({"cluster": TASKS, "task": {"index": 0} | task})
    monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(InputError, match=r"^TF_CONFIG: not a cluster"):
        cluster.from_environment()
    monkeypatch.delenv("TF_CONFIG")
    assert cluster.from_environment() is None


def test_a_cluster_is_not_joined_once_tensorflow_has_computed_something(monkeypatch):
    tf.constant(1.0)
    only = {"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(only))
    expected = "^TF_CONFIG: join the cluster before TensorFlow computes anything "
    with pytest.raises(InputError, match=expected):
        cluster.from_environment()


@pytest.mark.parametrize(
    ("jobs", "task", "index_and_count"),
    [
        ({"worker": ["a:1", "b:1"]}, ("worker", 1), (1, 2)),
        ({"chief": ["c:1"], "worker": ["a:1", "b:1"]}, ("chief", 0), (0, 3)),
        ({"chief": ["c:1"], "worker": ["a:1", "b:1"]}, ("worker", 1), (2, 3)),
    ],
)
def test_a_chief_is_the_first_and_workers_come_after_it(jobs, task, index_and_count):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(jobs), task_type=task[0], task_id=task[1]
    )
    index, addresses = cluster._index_and_addresses(resolver)
    assert (index, len(addresses), addresses[index]) == (*index_and_count, jobs[task[0]][task[1]])


def test_workers_that_do_not_start_or_cannot_listen_are_named(monkeypatch, caplog):
    environment = commands.environments(2)[0]["TF_CONFIG"]
    first, second = json.loads(environment)["cluster"]["worker"]
    monkeypatch.setenv("TF_CONFIG", environment)
    monkeypatch.setattr(cluster, "_MEET_SECONDS", 0)
    with pytest.raises(ConnectionError, match=f"^worker 0 of 2: no worker at {second} for 0 s; start all of them$"):
        cluster.from_environment()
    taken = socket.create_server(("127.0.0.1", int(first.rpartition(":")[2])))
    reason = r"\(Address already in use\)$"
    with taken, pytest.raises(ConnectionError, match=f"^worker 0 of 2: cannot listen at {first} {reason}"):
        cluster.from_environment()


def test_workers_meet_only_once_all_are_there():
    """The first two workers see each other, but wait for the third, which comes late."""
    sockets = [cluster._listening(0) for _ in range(3)]
    addresses = [f"127.0.0.1:{listening.getsockname()[1]}" for listening in sockets]
    for listening in sockets:
        listening.close()
    threads = [
        threading.Thread(target=cluster._wait_for_workers, args=("me", own, addresses), daemon=True)
        for own in addresses
    ]
    servers = []
    for thread in threads[:2]:
        thread.start()
    threads[0].join(1.5)
    assert [thread.is_alive() for thread in threads[:2]] == [True, True]
    threads[2].start()
    # TensorFlow's servers listen where a worker has finished.
    deadline = time.monotonic() + 30
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < deadline
        for thread, address in zip(threads, addresses, strict=True):
            if not thread.is_alive() and address not in dict(servers):
                servers.append((address, cluster._listening(int(address.rpartition(":")[2]))))
        time.sleep(0.02)
    for _, server in servers:
        server.close()
