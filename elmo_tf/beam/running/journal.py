"""The journal of an unfinished output folder: what is done already, so that a killed run can be resumed.

FOLDER/_unfinished/plan.json             all that the output depends on, and the run's id; the same plan resumes
                   PHASE-00012.RUN.json  the result of a finished task
                   PHASE-results.RUN.json  all results of a finished phase
                   PHASE.RUN.progress    the progress of running tasks, line by line
                   owner.json            who writes the folder, if it is in a remote store
                   job.json              the last job on a cluster, until it has ended
FOLDER/_SUCCESS                          written last

RUN is the id: workers of an earlier run that still write do not reach the files of another run.
"""

import contextlib
import json
import logging
import os
import pathlib
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.beam.text import corpora, filesystems, job_config
from elmo_tf.errors import InputError
from elmo_tf.files import lock, staging
from elmo_tf.files.json_file import Count
from elmo_tf.records import record_folder

UNFINISHED = "_unfinished"
PROGRESS_ENDING = ".progress"
JOB = "job.json"
_OWNER = "owner.json"
_PLAN = "plan.json"
_RUN, _INPUT = "run", "input"  # keys of a plan: the run's id, and the files to read
_log = logging.getLogger("elmo_tf")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has done. A step's results may have more fields."""

    files: dict[str, Count]  # the size of each file that it wrote, by path
    irregular: dict[str, Count] = {}  # how often each rule for irregular text applied


_Result = TypeVar("_Result", bound=Result)


class Journal(NamedTuple):
    """The journal of a run in an output folder."""

    folder: str
    run: str  # its id

    def path(self, name: str) -> str:
        """Returns the path of a file of the run."""
        stem, ending = os.path.splitext(name)
        return shared_path(self.folder, f"{stem}.{self.run}{ending}")

    def result(self, phase: str, number: int, kind: type[_Result]) -> _Result | None:
        """Returns the result of a task; None if it is not done, its result is damaged or a file of it incomplete."""
        path = self._result_path(phase, number)
        result = filesystems.read_json(path, kind) if filesystems.exists(path) else None
        files = result.files if result else {}
        return result if files and all(filesystems.size(path) == size for path, size in files.items()) else None

    def done(self, phase: str, number: int, result: Result) -> None:
        """Records that a task is done and all its files are complete."""
        filesystems.write_json(self._result_path(phase, number), msgspec.to_builtins(result))

    def results(self, phase: str, count: int, kind: type[_Result]) -> list[_Result]:
        """Returns the results of all tasks of a finished phase, in order. Raises `ReadError` if one is missing."""
        path = self.results_path(phase)
        results = filesystems.read_json(path, list[kind])
        if results is None or len(results) != count:
            raise filesystems.ReadError(f"cannot read {path}: the result of a task is missing or damaged")
        return results

    def done_paths(self, phase: str) -> list[str]:
        """Returns the paths of the results of a phase, by one request to the store."""
        name = re.compile(rf"{phase}-\d+\.{self.run}\.json")
        names = filter(name.fullmatch, filesystems.sizes(shared_path(self.folder)))
        return [shared_path(self.folder, name) for name in names]

    def corpus(self) -> list[corpora.TextFile]:
        """Returns the files to read, on a worker too: a pipeline that holds them would grow with their number."""
        plan = json.loads(filesystems.read(shared_path(self.folder, _PLAN)))
        return [corpora.TextFile(*file) for *file, _ in plan[_INPUT]]

    def results_path(self, phase: str) -> str:
        """Returns the path of the results of a phase."""
        return self.path(f"{phase}-results.json")

    def _result_path(self, phase: str, number: int) -> str:
        return self.path(f"{phase}-{number:05d}.json")


def shared_path(folder: str, *name: str) -> str:
    """Returns the path of a file that belongs to no single run, or without a name that of the journal's folder."""
    return filesystems.join(folder, UNFINISHED, *name)


def plan_input(corpus: Sequence[corpora.TextFile]) -> dict[str, Any]:
    """Returns the part of a plan that says which files are read, and when they were last changed."""
    times = filesystems.at_once(filesystems.last_changed, [file.path for file in corpus])
    return {_INPUT: [[*file, changed] for file, changed in zip(corpus, times, strict=True)]}


def plan_of(folder: str) -> dict[str, Any] | None:
    """Returns plan and run of an unfinished folder; an empty one if it cannot be resumed, None if it has none.

    Raises:
        InputError: if the plan is damaged. Then nothing says whose folder it is.
    """
    path = shared_path(folder, _PLAN)
    if not filesystems.exists(path):
        return None
    if (plan := filesystems.read_json(path, dict[str, Any])) is None:
        raise InputError(folder, "an unfinished folder with an intact plan", f"a damaged one: {path}")
    return plan


def check(folder: str) -> None:
    """Raises `InputError` unless `folder` does not exist, is empty or is unfinished."""
    filesystems.check_folder(folder)
    if not filesystems.is_local(folder):
        found = filesystems.match(filesystems.join(folder, "**"))
        is_free = all(file.path.startswith(shared_path(folder) + "/") for file in found)
    else:
        # A folder with nothing but a journal is free: a run was killed before it wrote anything.
        is_free = not os.path.lexists(folder) or (os.path.isdir(folder) and {*os.listdir(folder)} <= {UNFINISHED})
    if is_free or plan_of(folder) is not None:
        return
    if is_marked(folder):
        # A run was killed while it deleted its journal.
        filesystems.delete_folder(shared_path(folder))
    raise _exists(folder)


def is_marked(folder: str) -> bool:
    """Whether a folder has the marker of a finished one."""
    return filesystems.exists(filesystems.join(folder, record_folder.MARKER_FILE))


@contextlib.contextmanager
def unfinished(
    folders: Sequence[str], plan: dict[str, Any], beam_options: PipelineOptions | None = None
) -> Iterator[Journal]:
    """Keeps output folders unfinished until the block ends. Call `check` on each before.

    The folders get their markers when the block ends without an exception. After an `InputError` neither they nor
    parents made for them remain, unless the run has resumed an earlier one. After any other exception they stay as they
    are, and `unfinished` with the same plan resumes; the exception says so.

    Args:
        folders: the output folders; the first has the journal of all tasks.
        plan: everything that the contents of the folders depend on, as JSON.
        beam_options: Beam's; with them, a remote job that an earlier run has left is ended before anything changes.

    Yields:
        The journal. Unless the run resumes an earlier one, the folders are empty except for it.

    Raises:
        InputError: if a folder cannot be made, another run is writing it, or one has finished it since `check`.
    """
    with contextlib.ExitStack() as stack:
        made, new = _make(folders), []
        try:
            for folder in folders:
                stack.enter_context(locked(folder))
            stored = [plan_of(folder) or {} for folder in folders]
            resumed = all(plan.items() <= one.items() for one in stored)
            if not resumed and (finished := [folder for folder in folders if is_marked(folder)]):
                raise _exists(finished[0])
            for folder in folders:
                if beam_options and filesystems.exists(note := shared_path(folder, JOB)):
                    from elmo_tf.beam.cluster import job_service

                    job_service.end_job(beam_options, note)
            run = stored[0][_RUN] if resumed else uuid.uuid4().hex[:8]
            # A resumed folder holds work of an earlier run, which stays.
            new = [] if resumed else folders
            for folder in folders:
                if not resumed:
                    # No command has an empty plan, so nobody resumes if this run is killed while it deletes.
                    filesystems.write_json(shared_path(folder, _PLAN), {})
                _clear(folder, everything=not resumed)
                filesystems.write_json(shared_path(folder, _PLAN), {**plan, _RUN: run})
            if resumed:
                _log.info("resuming an earlier run; its finished files are kept")
            with job_config.hint():
                yield Journal(folders[0], run)
                for folder in folders:
                    _clear(folder, everything=False)
                    filesystems.write(filesystems.join(folder, record_folder.MARKER_FILE), b"")
        except InputError:
            for folder in new:
                discard(folder)
            _remove(made)
            raise
        # The plans first: without one nobody resumes with the rest of a journal.
        for folder in folders:
            filesystems.delete([shared_path(folder, _PLAN)])
        for folder in folders:
            filesystems.delete_folder(shared_path(folder))


def discard(folder: str) -> None:
    """Deletes an unfinished folder, but no files that the jobs have not written."""
    _clear(folder, everything=True)
    filesystems.delete_folder(shared_path(folder))
    if filesystems.is_local(folder):
        _remove([pathlib.Path(folder)])


def _exists(folder: str) -> InputError:
    found = "a finished one; delete it to run the job again" if is_marked(folder) else "one"
    return InputError(folder, "a folder that does not exist yet", found)


def _make(folders: Iterable[str]) -> list[pathlib.Path]:
    """Makes local folders with a journal in each; returns all that were made. Remote stores need no folders."""
    made: list[pathlib.Path] = []
    for folder in filter(filesystems.is_local, folders):
        path = pathlib.Path(os.path.abspath(folder), UNFINISHED)
        made += [parent for parent in (path, *path.parents) if not parent.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _remove(made)
            raise InputError(folder, "a folder that can be made", error.strerror) from None
    return made


def _remove(folders: Iterable[pathlib.Path]) -> None:
    """Removes those folders that are empty."""
    for path in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()


def _clear(folder: str, everything: bool) -> None:
    """Deletes leftovers of killed workers from a folder and its journal, or everything that runs do not share."""
    notes = shared_path(folder)
    for place, is_left, is_ours in (
        (notes, lambda name: name.endswith(PROGRESS_ENDING), lambda name: name not in (_PLAN, JOB, _OWNER)),
        (folder, record_folder.MARKER_FILE.__eq__, record_folder.is_own_file),
    ):
        for name in filesystems.sizes(place):
            if is_left(name) or filesystems.is_temporary(name) or (everything and is_ours(name)):
                filesystems.delete([filesystems.join(place, name)])


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keeps other runs out of a folder: those on this machine if it is local, all runs if it is remote."""
    if not filesystems.is_local(folder):
        from elmo_tf.beam.cluster import owner

        with owner.owned(folder, shared_path(folder, _OWNER)):
            yield
        return
    descriptor = staging.no_link(shared_path(folder), os.O_RDONLY)
    try:
        if not lock.acquire(descriptor, folder):
            raise InputError(folder, "a folder that no other run writes", "one in use")
        yield
    finally:
        os.close(descriptor)
