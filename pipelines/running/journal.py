"""The journal of an unfinished output folder: what is done already, so that a killed run can be resumed.

FOLDER/_unfinished/plan.json             what was asked for: only a command with the same plan resumes; and the run's id
                   PHASE-00012.RUN.json  the result of a finished task
                   PHASE-00012.RUN.beat  the progress of a task
                   PHASE-tasks.RUN.json, PHASE-results.RUN.json: see `do_once`
                   owner.json            who writes the folder, if it is in a remote store
                   job.json              the last job on a cluster, until it has ended
FOLDER/_SUCCESS                          written last

RUN is the id. Workers of an earlier run that still write do not reach the files of another run.
"""

import contextlib
import os
import pathlib
import re
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from elmo_tf.errors import InputError, renamed
from elmo_tf.files import lock, staging
from elmo_tf.files.json_file import Object, Schema
from elmo_tf.pipelines.text import filesystems
from elmo_tf.records import record_folder

UNFINISHED = "_unfinished"
PROGRESS_ENDING = ".beat"
JOB = "job.json"
_OWNER = "owner.json"
_RUN = "run"  # the key of the id in a plan
_PLAN = "plan.json"
_KEPT = (_PLAN, JOB, _OWNER)


class Journal(NamedTuple):
    """The journal of a run in an output folder. Variables of this type are called `notes`."""

    folder: str
    run: str = ""  # its id

    @property
    def mark(self) -> str:
        """What stands before the ending of every file of the run."""
        return f".{self.run}" if self.run else ""

    def path(self, name: str) -> str:
        """Returns the path of a file of the run."""
        stem, ending = os.path.splitext(name)
        return shared_path(self.folder, f"{stem}{self.mark}{ending}")

    def result(self, phase: str, number: int, schema: Schema) -> Any | None:
        """Returns the result of a task; None if there is none, or it is damaged or does not fit the schema."""
        path = self._result_path(phase, number)
        return filesystems.read_json(path, schema) if filesystems.exists(path) else None

    def numbers(self, phase: str) -> set[int]:
        """Returns the numbers of the tasks with a result, by one question to the store."""
        name = re.compile(rf"{re.escape(phase)}-(\d+){re.escape(self.mark)}\.json")
        found = map(name.fullmatch, filesystems.sizes(filesystems.join(self.folder, UNFINISHED)))
        return {int(match[1]) for match in found if match}

    def done(self, phase: str, number: int, result: Any) -> None:
        """Records that a task is done and all its files are complete."""
        filesystems.write_json(self._result_path(phase, number), result)

    def forget(self, phase: str) -> None:
        """Deletes the results of a phase, so that none of its tasks counts as done."""
        names = filesystems.sizes(filesystems.join(self.folder, UNFINISHED))
        filesystems.delete(shared_path(self.folder, name) for name in names if name.startswith(f"{phase}-"))

    def _result_path(self, phase: str, number: int) -> str:
        return self.path(f"{phase}-{number:05d}.json")


def shared_path(folder: str, name: str) -> str:
    """Returns the path of a file among the notes that belongs to no single run."""
    return filesystems.join(folder, UNFINISHED, name)


def opened(folder: str) -> Journal:
    """Returns the journal of the run that writes `folder`. Call it in the process that started the run."""
    return Journal(folder, str((_read_plan(folder) or {}).get(_RUN, "")))


def check(folder: str) -> None:
    """Raises `InputError` unless `folder` does not exist, is empty or is unfinished."""
    with renamed(path="folder"):
        filesystems.check_store(folder)
    path = pathlib.Path(os.path.abspath(folder))
    if not filesystems.is_local(folder):
        notes = filesystems.join(folder, UNFINISHED) + "/"
        found = filesystems.match(filesystems.join(folder, "**"))
        is_free = all(file.path.startswith(notes) for file in found)
    else:
        # A folder with nothing but a journal is that of a run that was killed before it wrote anything.
        is_free = not os.path.lexists(path) or (
            path.is_dir() and {entry.name for entry in path.iterdir()} <= {UNFINISHED}
        )
    if not is_free and plan_of(folder) is None:
        if is_marked(folder):
            # Of a run that was killed while it tidied up.
            filesystems.delete_folder(filesystems.join(folder, UNFINISHED))
        raise _exists(folder)


def is_marked(folder: str) -> bool:
    """Whether a folder has the marker of a finished one."""
    return filesystems.exists(filesystems.join(folder, record_folder.MARKER_FILE))


@contextlib.contextmanager
def unfinished(
    outputs: dict[str, str], plan: dict[str, Any], end_job: Callable[[str], None] | None = None
) -> Iterator[bool]:
    """Keeps output folders unfinished until the block ends. Call `check` on each before.

    The folders get their markers when the block ends without an exception. After an `InputError` neither they nor
    parents made for them remain. After any other exception they stay as they are, and `unfinished` with the same plan
    resumes.

    Args:
        outputs: the folders, by the parameter that gave each.
        plan: everything that the contents of the folders depend on, as JSON.
        end_job: ends the job of an earlier run, given the path of its note, or raises; called before anything changes.

    Yields:
        Whether this resumes an earlier run. If not, the folders are empty except for the journal.

    Raises:
        InputError: naming the parameter, if a folder cannot be made, another run is writing it, or one has finished it
            since `check`.
    """
    with contextlib.ExitStack() as stack:
        made = _make(outputs)
        try:
            for parameter, folder in outputs.items():
                stack.enter_context(locked(folder, parameter))
            resumed = all([_has_plan(folder, plan, parameter) for parameter, folder in outputs.items()])
            for parameter, folder in outputs.items():
                if not resumed and is_marked(folder):
                    with renamed(folder=parameter):
                        raise _exists(folder)
        except InputError:
            _remove(made)
            raise
        if end_job:
            for note in filter(filesystems.exists, [shared_path(folder, JOB) for folder in outputs.values()]):
                end_job(note)
        run = opened(next(iter(outputs.values()))).run if resumed else uuid.uuid4().hex[:8]
        try:
            for folder in outputs.values():
                _begin(folder, {**plan, _RUN: run}, resumed)
            yield resumed
            _mark(outputs.values())
        except InputError:
            # A resumed folder holds work of an earlier run.
            if not resumed:
                for folder in outputs.values():
                    discard(folder)
                _remove(made)
            raise
        _tidy(outputs.values())


def plan_of(folder: str) -> dict[str, Any] | None:
    """Returns the plan of an unfinished folder, which is empty if it cannot be resumed; None if it has none.

    Raises:
        InputError: if the plan is damaged. Then nothing says whose folder it is.
    """
    plan = _read_plan(folder)
    return plan and {name: value for name, value in plan.items() if name != _RUN}


def _read_plan(folder: str) -> dict[str, Any] | None:
    """Returns the plan with the run's id."""
    path = shared_path(folder, _PLAN)
    if not filesystems.exists(path):
        return None
    plan = filesystems.read_json(path, Object({}))
    if plan is None:
        raise InputError("folder", "an unfinished folder with an intact plan", f"a damaged one: {path}")
    return plan


def discard(folder: str) -> None:
    """Deletes an unfinished folder; if it holds files of somebody else, these and the folder stay."""
    _clear(folder, everything=True)
    filesystems.delete_folder(filesystems.join(folder, UNFINISHED))
    if filesystems.is_local(folder):
        _remove([pathlib.Path(folder)])


def _has_plan(folder: str, plan: dict[str, Any], parameter: str) -> bool:
    with renamed(folder=parameter):
        return plan_of(folder) == plan


def _exists(folder: str) -> InputError:
    found = "a finished one" if is_marked(folder) else "one"
    return InputError("folder", "a folder that does not exist yet", f"{found}: {folder}")


def _make(outputs: dict[str, str]) -> list[pathlib.Path]:
    """Makes local folders with a journal in each; returns all that were made. Remote stores need no folders."""
    made: list[pathlib.Path] = []
    for parameter, folder in outputs.items():
        if not filesystems.is_local(folder):
            continue
        notes = pathlib.Path(os.path.abspath(folder), UNFINISHED)
        missing = [path for path in (notes, *notes.parents) if not path.exists()]
        try:
            notes.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _remove(made + missing)
            raise InputError(parameter, "a folder that can be made", f"{error.strerror}: {folder}") from None
        made.extend(missing)
    return made


def _remove(folders: list[pathlib.Path]) -> None:
    """Removes those folders that are empty."""
    for path in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()


def _begin(folder: str, plan: dict[str, Any], resumed: bool) -> None:
    """Deletes what an earlier run left, all of it or only what no run can use, and writes the plan."""
    path = shared_path(folder, _PLAN)
    if not resumed:
        # No command has an empty plan, so nobody resumes if this run is killed while it deletes.
        filesystems.write_json(path, {})
    _clear(folder, everything=not resumed)
    filesystems.write_json(path, plan)


def _mark(folders: Collection[str]) -> None:
    """Marks folders as finished, without what workers left that were killed and whose tasks others have done."""
    for folder in folders:
        left = filter(filesystems.is_temporary, filesystems.sizes(folder))
        filesystems.delete([filesystems.join(folder, name) for name in left])
    for folder in folders:
        filesystems.write(filesystems.join(folder, record_folder.MARKER_FILE), b"")


def _tidy(folders: Collection[str]) -> None:
    """Deletes the journals of finished folders."""
    # The plan first: without it nobody resumes with the rest of the journal.
    for folder in folders:
        filesystems.delete([shared_path(folder, _PLAN)])
    for folder in folders:
        filesystems.delete_folder(filesystems.join(folder, UNFINISHED))


def _clear(folder: str, everything: bool) -> None:
    notes = filesystems.join(folder, UNFINISHED)
    for place in (notes, folder):
        for name in filesystems.sizes(place):
            if place == notes:
                is_useless, is_ours = name.endswith(PROGRESS_ENDING), name not in _KEPT
            else:
                is_useless, is_ours = name == record_folder.MARKER_FILE, record_folder.is_own_file(name)
            if is_useless or filesystems.is_temporary(name) or (everything and is_ours):
                filesystems.delete([filesystems.join(place, name)])


@contextlib.contextmanager
def locked(folder: str, parameter: str) -> Iterator[None]:
    """Keeps other runs out of a folder: of a local one those on this machine, of a remote one all."""
    if not filesystems.is_local(folder):
        from elmo_tf.pipelines.cluster import owner

        with renamed(folder=parameter), owner.owned(folder, shared_path(folder, _OWNER)):
            yield
        return
    notes = staging.no_link(os.path.join(folder, UNFINISHED), os.O_RDONLY)
    if not lock.acquire(notes, folder):
        os.close(notes)
        raise InputError(parameter, "a folder that no other run writes", f"one in use: {folder}")
    try:
        yield
    finally:
        os.close(notes)
