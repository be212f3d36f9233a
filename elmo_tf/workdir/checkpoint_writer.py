"""Writes checkpoints in the background while training goes on."""

from collections.abc import Sequence
from concurrent import futures

from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.checkpoint_files import Snapshot
from elmo_tf.workdir.folder import Workdir
from elmo_tf.workdir.metrics_file import HeldoutLine


class CheckpointWriter:
    """Writes one checkpoint at a time, in a thread; a process that ends normally waits for it.

    Args:
        workdir: the workdir to write to.

    Attributes:
        saved_step: step of the newest complete checkpoint, once one is written or set here.
    """

    def __init__(self, workdir: Workdir):
        self.saved_step: int | None = None
        self._workdir = workdir
        self._pool = futures.ThreadPoolExecutor(1, "checkpoint")
        self._writing: tuple[int, futures.Future] | None = None

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._writing is not None and not self._writing[1].done()

    def start(self, snapshot: Snapshot, evaluations: Sequence[HeldoutLine]) -> None:
        """Starts writing; arguments as for `checkpoints.store`. Call `finish` first."""
        task = self._pool.submit(checkpoints.store, self._workdir, snapshot, list(evaluations))
        self._writing = snapshot.progress.step, task

    def finish(self) -> None:
        """Waits for the checkpoint that is being written, if any; raises `OSError` if it cannot be written."""
        if self._writing is None:
            return
        (step, task), self._writing = self._writing, None
        try:
            task.result()
        except OSError as error:
            raise OSError(f"the checkpoint of step {step:,} cannot be written: {error}") from error
        self.saved_step = step
