"""Checkpoints that are written while training goes on."""

import threading
from typing import Any

from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.checkpoint_files import Snapshot
from elmo_tf.workdir.folder import Workdir


class CheckpointWriter:
    """Writes one checkpoint at a time, in a thread of its own.

    Args:
        workdir: where.
        saved_step: the step of the newest checkpoint there; None: there is none.

    Attributes:
        saved_step: the step of the newest checkpoint that is complete.
    """

    def __init__(self, workdir: Workdir, saved_step: int | None):
        self.saved_step = saved_step
        self._workdir = workdir
        self._thread: threading.Thread | None = None
        self._step: int | None = None
        self._error: Exception | None = None

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, snapshot: Snapshot, evaluations: list[dict[str, Any]]) -> None:
        """Starts to write a checkpoint; arguments as for `checkpoints.store`. `finish` has to be called before."""
        self._step = snapshot.progress.step
        # Not a daemon: a process that ends normally waits for it.
        self._thread = threading.Thread(target=self._write, args=(snapshot, list(evaluations)), name="checkpoint")
        self._thread.start()

    def finish(self) -> None:
        """Waits for the checkpoint that is being written, if there is one.

        Raises:
            OSError: if it could not be written; once.
        """
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        error, self._error = self._error, None
        if error is None:
            self.saved_step = self._step
        elif isinstance(error, OSError):
            raise OSError(f"the checkpoint of step {self._step:,} cannot be written: {error}") from error
        else:
            raise error

    def _write(self, snapshot: Snapshot, evaluations: list[dict[str, Any]]) -> None:
        try:
            checkpoints.store(self._workdir, snapshot, evaluations)
        except Exception as error:
            self._error = error
