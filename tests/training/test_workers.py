"""Two processes on one machine train together, and neither waits for the other forever."""

import dataclasses
import logging
import os
import signal
import threading
import types

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.training import cluster, loop, workers
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.workdir import checkpoints, metrics_file
from elmo_tf.workdir.folder import open_workdir
from tests import checks
from tests.helpers import MICRO_CONFIG
from tests.training import commands

STEPS = 30
ENDS_SECONDS = 60  # the others end within this time when one has died
# Nothing random, so that the replicas' draws do not matter; half of the batch for each worker.
EXACT = {"num_sampled": 0, "dropout_rate": 0.0, "log_steps": 2, "checkpoint_steps": 6, "eval_tokens": 40}


def errors(log: str) -> list[str]:
    return [line for line in log.splitlines() if line.startswith("elmo-tf: error:")]


def assert_another_ended(log: str, index: int) -> None:
    """Asserts that the only error is that the other of two workers has ended, in plain words."""
    (line,) = errors(log)
    assert f"worker {index} of 2: another worker has ended" in line and "start all of them again" in line
    assert "Traceback" not in log


def assert_losses_of_one_process(workdir, replicas: int, records, folder, steps: int) -> None:
    """Asserts that a run of some replicas has the losses of a process with the whole batch, trained in `folder`."""
    train = dataclasses.replace(MICRO_CONFIG.train, **EXACT, batch_size=replicas * MICRO_CONFIG.train.batch_size)
    alone = loop.train(dataclasses.replace(MICRO_CONFIG, train=train), records.path, folder, steps=steps)
    losses, expected = (
        [list(line.values()) for line in commands.losses(path)[:steps]] for path in (workdir, alone.path)
    )
    assert [line[0] for line in losses] == list(range(1, steps + 1))
    np.testing.assert_allclose(losses, expected, **checks.TOLERANCE)
    with np.load(checkpoints.latest(open_workdir(workdir)) / "states.npz") as states:
        assert {len(values) for values in states.values()} == {replicas * MICRO_CONFIG.train.batch_size}


class Pair:
    """Two workers with the same command, each with a log in `folder`; killed at the end of the block."""

    def __init__(self, records, folder, *options, steps=100_000, **changes):
        module = "tests.training.pretended_gpus" if "--gpus" in options else "elmo_tf.cli"
        self.workdir = folder / "workdir"
        self._logs = [folder / "log0", folder / "log1"]
        self.started = []
        for index, environment in enumerate(commands.environments(2)):
            command = [*commands.arguments(records, self.workdir, **EXACT | changes), "--steps", str(steps), *options]
            command += ["--heldout", str(records.path)]
            self.started.append(commands.start(command, self._logs[index], module=module, **environment))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.kill()

    @property
    def logs(self) -> list[str]:
        return [log.read_text() for log in self._logs]

    def errors(self) -> list[str]:
        """Returns the only error line of each log."""
        by_worker = list(map(errors, self.logs))
        assert [len(lines) for lines in by_worker] == [1, 1], self.logs
        return [lines[0] for lines in by_worker]

    def wait_until(self, condition) -> None:
        commands.wait_until(condition, self.started, self._logs)

    def wait_for_steps(self, steps: int) -> None:
        self.wait_until(lambda: len(commands.losses(self.workdir)) >= steps)

    def statuses(self, timeout=300) -> list[int]:
        """Waits until both have ended."""
        return [process.wait(timeout=timeout) for process in self.started]


@pytest.mark.slow
def test_a_killed_worker_ends_both_and_they_resume_and_stop_with_the_losses_of_one_process(records, tmp_path):
    with Pair(records, tmp_path) as pair:
        pair.wait_for_steps(8)
        pair.started[1].kill()
        assert pair.statuses(ENDS_SECONDS) == [1, -9]
        assert_another_ended(pair.logs[0], 0)
    workdir = open_workdir(pair.workdir)
    reached = int(checkpoints.latest(workdir).name[-8:])
    with Pair(records, tmp_path) as pair:
        pair.wait_for_steps(max(reached + 10, STEPS))
        pair.started[1].terminate()
        assert pair.statuses() == [130, 130]
    logs = pair.logs
    assert f"training: step {reached} to" in logs[0]
    assert "tokens/s" not in logs[1] and "training: step" not in logs[1]  # only the chief logs
    assert "worker 1 of 2: waiting for the others" in logs[1]
    last = commands.losses(workdir.path)[-1]["step"]
    assert checkpoints.latest(workdir).name == f"step-{last:08d}"
    assert [f"stopped at step {last}, checkpoint saved" in log for log in logs] == [True, True]
    assert_losses_of_one_process(workdir.path, 2, records, tmp_path / "alone", STEPS)


@pytest.mark.slow
def test_two_workers_with_two_gpus_each_have_the_losses_and_perplexity_of_one_process(records, tmp_path):
    """The GPUs are logical CPUs; `--gpus` leaves the third one out."""
    with Pair(records, tmp_path, "--gpus", "0,2", steps=8) as pair:
        assert pair.statuses() == [0, 0], pair.logs
    assert "4 replicas, here on CPU:0, CPU:1\n" in pair.logs[0]
    assert_losses_of_one_process(pair.workdir, 4, records, tmp_path / "alone", 8)
    workdir = open_workdir(pair.workdir)
    # The streams of an evaluation are those of one replica's batch: two of the four have none.
    part, *_, whole = metrics_file.evaluations(workdir.metrics)
    assert (part.step, part.tokens, whole.step, whole.whole) == (6, 40, 8, True)
    (result,) = Evaluator(checkpoints.restore(workdir)[0]).parts(records, [None], 2, 5)
    assert whole.perplexity == pytest.approx(result.perplexity, rel=checks.PERPLEXITY)


@pytest.mark.slow
def test_two_workers_evaluate_a_part_save_by_the_clock_and_compute_diagnostics(records, tmp_path):
    """By the first worker's clock: a checkpoint is due whenever the two ask each other, every `log_steps` steps."""
    changes = {"checkpoint_steps": 1000, "checkpoint_minutes": 1e-9, "keep_checkpoints": 9, "log_steps": 4}
    with Pair(records, tmp_path, steps=11, eval_steps=5, look_steps=3, **changes) as pair:
        assert pair.statuses() == [0, 0], pair.logs
    workdir = open_workdir(pair.workdir)
    assert checkpoints.steps(workdir) == [4, 5, 8, 10, 11]
    evaluations = metrics_file.evaluations(workdir.metrics)
    assert [evaluation.step for evaluation in evaluations if not evaluation.whole] == [5, 10, 11]
    assert ["the evaluation took" in log for log in pair.logs] == [True, False]


GATHER = """
import os
import numpy as np
from elmo_tf.training import cluster, devices, workers
strategy = cluster.from_environment()
here = workers.Workers(strategy)
assert here.gathered([here.index, 0.0]).tolist() == [[index, 0.0] for index in range(here.count)]
rows = np.arange(2.0 * here.count)
mine = devices.distribute(strategy, devices.rows_of(rows[list(devices.local_rows(strategy, 2))]), 2, 2 * here.index)
assert np.array_equal(strategy.run(devices.gathered, args=(mine,)), rows)
here.wait()
os._exit(0)
"""


@pytest.mark.slow
def test_what_is_gathered_of_many_workers_has_their_order(tmp_path):
    (tmp_path / "gather.py").write_text(GATHER)
    logs = [tmp_path / f"log{index}" for index in range(12)]
    # As strings, 10 comes before 2.
    settings = commands.environments(len(logs))
    started = [
        commands.start([], log, module="gather", PYTHONPATH=f"{commands.ROOT}:{tmp_path}", **environment)
        for log, environment in zip(logs, settings, strict=True)
    ]
    statuses = [process.wait(timeout=300) for process in started]
    assert statuses == [0] * len(logs), [log.read_text() for log in logs]


@pytest.mark.slow
def test_a_checkpoint_that_the_first_cannot_write_leaves_no_other_waiting(records, tmp_path):
    with Pair(records, tmp_path, checkpoint_steps=2, eval_steps=0) as pair:
        pair.wait_until((pair.workdir / "config.json").exists)
        (pair.workdir / "checkpoints").write_text("not a folder")
        pair.wait_for_steps(6)
        pair.started[1].terminate()
        # Both stop at a step whose checkpoint has failed.
        assert pair.statuses() == [1, 1], pair.logs
    chief, other = pair.errors()
    assert "cannot be written" in chief and "there is no other" in chief
    assert "worker 1 of 2: another worker has ended" in other
    assert "training continues" in pair.logs[0]


def test_one_process_answers_what_several_do():
    """A run asks the same of both, whatever else `Workers` has."""
    asked = {name for name in vars(workers.Workers) if not name.startswith("_")}
    assert asked == {name for name in vars(workers.Alone) if not name.startswith("_")} - {"is_chief", "count"}
    alone = workers.Alone()
    assert (alone.any(True), alone.any_every(7, 3, True), alone.chief(5)) == (True, True, 5)
    np.testing.assert_array_equal(alone.gathered([1, 2]), [[1.0, 2.0]])
    workers.check_same(alone, config=MICRO_CONFIG, heldout=None)


@pytest.mark.parametrize("changed", ["config", "steps", "heldout"])
def test_workers_that_are_given_other_settings_steps_or_texts_are_refused(changed):
    same = {"config": MICRO_CONFIG, "steps": 8, "heldout": "text"}
    other = {"config": config_lib.override(MICRO_CONFIG, ["train.learning_rate=0.3"]), "steps": 9, "heldout": None}
    mine = []
    first = types.SimpleNamespace(gathered=lambda numbers: mine.append(numbers) or np.array([numbers], np.float64))
    second = types.SimpleNamespace(gathered=lambda numbers: np.array([*mine, numbers], np.float64))
    workers.check_same(first, **same)
    workers.check_same(second, **same)
    message = rf"^{changed}: workers 0 and 1 have different values; all need the same$"
    with pytest.raises(InputError, match=message):
        workers.check_same(second, **same | {changed: other[changed]})


def test_a_file_that_appears_late_is_waited_for(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(workers, "_POLL_SECONDS", 0.01)
    path = tmp_path / "config.json"
    threading.Timer(0.1, path.touch).start()
    with caplog.at_level(logging.INFO, "elmo_tf"):
        first_of_two().wait_for_file(path)
    assert f"worker 0 of 2: waiting for {path} to appear" in caplog.text
    monkeypatch.setattr(workers, "_FILE_SECONDS", 0)
    with pytest.raises(InputError, match=rf"^{tmp_path}/absent: not there after 0 s; all workers need"):
        first_of_two().wait_for_file(tmp_path / "absent")


def first_of_two() -> workers.Workers:
    """Returns the first of two workers, as it sees them; there is no second one."""
    resolver = cluster._Cluster(0, ["a:1", "b:1"])
    return workers.Workers(types.SimpleNamespace(cluster_resolver=resolver, num_replicas_in_sync=1))


GONE = r"^worker 0 of 2: another worker has ended \({}\), and its log says why; start all of them again"


@pytest.mark.parametrize(
    ("error", "said", "raised", "message"),
    [
        (tf.errors.UnavailableError, "aborted", ConnectionError, GONE.format("UnavailableError")),
        # An internal error may have any cause.
        (tf.errors.InternalError, "Connection reset by peer", ConnectionError, GONE.format("InternalError")),
        (
            *(tf.errors.InternalError, "Failed to call DoRnnForward [[{{node rnn}}]] [[CollectiveReduceV2/_7]]"),
            *(tf.errors.InternalError, "^Failed to call"),
        ),
        (
            *(tf.errors.InternalError, "Collective ops is aborted by: joining a group with size4, but that has size 2"),
            *(
                InputError,
                "^strategy: all workers need the same number of devices; worker 0 of 2 has 1, and another differs$",
            ),
        ),
    ],
)
def test_errors_of_other_workers_are_told_from_those_of_this_one(error, said, raised, message):
    with pytest.raises(raised, match=message), first_of_two().watched():
        raise error(None, None, said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_worker_that_waits_in_tensorflow(monkeypatch, number):
    """The operation that the worker waits in does not return."""
    first = first_of_two()
    monkeypatch.setattr(first, "gathered", lambda _: threading.Event().wait())
    threading.Timer(0.5, os.kill, [os.getpid(), number]).start()
    with pytest.raises(KeyboardInterrupt):
        first.wait()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_strategy_that_has_a_chief_is_refused():
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({"chief": ["c:1"]}))
    with pytest.raises(InputError, match=r"^strategy: its cluster has a chief"):
        workers.Workers(types.SimpleNamespace(cluster_resolver=resolver))
