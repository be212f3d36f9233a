"""The checkpoints of a workdir: each is either complete or absent.

Other files and folders in `checkpoints/` are neither read nor deleted.
"""

import logging
import os
import pathlib
import re
import shutil
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from elmo_tf.errors import InputError, explain_out_of_memory
from elmo_tf.files import staging
from elmo_tf.workdir import checkpoint_files, metrics_file
from elmo_tf.workdir.checkpoint_files import DamagedError, Progress, Slots, Snapshot
from elmo_tf.workdir.folder import Workdir
from elmo_tf.workdir.metrics_file import HeldoutLine

if TYPE_CHECKING:
    from elmo_tf.model.fast import BiLM

CHECKPOINTS_FOLDER = "checkpoints"
LATEST = "latest"  # the newest intact checkpoint
BEST = "best"
# A checkpoint, and what a killed process left of one.
_NAME = re.compile(r"step-(\d{8}|[1-9]\d{8,})")
_LEFTOVER = re.compile(r"\.step-\d{8,}\.(incomplete|removed)")

_log = logging.getLogger("elmo_tf")


def save(workdir: Workdir, bilm: "BiLM", slots: Slots | None, progress: Progress) -> pathlib.Path:
    """Takes a snapshot of the variables and stores it, as `store` does."""
    snapshot = checkpoint_files.take_snapshot(bilm, slots, progress)
    return store(workdir, snapshot, metrics_file.evaluations(workdir.metrics))


def store(workdir: Workdir, snapshot: Snapshot, evaluations: Sequence[HeldoutLine]) -> pathlib.Path:
    """Writes a checkpoint, completely or not at all, and removes those that are no longer needed.

    It keeps the newest `train.keep_checkpoints`, those of later steps, and the best on each held-out text, or part of
    one, that was evaluated.

    Raises:
        OSError: if it cannot be written; the other checkpoints stay then.
    """
    step = snapshot.progress.step
    folder, existing = folder_of(workdir, step), steps(workdir)
    if os.path.lexists(folder) and step not in existing:
        raise OSError(f"{folder} exists and is not a checkpoint")
    staged = folder.with_name(f".{folder.name}.incomplete")
    obsolete = _obsolete(workdir, step, {*existing, step}, evaluations)
    for leftover in _folders(workdir, _LEFTOVER):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        checkpoint_files.write(staged, snapshot)
        if folder.exists():
            os.replace(folder, _removal_path(folder))
        os.replace(staged, folder)
        staging.sync(folder.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    try:
        # Renamed first: a partly deleted checkpoint must not look like one.
        for path in obsolete:
            os.replace(path, _removal_path(path))
        for leftover in _folders(workdir, _LEFTOVER):
            shutil.rmtree(leftover)
    except OSError as error:
        _log.warning("warning: old checkpoints cannot be removed: %s; the next checkpoint tries again", error)
    return folder


def restore(workdir: Workdir, checkpoint: str = LATEST, with_softmax: bool = True) -> tuple["BiLM", Progress]:
    """Returns a new network with the weights of a checkpoint, and the progress saved with them.

    `checkpoint` and errors are those of `load`; without a checkpoint, it raises `InputError`.
    """
    bilm = workdir.new_bilm(with_softmax=with_softmax)
    with explain_out_of_memory():
        progress = load(workdir, bilm, checkpoint=checkpoint)
    if progress is None:
        raise InputError(str(workdir.path), "this workdir has no checkpoint yet")
    return bilm, progress


def load(workdir: Workdir, bilm: "BiLM", slots: Slots | None = None, checkpoint: str = LATEST) -> Progress | None:
    """Reads a checkpoint into `bilm` and, if given, `slots`.

    Args:
        workdir, bilm, slots: where to read from, and what to read into.
        checkpoint: `"latest"`: the newest intact one, with a warning about newer damaged ones; `"best"`: the one with
            the lowest held-out perplexity; or a step.

    Returns:
        the progress saved with the weights; None if there are no checkpoints.

    Raises:
        InputError: if the given checkpoint is damaged or absent, all are damaged, a checkpoint is a link, or they are
            of another network.
        OSError: if a checkpoint cannot be read, perhaps only temporarily.
    """
    if checkpoint != LATEST:
        return checkpoint_files.read(_chosen(workdir, checkpoint), bilm, slots)
    _refuse_links(workdir)
    damaged: dict[pathlib.Path, DamagedError] = {}
    # Listed again each time: a training in progress adds and removes checkpoints.
    while untried := [path for path in _checkpoints(workdir) if path not in damaged]:
        try:
            return checkpoint_files.read(untried[-1], bilm, slots)
        except DamagedError as error:
            damaged[untried[-1]] = error
            if len(untried) > 1 and untried[-1].exists():
                _log.warning("warning: %s; going back to the checkpoint before it", error)
    if damaged:
        newest = next(iter(damaged.values()))
        raise DamagedError(newest.subject, f"{newest.problem}; no checkpoint of this workdir is intact")
    return None


def latest(workdir: Workdir) -> pathlib.Path | None:
    """Returns the newest checkpoint's folder, or None."""
    return max(_checkpoints(workdir), key=_step, default=None)


def steps(workdir: Workdir) -> list[int]:
    """Returns the steps of all checkpoints, in order."""
    return [_step(path) for path in _checkpoints(workdir)]


def folder_of(workdir: Workdir, step: int) -> pathlib.Path:
    """Returns the folder for the checkpoint of `step`."""
    return workdir.path / CHECKPOINTS_FOLDER / f"step-{step:08d}"


def _chosen(workdir: Workdir, checkpoint: str) -> pathlib.Path:
    """Returns the folder of the best checkpoint or of a step."""
    path = workdir.path / CHECKPOINTS_FOLDER / f"step-{checkpoint:0>8}"
    if checkpoint and _NAME.fullmatch(path.name) and _is_folder(path):
        return path
    existing = steps(workdir)
    if checkpoint == BEST:
        best = metrics_file.best(metrics_file.evaluations(workdir.metrics), existing)
        if best is None:
            raise InputError("checkpoint", f"{workdir.path} has no evaluation on held-out text to choose the best by")
        return folder_of(workdir, best.step)
    known = ", ".join(map(str, existing)) or "(there are none)"
    raise InputError("checkpoint", f"{LATEST}, {BEST} or one of the steps {known}", repr(checkpoint))


def _obsolete(
    workdir: Workdir, step: int, existing: Collection[int], evaluations: Sequence[HeldoutLine]
) -> list[pathlib.Path]:
    """Returns the checkpoints, of the `existing` steps, that are no longer needed once that of `step` is written."""
    earlier = sorted(number for number in existing if number <= step)
    kept = set(earlier[-workdir.config.train.keep_checkpoints :])
    for text in {evaluation.heldout for evaluation in evaluations}:
        if best := metrics_file.best([line for line in evaluations if line.heldout == text], existing):
            kept.add(best.step)
    return [folder_of(workdir, number) for number in earlier if number not in kept]


def _removal_path(folder: pathlib.Path) -> pathlib.Path:
    """Returns the name of a checkpoint while it is removed."""
    return folder.with_name(f".{folder.name}.removed")


def _checkpoints(workdir: Workdir) -> list[pathlib.Path]:
    return sorted(_folders(workdir, _NAME), key=_step)


def _folders(workdir: Workdir, name: re.Pattern[str]) -> list[pathlib.Path]:
    """Returns the folders of that name among the checkpoints, not files or links."""
    return [path for path in _contents(workdir) if name.fullmatch(path.name) and _is_folder(path)]


def _contents(workdir: Workdir) -> list[pathlib.Path]:
    folder = workdir.path / CHECKPOINTS_FOLDER
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_folder(path: pathlib.Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _refuse_links(workdir: Workdir) -> None:
    """Raises `InputError` if a link has a checkpoint's name: it would be ignored silently."""
    for path in _contents(workdir):
        if _NAME.fullmatch(path.name) and path.is_symlink():
            raise InputError(str(path), "a link with a checkpoint's name; a checkpoint has to be a folder")


def _step(path: pathlib.Path) -> int:
    return int(path.name.removeprefix("step-"))
