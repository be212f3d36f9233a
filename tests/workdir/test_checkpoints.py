"""Checkpoints: damage is seen, a full disk is survived, the best is kept, and one run at a time."""

import dataclasses
import errno
import json
import logging
import os
import pathlib
import shutil

import pytest
import tensorflow as tf
from msgspec.structs import replace

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.files import lock
from elmo_tf.model.fast import BiLM
from elmo_tf.training import loop, monitor
from elmo_tf.training import optimizer as optimizers
from elmo_tf.workdir import checkpoint_files, checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir, new_workdir, open_workdir
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG, flip
from tests.training.test_loop import with_train

FILES = ("manifest.json", "progress.json", "states.npz", "variables.data-00000-of-00001", "variables.index")


@pytest.fixture(scope="module")
def trained(workdir, tmp_path_factory):
    """A workdir with checkpoints of steps 2, 4 and 6, which differ."""
    made = open_workdir(shutil.copytree(workdir.path, tmp_path_factory.mktemp("trained") / "workdir"))
    bilm = made.new_bilm()
    optimizer = optimizers.from_config(made.config.train, bilm)
    progress = checkpoints.load(made, bilm, optimizer.slots)
    shutil.rmtree(checkpoints.latest(made))
    for step in (2, 4, 6):
        for variable in bilm.trainable_variables:
            variable.assign(variable + 1.0)
        checkpoints.save(made, bilm, optimizer.slots, replace(progress, step=step))
    return made


@pytest.fixture
def copy(trained, tmp_path):
    shutil.copytree(trained.path, tmp_path / "workdir")
    return open_workdir(tmp_path / "workdir")


def names(workdir: Workdir) -> list[str]:
    return sorted(os.listdir(workdir.path / "checkpoints"))


def damage(path: pathlib.Path, how: str) -> None:
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif how == "flipped":
        flip(path)
    else:
        path.unlink()


@pytest.mark.parametrize(
    ("file", "how"),
    [
        *((file, "flipped") for file in FILES),
        *(("states.npz", "cut"), ("manifest.json", "gone"), ("progress.json", "gone"), ("variables.index", "gone")),
    ],
)
def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_is_used(copy, file, how, caplog):
    assert sorted(path.name for path in checkpoints.latest(copy).iterdir()) == sorted(FILES)
    damage(checkpoints.latest(copy) / file, how)
    bilm = copy.new_bilm()
    with caplog.at_level(logging.WARNING, "elmo_tf"):
        assert checkpoints.load(copy, bilm).step == 4
    assert "step-00000006: the checkpoint is damaged: " in caplog.text
    assert "going back to the checkpoint before it" in caplog.text
    checks.assert_all_close(bilm.trainable_variables, checkpoints.restore(copy, "4")[0].trainable_variables)


FOREIGN_FOLDERS = (".git", ".ipynb_checkpoints", "step-00000002 copy", "step-2", ".step-00000002.mine", "step-x")
FOREIGN_FILES = (".DS_Store", "step-00000070", "notes.txt", ".step-00000001.incomplete")


def test_saving_rewrites_a_damaged_step_keeps_the_best_and_leaves_foreign_files_alone(copy):
    directory, bilm = copy.path / "checkpoints", checkpoints.restore(copy, "4")[0]
    foreign = [directory / name for name in FOREIGN_FILES] + [directory / name / "file" for name in FOREIGN_FOLDERS]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (directory / "linked").symlink_to(directory / "step-00000004")
    damage(directory / "step-00000006" / "states.npz", "flipped")
    checkpoints.save(copy, bilm, None, Progress(step=6))
    checkpoint_files.check(checkpoints.latest(copy))
    write_evaluations(copy, {2: 8.0, 4: 7.0, 6: 7.5})
    keeps_one = dataclasses.replace(copy, config=with_train(keep_checkpoints=1))
    checkpoints.save(keeps_one, bilm, None, Progress(step=8))
    assert names(copy) == sorted([*FOREIGN_FOLDERS, *FOREIGN_FILES, "linked", "step-00000004", "step-00000008"])
    assert {path.read_text() for path in foreign} == {"mine"}


def test_when_all_are_damaged_that_is_an_error(copy):
    for path in (copy.path / "checkpoints").iterdir():
        damage(path / "variables.data-00000-of-00001", "cut")
    message = "step-00000006: the checkpoint is damaged: .*; no checkpoint of this workdir is intact$"
    with pytest.raises(InputError, match=message):
        checkpoints.load(copy, copy.new_bilm())


def write_evaluations(workdir: Workdir, perplexities: dict[int, float]) -> None:
    lines = [{"step": step, "heldout": "text", "perplexity": value} for step, value in perplexities.items()]
    workdir.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_the_best_and_a_step_can_be_asked_for(copy):
    write_evaluations(copy, {2: 8.0, 4: 7.0, 6: 7.5})
    steps = {name: checkpoints.restore(copy, name)[1].step for name in ("latest", "best", "2", "6")}
    assert steps == {"latest": 6, "best": 4, "2": 2, "6": 6}
    for wrong in ("3", "newest", "-2"):
        with pytest.raises(InputError, match=rf"^checkpoint: expected latest, best or .* 2, 4, 6, found '{wrong}'"):
            checkpoints.restore(copy, wrong)
    copy.metrics.unlink()
    with pytest.raises(InputError, match=r"^checkpoint: .* has no evaluation on held-out text"):
        checkpoints.restore(copy, "best")


def test_a_step_asked_for_is_read_whatever_else_the_workdir_holds(copy):
    copy.metrics.write_text("damaged\n")
    (copy.path / "checkpoints" / "step-00000099").symlink_to(checkpoints.folder_of(copy, 4))
    assert checkpoints.restore(copy, "2")[1].step == 2
    with pytest.raises(InputError, match=rf"^{copy.path}/.*/step-00000099: a link with a checkpoint's name"):
        checkpoints.restore(copy)


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OSError(errno.EIO, "Input/output error"), OSError, "/step-00000006 cannot be read: Input/output error$"),
        (tf.errors.UnknownError(None, None, "Input/output error"), OSError, "6 cannot be read: Input/output error"),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when"), InputError, "^memory: too little memory"),
        (tf.errors.DataLossError(None, None, "bad block"), None, None),
    ],
)
def test_what_fails_while_reading_is_damage_only_if_it_says_so(copy, monkeypatch, error, raised, message):
    owner, name = (checkpoint_files, "_crc32c") if isinstance(error, OSError) else (tf.train, "load_checkpoint")
    real = getattr(owner, name)

    def read(path):
        if "step-00000006" in str(path):
            raise error
        return real(path)

    monkeypatch.setattr(owner, name, read)
    if raised is None:
        assert checkpoints.restore(copy)[1].step == 4
        return
    with pytest.raises(raised, match=message):
        checkpoints.restore(copy)
    monkeypatch.undo()
    assert checkpoints.restore(copy)[1].step == 6


def test_a_checkpoint_that_is_removed_while_it_is_read_makes_way_for_the_next_one(copy, monkeypatch, caplog):
    real = checkpoint_files.read

    def read(path, *more):
        if path.name == "step-00000006":
            os.replace(path, path.with_name("step-00000008"))
        elif path.name == "step-00000004":
            raise AssertionError("older than what was there")
        return real(path, *more)

    monkeypatch.setattr(checkpoint_files, "read", read)
    with caplog.at_level(logging.WARNING, "elmo_tf"):
        assert checkpoints.load(copy, copy.new_bilm()).step == 6  # the step in its progress.json
    assert caplog.text == ""


def test_a_checkpoint_is_saved_even_if_no_old_one_can_be_removed(copy, monkeypatch, caplog):
    left = copy.path / "checkpoints" / ".step-00000001.removed"
    left.mkdir()
    bilm, workdir = checkpoints.restore(copy)[0], dataclasses.replace(copy, config=with_train(keep_checkpoints=1))

    def rmtree(path, ignore_errors=False):
        if not ignore_errors:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "elmo_tf"):
        patch.setattr(checkpoints.shutil, "rmtree", rmtree)
        assert checkpoints.store(workdir, checkpoint_files.take_snapshot(bilm, None, Progress(8)), []).is_dir()
    assert checkpoints.steps(copy) == [8]
    (line,) = caplog.messages
    assert line.startswith("warning: old checkpoints cannot be removed: [Errno 16]")
    checkpoints.store(workdir, checkpoint_files.take_snapshot(bilm, None, Progress(10)), [])
    assert names(copy) == ["step-00000010"]


@pytest.mark.slow
def test_the_best_by_heldout_perplexity_is_kept_beside_the_newest(records, tmp_path, monkeypatch):
    perplexities = iter([9.0, 7.0, 8.0, 8.5, 8.6])
    real = monitor.Monitor.record_evaluation

    def record(self, evaluation, *more):
        real(self, dataclasses.replace(evaluation, perplexity=next(perplexities)), *more)

    monkeypatch.setattr(monitor.Monitor, "record_evaluation", record)
    config = with_train(checkpoint_steps=1, keep_checkpoints=1)
    workdir = loop.train(config, records.path, tmp_path / "w", heldout=records.path, steps=5)
    assert names(workdir) == ["step-00000002", "step-00000005"]
    assert checkpoints.restore(workdir, "best")[1].step == 2


def test_what_is_renamed_is_on_the_disk_before(trained, tmp_path, monkeypatch):
    with new_workdir(tmp_path / "w", MICRO_CONFIG, trained.vocabulary) as workdir:
        pass
    events, sync, replace = [], checkpoint_files.staging.sync, os.replace
    monkeypatch.setattr(
        checkpoint_files.staging, "sync", lambda path: (sync(path), events.append(pathlib.Path(path).name))
    )
    monkeypatch.setattr(os, "replace", lambda source, target: (replace(source, target), events.append("replace")))
    checkpoints.save(workdir, checkpoints.restore(trained)[0], None, Progress(step=7))
    saved = events[events.index("replace") :]
    assert saved == ["replace", "checkpoints"]
    files = [name for name in FILES if name != "states.npz"]
    assert sorted(events[: -len(saved)]) == sorted([*files, ".step-00000007.incomplete"])


def test_a_workdir_in_use_is_refused_by_name(copy, records):
    message = f"^{copy.path}: another run is using this folder"
    with lock.locked(copy.path), pytest.raises(InputError, match=message):
        loop.train(MICRO_CONFIG, records.path, copy.path, steps=9)


@pytest.mark.parametrize("name", ["adagrad", "adam", "muon"])
def test_a_step_after_the_copy_does_not_change_what_is_written(tmp_path, name):
    """The steps update rows and whole variables with the operations of training."""
    bilm = BiLM(MICRO, 20)
    variables = [variable.value for variable in bilm.trainable_variables]
    optimizer = optimizers.from_config(TrainConfig(optimizer=name), bilm)
    optimizer.set_learning_rate(0.5, 0)
    stored = [*variables, *(value for slot in optimizer.slots.values() for value in slot)]
    unused = [value for value in optimizer.slots.get("squares", []) if value.shape.rank == 0]

    def update():
        for number, variable in enumerate(variables):
            if variable is bilm.softmax.kernel.value:  # only some rows
                rows = tf.ones((2, variable.shape[1]))
                optimizer._update_rows(variable, *optimizer._slots(number), rows, tf.constant([3, 5]))
            else:
                gradient = tf.random.stateless_normal(variable.shape, (number, 0))
                optimizer._dense_update(number)(variable, *optimizer._slots(number), gradient)

    update()
    before = [value.numpy() for value in stored]
    taken = checkpoint_files.take_snapshot(bilm, optimizer.slots, Progress(7))
    update()
    checkpoint_files.write(tmp_path / "checkpoint", taken)
    changed = [(old != new.numpy()).any() for old, new in zip(before, stored, strict=True)]
    assert changed == [all(new is not skipped for skipped in unused) for new in stored]
    assert checkpoint_files.read(tmp_path / "checkpoint", bilm, optimizer.slots).step == 7
    checks.assert_all_close(stored, before)
