"""The checkpoints of a workdir: each is either complete or absent.

Whatever else is in `checkpoints/` belongs to somebody else: it is neither read nor deleted.
"""

import logging
import os
import pathlib
import re
import shutil
from collections.abc import Collection, Iterable
from typing import Any

from elmo_tf.bilm.model import BiLM
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.workdir import checkpoint_files, metrics_file, space
from elmo_tf.workdir.checkpoint_files import DamagedError, Progress, Slots, Snapshot
from elmo_tf.workdir.folder import LATEST, Workdir

CHECKPOINTS_FOLDER = "checkpoints"
BEST = "best"
# A checkpoint, and what a killed process leaves of one.
_NAME = re.compile(r"step-(\d{8}|[1-9]\d{8,})")
_LEFT = re.compile(r"\.step-\d{8,}\.(incomplete|removed)")

_log = logging.getLogger("elmo_tf")


def save(workdir: Workdir, bilm: BiLM, slots: Slots | None, progress: Progress) -> pathlib.Path:
    """Writes a checkpoint as `store` does, and returns its folder."""
    return store(
        workdir, checkpoint_files.take_snapshot(bilm, slots, progress), metrics_file.evaluations(workdir.metrics)
    )


def store(workdir: Workdir, snapshot: Snapshot, evaluations: list[dict[str, Any]]) -> pathlib.Path:
    """Writes a checkpoint, completely or not at all, and removes the ones that need not be kept.

    The newest `train.keep_checkpoints` are kept, and the one with the best perplexity on each held-out text, or part of
    one, that has been evaluated. Of later steps only damaged ones are removed.

    Args:
        workdir: where.
        snapshot: what to write.
        evaluations: of the workdir so far.

    Returns:
        the checkpoint's folder.

    Raises:
        OSError: if it cannot be written; the other checkpoints stay as they are. If one of them cannot be removed, that
            is only a warning.
    """
    step = snapshot.progress.step
    folder, there = folder_of(workdir, step), steps(workdir)
    if os.path.lexists(folder) and step not in there:
        raise OSError(f"something that is not a checkpoint is in its place: {folder}")
    staged, replaced = folder.with_name(f".{folder.name}.incomplete"), _gone(folder)
    unneeded = [*_folders(workdir, _LEFT), replaced, *_unneeded(workdir, step, {*there, step}, evaluations)]
    for left in _folders(workdir, _LEFT):
        shutil.rmtree(left, ignore_errors=True)
    try:
        checkpoint_files.write(staged, snapshot)
        if folder.exists():
            os.replace(folder, replaced)
        os.replace(staged, folder)
        staging.sync(folder.parent)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if isinstance(error, OSError):
            raise space.explained(error, folder.parent, snapshot.num_bytes) from error
        raise
    _remove(unneeded)
    return folder


def load(workdir: Workdir, bilm: BiLM, slots: Slots | None = None, which: str = LATEST) -> Progress | None:
    """Reads a checkpoint into `bilm` and, if given, `slots`.

    Args:
        workdir: where.
        bilm: gets the weights.
        slots: get the optimizer's values.
        which: `"latest"`: the newest that is intact, with a warning about newer ones that are not; `"best"`: the one
            with the lowest held-out perplexity; or a step.

    Returns:
        the progress saved with them; None if there is no checkpoint at all.

    Raises:
        InputError: if the one asked for is damaged or absent, all are damaged, a link is in the place of one, or they
            are of another network.
        OSError: if one cannot be read, which may be different the next time.
    """
    if which != LATEST:
        return checkpoint_files.read(_chosen(workdir, which), bilm, slots)
    _refuse_links(workdir)
    damaged: dict[pathlib.Path, DamagedError] = {}
    # Listed again each time: a training that goes on writes new checkpoints and removes old ones.
    while untried := [path for path in _checkpoints(workdir) if path not in damaged]:
        try:
            progress = checkpoint_files.read(untried[-1], bilm, slots)
        except DamagedError as error:
            damaged[untried[-1]] = error
            continue
        for path, error in damaged.items():
            if path.exists():
                _log.warning("warning: %s; going back to the checkpoint of step %s", error, f"{progress.step:,}")
        return progress
    if damaged:
        first = next(iter(damaged.values()))
        more = f"; none of the {len(damaged)} checkpoints is intact" if len(damaged) > 1 else ""
        raise DamagedError(first.parameter, first.expected, f"{first.found}{more}")
    return None


def latest(workdir: Workdir) -> pathlib.Path | None:
    """Returns the newest checkpoint's folder, or None."""
    found = _checkpoints(workdir)
    return found[-1] if found else None


def provenance(workdir: Workdir, step: int) -> dict[str, Any]:
    """Returns what an export records about the training: the step and the vocabulary."""
    words = workdir.vocabulary
    return {"step": step, "vocabulary": words and {"size": len(words), "sha256": words.sha256()}}


def steps(workdir: Workdir) -> list[int]:
    """Returns the steps that have a checkpoint, in order."""
    return [_step(path) for path in _checkpoints(workdir)]


def folder_of(workdir: Workdir, step: int) -> pathlib.Path:
    """Returns the folder of the checkpoint of `step`, whether it exists or not."""
    return workdir.path / CHECKPOINTS_FOLDER / f"step-{step:08d}"


def _chosen(workdir: Workdir, which: str) -> pathlib.Path:
    """Returns the folder of the best checkpoint or of a step."""
    path = workdir.path / CHECKPOINTS_FOLDER / f"step-{which:0>8}"
    if _NAME.fullmatch(path.name) and _is_folder(path):
        return path
    there = steps(workdir)
    if which == BEST:
        best = metrics_file.best(metrics_file.evaluations(workdir.metrics), there)
        if best is None:
            raise InputError("which", "an evaluation on held-out text for best", f"none in {workdir.path}")
        return folder_of(workdir, best["step"])
    known = ", ".join(map(str, there)) or "of which there are none"
    raise InputError("which", f"{LATEST}, {BEST} or one of the steps {known}", repr(which))


def _unneeded(
    workdir: Workdir, step: int, there: Collection[int], evaluations: list[dict[str, Any]]
) -> list[pathlib.Path]:
    """Returns the checkpoints, of the steps `there`, that need not be kept once that of `step` is written."""
    earlier = sorted(one for one in there if one <= step)
    kept = set(earlier[-workdir.config.train.keep_checkpoints :])
    for text in {one["heldout"] for one in evaluations}:
        if best := metrics_file.best([one for one in evaluations if one["heldout"] == text], there):
            kept.add(best["step"])
    # Training did not resume from a later one: it is damaged, or a network file system showed it late.
    gone = {one for one in there if (one not in kept if one <= step else _is_damaged(folder_of(workdir, one)))}
    return [folder_of(workdir, one) for one in sorted(gone)]


def _is_damaged(folder: pathlib.Path) -> bool:
    try:
        checkpoint_files.check(folder)
    except DamagedError:
        return True
    except OSError:
        pass
    return False


def _remove(folders: Iterable[pathlib.Path]) -> None:
    """Removes those that exist so that no part of one is ever taken for a checkpoint; warns if that fails."""
    failed = []
    for folder in folders:
        try:
            gone = _gone(folder) if _NAME.fullmatch(folder.name) else folder
            if gone != folder:
                os.replace(folder, gone)
            if gone.exists():
                shutil.rmtree(gone)
        except OSError as error:
            failed.append(error)
    if failed:
        _log.warning("warning: old checkpoints cannot be removed: %s; the next checkpoint tries again", failed[0])


def _gone(folder: pathlib.Path) -> pathlib.Path:
    """Returns where a checkpoint is put while it is removed."""
    return folder.with_name(f".{folder.name}.removed")


def _checkpoints(workdir: Workdir) -> list[pathlib.Path]:
    return sorted(_folders(workdir, _NAME), key=_step)


def _folders(workdir: Workdir, name: re.Pattern[str]) -> list[pathlib.Path]:
    """Returns the folders of that name among the checkpoints; files and links are not ours."""
    place = workdir.path / CHECKPOINTS_FOLDER
    found = place.iterdir() if place.is_dir() else ()
    return [path for path in found if name.fullmatch(path.name) and _is_folder(path)]


def _is_folder(path: pathlib.Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _refuse_links(workdir: Workdir) -> None:
    """Raises `InputError` if a link has a checkpoint's name: its checkpoint would be passed over without a word."""
    place = workdir.path / CHECKPOINTS_FOLDER
    for path in place.iterdir() if place.is_dir() else ():
        if _NAME.fullmatch(path.name) and path.is_symlink():
            raise InputError("workdir", "checkpoints that are folders", f"a link: {path}")


def _step(path: pathlib.Path) -> int:
    return int(path.name.removeprefix("step-"))
