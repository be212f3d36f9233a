"""A workdir: the configuration, the vocabulary, and checkpoints that are either whole or not there.

WORKDIR/config.json                     the Config
        vocab.txt                       the softmax's words; absent if there is no softmax
        checkpoints/step-00000500/      see `snapshots`
        metrics.jsonl                   every step's losses, every evaluation; see `metrics_file`
        logs/                           TensorBoard
        .lock                           held by the run that trains here; see `lock`
"""

import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.training import metrics_file, snapshots
from elmo_tf.training.optimizer import Optimizer
from elmo_tf.training.snapshots import Progress

CONFIG_FILE = "config.json"
VOCABULARY_FILE = "vocab.txt"
CHECKPOINTS_FOLDER = "checkpoints"
LOGS_FOLDER = "logs"
LATEST, BEST = "latest", "best"
_PREFIX = "step-"

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Workdir:
    """A folder that `new_workdir` made; an `os.PathLike`."""

    path: pathlib.Path
    config: config_lib.Config
    vocabulary: vocabulary_lib.Vocabulary | None

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def logs(self) -> pathlib.Path:
        """TensorBoard's log folder."""
        return self.path / LOGS_FOLDER

    @property
    def metrics(self) -> pathlib.Path:
        """The file of every step's losses and every evaluation."""
        return self.path / metrics_file.FILE

    def new_bilm(self, product_dtype: str = "float32", with_softmax: bool = True) -> BiLM:
        """Returns the network of the configuration with random weights; with a softmax if there is a vocabulary."""
        vocab_size = len(self.vocabulary) if self.vocabulary and with_softmax else None
        bilm = BiLM(self.config.model, vocab_size, product_dtype)
        if bilm.softmax is not None and self.config.train.initial_softmax == "log_uniform":
            bilm.softmax.start_log_uniform()
        return bilm

    def trained_bilm(self, argument: str = "--workdir", which: str = LATEST, with_softmax: bool = True) -> BiLM:
        """Returns the network with a checkpoint's weights, as `load` chooses it; `InputError` if there is none."""
        return self.trained(argument, which, with_softmax)[0]

    def trained(
        self, argument: str = "--workdir", which: str = LATEST, with_softmax: bool = True
    ) -> tuple[BiLM, Progress]:
        """Returns what `trained_bilm` does, and the progress saved with it."""
        bilm = self.new_bilm(with_softmax=with_softmax)
        progress = load(self, bilm, which=which)
        if progress is None:
            raise InputError(f"{argument}: expected a workdir with a checkpoint, found none in {self.path}")
        return bilm, progress


@contextlib.contextmanager
def new_workdir(
    path: str | os.PathLike, config: config_lib.Config, vocabulary: vocabulary_lib.Vocabulary | None
) -> Iterator[Workdir]:
    """Gives a new workdir to fill; it stands at `path` when the block is left, or nothing does if that is by an error.

    Raises:
        InputError: if something stands at `path` already.
    """
    with staging.new_folder(path, "--workdir") as folder:
        (folder / CONFIG_FILE).write_bytes(_to_json(config))
        if vocabulary is not None:
            (folder / VOCABULARY_FILE).write_bytes(vocabulary.to_bytes())
        yield Workdir(folder, config, vocabulary)


def exists(path: str | os.PathLike) -> bool:
    """Whether there is a workdir at `path`."""
    return (pathlib.Path(path) / CONFIG_FILE).is_file()


def update_config(workdir: Workdir) -> None:
    """Writes the configuration of `workdir` to its folder, in one go, if it is another one."""
    file, content = workdir.path / CONFIG_FILE, _to_json(workdir.config)
    if file.read_bytes() != content:
        staging.write_file(file, content)


def open_workdir(path: str | os.PathLike, argument: str = "--workdir") -> Workdir:
    """Returns the workdir at `path`; raises `InputError`, naming `argument`, if there is none."""
    folder = pathlib.Path(path)
    if not exists(folder):
        raise InputError(f"{argument}: expected a workdir of `elmo-tf train`, found no {CONFIG_FILE} in {folder}")
    try:
        values = json.loads((folder / CONFIG_FILE).read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{argument}: expected JSON, found {error}: {folder / CONFIG_FILE}") from None
    config = config_lib.from_dict(values)
    source = folder / VOCABULARY_FILE
    vocabulary = vocabulary_lib.from_bytes(source.read_bytes(), str(source)) if source.exists() else None
    return Workdir(folder, config, vocabulary)


def save(workdir: Workdir, bilm: BiLM, optimizer: Optimizer | None, progress: Progress) -> pathlib.Path:
    """Writes a checkpoint, whole or not at all, and removes those that need not be kept.

    The newest `train.keep_checkpoints` stay, and the one with the best held-out perplexity.

    Raises:
        OSError: if it cannot be written; the checkpoints there are stay as they are.
    """
    folder = _folder(workdir, progress.step)
    staged = folder.with_name(f".{folder.name}.incomplete")
    for left in folder.parent.glob(".*"):  # of a process that was killed
        shutil.rmtree(left)
    try:
        snapshots.write(staged, bilm, optimizer, progress)
        if folder.exists():
            _remove(folder)
        os.replace(staged, folder)
        staging.sync(folder.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    _prune(workdir, progress.step)
    return folder


def load(workdir: Workdir, bilm: BiLM, optimizer: Optimizer | None = None, which: str = LATEST) -> Progress | None:
    """Reads a checkpoint into `bilm` and, if given, `optimizer`.

    Args:
        which: `"latest"`: the newest that is intact, with a warning about newer ones that are not; `"best"`: the one
            with the lowest held-out perplexity; or a step.

    Returns:
        the progress saved with them; None if there is no checkpoint at all.

    Raises:
        InputError: if the one asked for is damaged or not there, or all are damaged.
    """
    if which != LATEST:
        return snapshots.read(_chosen(workdir, which), bilm, optimizer)
    damaged = []
    for path in reversed(_checkpoints(workdir)):
        try:
            progress = snapshots.read(path, bilm, optimizer)
        except InputError as error:
            damaged.append(error)
            continue
        for error in damaged:
            _log.warning("warning: %s; going back to the checkpoint of step %s", error, f"{progress.step:,}")
        return progress
    if damaged:
        more = f"; none of the {len(damaged)} checkpoints is intact" if len(damaged) > 1 else ""
        raise InputError(f"{damaged[0]}{more}")
    return None


def latest(workdir: Workdir) -> pathlib.Path | None:
    """Returns the newest checkpoint's folder, or None."""
    found = _checkpoints(workdir)
    return found[-1] if found else None


def provenance(workdir: Workdir, step: int) -> dict[str, Any]:
    """Returns what an export tells about the training: the step and the vocabulary."""
    words = workdir.vocabulary
    return {"step": step, "vocabulary": words and {"size": len(words), "sha256": words.sha256()}}


def _chosen(workdir: Workdir, which: str) -> pathlib.Path:
    steps = [_step(path) for path in _checkpoints(workdir)]
    best = metrics_file.best(metrics_file.evaluations(workdir.metrics), steps)
    if which == BEST and best is None:
        raise InputError(f"--checkpoint: expected an evaluation with --heldout for best, found none in {workdir.path}")
    step = best["step"] if which == BEST else which
    if str(step) not in map(str, steps):
        known = ", ".join(map(str, steps)) or "of which there are none"
        raise InputError(f"--checkpoint: expected {LATEST}, {BEST} or one of the steps {known}, found {which!r}")
    return _folder(workdir, int(step))


def _prune(workdir: Workdir, step: int) -> None:
    paths = _checkpoints(workdir)
    steps = [_step(path) for path in paths]
    later = {one for one in steps if one > step}  # they were damaged, or training would have gone on from them
    kept = set(sorted(set(steps) - later)[-workdir.config.train.keep_checkpoints :])
    if best := metrics_file.best(metrics_file.evaluations(workdir.metrics), steps):
        kept.add(best["step"])
    for path in paths:
        if _step(path) not in kept - later:
            _remove(path)


def _remove(folder: pathlib.Path) -> None:
    """Removes a checkpoint so that no part of it is ever taken for one."""
    gone = folder.with_name(f".{folder.name}.removed")
    os.replace(folder, gone)
    shutil.rmtree(gone)


def _to_json(config: config_lib.Config) -> bytes:
    return (json.dumps(config_lib.to_dict(config), indent=2) + "\n").encode()


def _checkpoints(workdir: Workdir) -> list[pathlib.Path]:
    return sorted((workdir.path / CHECKPOINTS_FOLDER).glob(f"{_PREFIX}*"), key=_step)


def _folder(workdir: Workdir, step: int) -> pathlib.Path:
    return workdir.path / CHECKPOINTS_FOLDER / f"{_PREFIX}{step:08d}"


def _step(path: pathlib.Path) -> int:
    return int(path.name.removeprefix(_PREFIX))
