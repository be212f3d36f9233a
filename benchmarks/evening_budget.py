"""A budget of CPU time, and a training that stops when it is spent: for `evening.py`."""

import json
import pathlib
import shutil
from collections.abc import Callable

from benchmarks import measuring
from elmo_tf.files import stores

_SAVE_SECONDS = 300  # of CPU time, between two saves


class Budget:
    """The CPU time of a system's training over all its runs, kept in `budget.json` of its folder.

    Args:
        folder: of the system.
        seconds: of CPU time that the training may take, its child processes included.
        cpu_seconds: returns those of this process.
    """

    def __init__(self, folder: pathlib.Path, seconds: float, cpu_seconds: Callable[[], float] = measuring.cpu_seconds):
        self._path, self._seconds, self._cpu_seconds = folder / "budget.json", seconds, cpu_seconds
        self._earlier = json.loads(self._path.read_bytes())["seconds"] if self._path.exists() else 0.0
        self._started_at = cpu_seconds()

    @property
    def spent(self) -> float:
        """The CPU seconds spent."""
        return self._earlier + self._cpu_seconds() - self._started_at

    @property
    def fraction(self) -> float:
        """The share of the budget that is spent; above 1 if the last step took too long."""
        return self.spent / self._seconds

    @property
    def left(self) -> float:
        """The CPU seconds left; below 0 if the last step took too long."""
        return self._seconds - self.spent

    def save(self) -> None:
        """Keeps what is spent. Call it whenever the state is saved, so that a resumed run begins with both."""
        stores.write(self._path, json.dumps({"seconds": self.spent}).encode())


def spend(
    budget: Budget, folder: pathlib.Path, step: Callable[[float], None], save: Callable[[pathlib.Path], None]
) -> None:
    """Trains until the budget is spent, for at least one step.

    Args:
        budget: what may be spent.
        folder: `folder/state` gets the newest state.
        step: a step of the training, given the share of the budget that is spent.
        save: writes the state into an empty folder.
    """
    while budget.left > 0 or not (folder / "state").exists():
        save_at = budget.spent + _SAVE_SECONDS
        while True:
            step(min(1, budget.fraction))
            if budget.left <= 0 or budget.spent >= save_at:
                break
        unfinished = folder / "state.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        save(unfinished)
        shutil.rmtree(folder / "state", ignore_errors=True)
        unfinished.rename(folder / "state")
        budget.save()
        print(f"{budget.fraction:.0%} of the budget", flush=True)
