"""An output folder while it is made: what is done already, so that a run that was killed can be gone on with.

FOLDER/_unfinished/plan.json         what was asked for: only the same command goes on with it
                   PHASE-00012.json  what a task left behind that is done
                   PHASE-00012.beat  how far a task has come
FOLDER/_SUCCESS                      written last
"""

import contextlib
import json
import os
import pathlib
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from elmo_tf.errors import InputError
from elmo_tf.files import lock
from elmo_tf.records import record_folder
from pipelines.text import filesystems

UNFINISHED = "_unfinished"
_PLAN, _BEAT = "plan.json", ".beat"
_BEAT_SECONDS = 0.5


class Amount(NamedTuple):
    """How much was done."""

    bytes: int = 0
    sentences: int = 0
    tokens: int = 0
    reused_bytes: int = 0  # of an earlier run

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(*map(sum, zip(self, other, strict=True)))


class Journal(NamedTuple):
    """The notes in an output folder."""

    folder: str

    def path(self, name: str) -> str:
        """Returns the path of a file among the notes."""
        return filesystems.join(self.folder, UNFINISHED, name)

    def result(self, phase: str, number: int) -> Any | None:
        """Returns what a task left behind; None if it is not done."""
        path = self.path(f"{phase}-{number:05d}.json")
        return filesystems.read_json(path) if filesystems.exists(path) else None

    def done(self, phase: str, number: int, result: Any) -> None:
        """Notes that a task is done, all its files being in their places."""
        filesystems.write_json(self.path(f"{phase}-{number:05d}.json"), result)

    def forget(self, phase: str) -> None:
        """Deletes the results of a phase: none of its tasks is done."""
        names = filesystems.sizes(filesystems.join(self.folder, UNFINISHED))
        filesystems.delete(self.path(name) for name in names if name.startswith(f"{phase}-"))


class Beats:
    """What the tasks of a phase tell of how far they are. Of thousands of them, those are read that have changed."""

    def __init__(self, journal: Journal, phase: str):
        self._pattern = re.compile(rf"{phase}-\d+\{_BEAT}")
        self._folder = os.path.join(journal.folder, UNFINISHED)
        self._known: dict[str, tuple[int, Amount]] = {}

    def amount(self) -> Amount:
        """Returns what the tasks have done up to now."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if self._pattern.fullmatch(entry.name):
                    changed = entry.stat().st_mtime_ns
                    if self._known.get(entry.name, (None,))[0] != changed:
                        self._known[entry.name] = changed, Amount(*json.loads(pathlib.Path(entry.path).read_text()))
        return sum((amount for _, amount in self._known.values()), Amount())


class Beat:
    """Tells how far a task has come. Only in a local folder, where it costs nothing."""

    def __init__(self, journal: Journal, phase: str, number: int):
        self._path = journal.path(f"{phase}-{number:05d}{_BEAT}") if filesystems.is_local(journal.folder) else None
        self._amount = Amount()
        self._told = time.monotonic()

    def add(self, *amount: int) -> None:
        """Adds to the task's `Amount`."""
        self._amount += Amount(*amount)
        if time.monotonic() - self._told > _BEAT_SECONDS:
            self.tell()

    def tell(self) -> None:
        """Writes the amount down now."""
        self._told = time.monotonic()
        if self._path:
            with contextlib.suppress(OSError):  # a full disk is for the task itself to report
                pathlib.Path(f"{self._path}.new").write_text(json.dumps(self._amount))
                os.replace(f"{self._path}.new", self._path)


def check(folder: str, argument: str) -> None:
    """Raises `InputError`, naming `argument`, unless `folder` is absent, empty or unfinished."""
    filesystems.check_scheme(folder, argument)
    path = pathlib.Path(os.path.abspath(folder))
    if not filesystems.is_local(folder):
        is_free = not filesystems.match(filesystems.join(folder, "**"))
    else:  # with notes alone, a run was killed before it had written anything
        is_free = not os.path.lexists(path) or (
            path.is_dir() and {entry.name for entry in path.iterdir()} <= {UNFINISHED}
        )
    if not is_free and plan_of(folder) is None:
        raise _exists(folder, argument)


@contextlib.contextmanager
def unfinished(outputs: dict[str, str], plan: dict[str, Any]) -> Iterator[bool]:
    """Keeps output folders, each of which `check` has passed, until they are finished.

    Once the block has ended without an exception, the folders get their markers. After an `InputError` neither they nor
    parents made for them are left. After anything else they stay as they are, and `unfinished` with the same plan
    goes on with them.

    Args:
        outputs: the folders, by the argument that names each.
        plan: all that what is written depends on, as JSON.

    Yields:
        Whether an earlier run is gone on with. If not, the folders are empty but for the notes.

    Raises:
        InputError: if a folder cannot be made, another run is writing it, or has finished it since `check`.
    """
    with contextlib.ExitStack() as stack:
        made = _make(outputs.values())
        try:
            for argument, folder in outputs.items():
                stack.enter_context(_locked(folder, argument))
            resumed = all(plan_of(folder) == plan for folder in outputs.values())
            for argument, folder in outputs.items():
                if not resumed and filesystems.exists(filesystems.join(folder, record_folder.MARKER_FILE)):
                    raise _exists(folder, argument)
        except InputError:
            _remove(made)
            raise
        try:
            for folder in outputs.values():
                _begin(folder, plan, resumed)
            yield resumed
            for folder in outputs.values():
                filesystems.write(filesystems.join(folder, record_folder.MARKER_FILE), b"")
        except InputError:
            if not resumed:  # else work of an earlier run is in there
                for folder in outputs.values():
                    filesystems.delete_folder(folder)
                _remove(made)
            raise
        for folder in outputs.values():
            filesystems.delete([Journal(folder).path(_PLAN)])  # first: without it nobody goes on with the other notes
        for folder in outputs.values():
            filesystems.delete_folder(filesystems.join(folder, UNFINISHED))


def _exists(folder: str, argument: str) -> InputError:
    found = "a finished one" if filesystems.exists(filesystems.join(folder, record_folder.MARKER_FILE)) else "one"
    return InputError(f"{argument}: expected a folder that does not exist yet, found {found}: {folder}")


def plan_of(folder: str) -> dict[str, Any] | None:
    """Returns the plan of an unfinished folder; None if it is none, and an empty one if nobody can go on with it."""
    path = Journal(folder).path(_PLAN)
    return filesystems.read_json(path) if filesystems.exists(path) else None


def _make(folders: Iterable[str]) -> list[pathlib.Path]:
    """Makes local folders, and one for notes in each; returns all that were made. Stores in the network need none."""
    made: list[pathlib.Path] = []
    for folder in filter(filesystems.is_local, folders):
        notes = pathlib.Path(os.path.abspath(folder), UNFINISHED)
        missing = [path for path in (notes, *notes.parents) if not path.exists()]
        try:
            notes.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _remove(made + missing)
            raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
        made.extend(missing)
    return made


def _remove(folders: list[pathlib.Path]) -> None:
    """Removes those folders that are empty."""
    for path in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()


def _begin(folder: str, plan: dict[str, Any], resumed: bool) -> None:
    """Deletes what an earlier run left, all of it or just what no run can use, and notes the plan."""
    path = Journal(folder).path(_PLAN)
    if not resumed:
        filesystems.write_json(
            path, {}
        )  # nobody's plan: a run that is killed from here on leaves nothing to go on with
    _clear(folder, everything=not resumed)
    filesystems.write_json(path, plan)


def _clear(folder: str, everything: bool) -> None:
    notes = filesystems.join(folder, UNFINISHED)
    for place in (notes, folder):
        for name in filesystems.sizes(place):
            is_old = name != _PLAN if place == notes else record_folder.is_own_file(name)
            of_no_use = name.endswith(_BEAT) or name == record_folder.MARKER_FILE or filesystems.is_left_over(name)
            if of_no_use or (everything and is_old):
                filesystems.delete([filesystems.join(place, name)])


@contextlib.contextmanager
def _locked(folder: str, argument: str) -> Iterator[None]:
    """Keeps other runs on this machine out of a folder."""
    if not filesystems.is_local(folder):
        yield
        return
    notes = os.open(os.path.join(folder, UNFINISHED), os.O_RDONLY)
    if not lock.acquire(notes, folder):
        os.close(notes)
        raise InputError(f"{argument}: expected a folder of its own, found one that is being written: {folder}")
    try:
        yield
    finally:
        os.close(notes)
