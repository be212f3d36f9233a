"""The checkpoints of a workdir: each is either complete or absent.

Other files and folders in `checkpoints/` are neither read nor deleted.
"""

import logging
import os
import pathlib
import re
import shutil
from collections.abc import Collection, Sequence

from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.model.bilm import BiLM
from elmo_tf.workdir import checkpoint_files, metrics_file
from elmo_tf.workdir.checkpoint_files import DamagedError, Slots, Snapshot
from elmo_tf.workdir.checkpoint_progress import Progress
from elmo_tf.workdir.folder import LATEST, Workdir
from elmo_tf.workdir.metrics_file import HeldoutLine

CHECKPOINTS_FOLDER = "checkpoints"
BEST = "best"
# A checkpoint, and an incomplete one that a killed process left.
_NAME = re.compile(r"step-(\d{8}|[1-9]\d{8,})")
_LEFT = re.compile(r"\.step-\d{8,}\.(incomplete|removed)")

_log = logging.getLogger("elmo_tf")


def save(workdir: Workdir, bilm: BiLM, slots: Slots | None, progress: Progress) -> pathlib.Path:
    """Takes a snapshot of the variables and stores it, as `store` does."""
    snapshot = checkpoint_files.take_snapshot(bilm, slots, progress)
    return store(workdir, snapshot, metrics_file.evaluations(workdir.metrics))


def store(workdir: Workdir, snapshot: Snapshot, evaluations: Sequence[HeldoutLine]) -> pathlib.Path:
    """Writes a checkpoint, completely or not at all, and removes those that are no longer needed.

    The newest `train.keep_checkpoints` are kept, those of later steps, and the best on each held-out text, or part of
    one, that was evaluated.

    Raises:
        OSError: if it cannot be written; the other checkpoints stay then.
    """
    step = snapshot.progress.step
    folder, there = folder_of(workdir, step), steps(workdir)
    if os.path.lexists(folder) and step not in there:
        raise OSError(f"{folder} exists and is not a checkpoint")
    staged = folder.with_name(f".{folder.name}.incomplete")
    unneeded = _unneeded(workdir, step, {*there, step}, evaluations)
    for left in _folders(workdir, _LEFT):
        shutil.rmtree(left, ignore_errors=True)
    try:
        checkpoint_files.write(staged, snapshot)
        if folder.exists():
            os.replace(folder, _gone(folder))
        os.replace(staged, folder)
        staging.sync(folder.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    try:
        # Renamed first, so that none is left in part.
        for one in unneeded:
            os.replace(one, _gone(one))
        for left in _folders(workdir, _LEFT):
            shutil.rmtree(left)
    except OSError as error:
        _log.warning("warning: old checkpoints cannot be removed: %s; the next checkpoint tries again", error)
    return folder


def load(workdir: Workdir, bilm: BiLM, slots: Slots | None = None, checkpoint: str = LATEST) -> Progress | None:
    """Reads a checkpoint into `bilm` and, if given, `slots`.

    Args:
        workdir, bilm, slots: where to read from, and what to read into.
        checkpoint: `"latest"`: the newest intact one, with a warning about newer damaged ones; `"best"`: the one with
            the lowest held-out perplexity; or a step.

    Returns:
        the progress saved with the weights; None if there are no checkpoints.

    Raises:
        InputError: if the checkpoint asked for is damaged or absent, all are damaged, one is a link, or they are of
            another network.
        OSError: if one cannot be read, perhaps only temporarily.
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
        raise next(iter(damaged.values()))
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
    there = steps(workdir)
    if checkpoint == BEST:
        best = metrics_file.best(metrics_file.evaluations(workdir.metrics), there)
        if best is None:
            raise InputError("checkpoint", "an evaluation on held-out text for best", f"none in {workdir.path}")
        return folder_of(workdir, best.step)
    known = ", ".join(map(str, there)) or "of which there are none"
    raise InputError("checkpoint", f"{LATEST}, {BEST} or one of the steps {known}", repr(checkpoint))


def _unneeded(
    workdir: Workdir, step: int, there: Collection[int], evaluations: Sequence[HeldoutLine]
) -> list[pathlib.Path]:
    """Returns the checkpoints, of the steps `there`, that are no longer needed once that of `step` is written."""
    earlier = sorted(one for one in there if one <= step)
    kept = set(earlier[-workdir.config.train.keep_checkpoints :])
    for text in {one.heldout for one in evaluations}:
        if best := metrics_file.best([one for one in evaluations if one.heldout == text], there):
            kept.add(best.step)
    return [folder_of(workdir, one) for one in earlier if one not in kept]


def _gone(folder: pathlib.Path) -> pathlib.Path:
    """Returns the name of a checkpoint while it is removed."""
    return folder.with_name(f".{folder.name}.removed")


def _checkpoints(workdir: Workdir) -> list[pathlib.Path]:
    return sorted(_folders(workdir, _NAME), key=_step)


def _folders(workdir: Workdir, name: re.Pattern[str]) -> list[pathlib.Path]:
    """Returns the folders of that name among the checkpoints, not files or links."""
    return [path for path in _contents(workdir) if name.fullmatch(path.name) and _is_folder(path)]


def _contents(workdir: Workdir) -> list[pathlib.Path]:
    place = workdir.path / CHECKPOINTS_FOLDER
    return list(place.iterdir()) if place.is_dir() else []


def _is_folder(path: pathlib.Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _refuse_links(workdir: Workdir) -> None:
    """Raises `InputError` if a link has a checkpoint's name: it would be ignored silently."""
    for path in _contents(workdir):
        if _NAME.fullmatch(path.name) and path.is_symlink():
            raise InputError(str(path), "a checkpoint's folder", "a link")


def _step(path: pathlib.Path) -> int:
    return int(path.name.removeprefix("step-"))
