"""An unfinished output folder, whose `plan.json` says what it will hold.

    FOLDER/plan.json       options, inputs with their sizes and times, and version; until the folder is finished
           .DIGEST.NAME    temporary files; DIGEST is that of the plan
           _SUCCESS        written last

Tasks are deterministic and their files appear whole, so it is harmless to repeat them: a folder with the same plan may
be continued, even by two runs at once. Before each rename the worker re-reads plan.json, so a stale job of an earlier
run cannot write into a folder that now has another plan.
"""

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from elmo_tf.beam import job_config
from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging, stores
from elmo_tf.records import record_folder

FILE = "plan.json"
MARKER = b"finished\n"  # the content of the marker: Beam cannot write empty files to S3
_IS_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.").match
_log = logging.getLogger("elmo_tf")


class AbandonedError(Exception):
    """The folder no longer has this plan: another run has finished it, or it was deleted."""


class Folder(NamedTuple):
    """An output folder and the plan it must match. Workers get a copy."""

    path: str
    digest: str  # of the plan
    run: str  # of this command

    def file(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return stores.join(self.path, name)

    def temporary_file(self, name: str) -> str:
        """Returns the path of a temporary file of the plan."""
        return self.file(f".{self.digest}.{name}")

    def run_file(self, name: str) -> str:
        """Returns the path of a temporary file of this command alone."""
        return self.temporary_file(f"{self.run}.{name}")

    def check(self) -> None:
        """Raises `AbandonedError` unless the folder has this plan."""
        head, path = _head(self.digest), self.file(FILE)
        try:
            with stores.open_file(path) as file:
                is_same = file.read(len(head)) == head
        except stores.ReadError:
            if stores.exists(path):
                raise
            is_same = False
        if not is_same:
            raise AbandonedError

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """Yields a file to write, which appears under its name when the block ends, if the folder has this plan."""
        try:
            with stores.create(self.file(name), self.temporary_file(f"{name}.{uuid.uuid4().hex}"), self.check) as file:
                yield file
        except stores.WriteError:
            self.check()  # the run that has finished the folder deletes temporary files of its plan
            raise

    def write(self, name: str, content: bytes) -> None:
        """Writes a whole file, as `create` does."""
        with self.create(name) as file:
            file.write(content)


def check(path: str) -> None:
    """Raises `InputError` unless `path` can become an output folder: absent, empty, or unfinished with a plan."""
    stores.check_folder(path)
    if stores.is_local(path):
        staging.check_link(path)
        if os.path.lexists(path) and not os.path.isdir(path):
            raise InputError(path, "is a file, not a folder")
    names = stores.names(path)
    if FILE in names or all(map(_IS_TEMPORARY, names)):
        return
    if record_folder.MARKER_FILE in names:
        raise InputError(path, "is finished; delete it to run the job again")
    raise InputError(path, f"already exists, and is not an unfinished output (it has no {FILE})")


@contextlib.contextmanager
def claim(paths: Mapping[str, str], plan: Mapping[str, Any]) -> Iterator[dict[str, Folder]]:
    """Yields unfinished output folders, by the keys of `paths`; the block writes their markers. Call `check` before.

    `plan` is everything that their contents depend on, as JSON. After an `InputError`, or another exception before any
    file of the output is written, the folders that this run created are removed. Raises `InputError` if a folder cannot
    be created or has another plan.
    """
    content = json.dumps(plan, indent=1, sort_keys=True)
    run, folders, new = uuid.uuid4().hex[:8], {}, []
    with contextlib.ExitStack() as stack:
        try:
            for name, path in paths.items():
                digest = hashlib.sha256(f"{name}\n{content}".encode()).hexdigest()[:16]
                folders[name] = Folder(path, digest, run)
                if stores.is_local(path):
                    stack.enter_context(staging.created_folder(pathlib.Path(os.path.abspath(path)), path))
                if _claim(folders[name], _head(digest) + content.encode().removeprefix(b"{") + b"\n"):
                    new.append(folders[name])
            with job_config.retry_hint():
                yield folders
        except BaseException as error:
            names = (name for folder in new for name in stores.names(folder.path))
            if isinstance(error, InputError) or not any(map(record_folder.is_record_file, names)):
                for folder in new:
                    discard(folder)
            raise
    # Delete plan.json only after every marker is written: a folder with both can still be resumed.
    for folder in folders.values():
        stores.delete([folder.file(FILE)])
        _delete_temporary(folder)


def _head(digest: str) -> bytes:
    return f'{{\n "digest": "{digest}",'.encode()


def _claim(folder: Folder, content: bytes) -> bool:
    """Gives a folder its plan; returns False if it has it already. Raises `InputError` if it has another one."""
    path, staged = folder.file(FILE), folder.temporary_file(f"{FILE}.{uuid.uuid4().hex}")
    if not stores.is_local(path):
        is_new = not stores.exists(path)  # no store has locks: whoever writes last has the folder
        if is_new:
            stores.write(path, content)
    else:
        try:
            with open(staged, "xb", opener=staging.no_link) as file:
                file.write(content)
            stores.publish(staged, path)
            is_new = True
        except FileExistsError:
            is_new = False
        except OSError as error:
            stores.delete([staged])
            raise stores.WriteError(f"cannot write {path}: {error.strerror}") from error
    if is_new and stores.exists(folder.file(record_folder.MARKER_FILE)):  # since `check`
        stores.delete([path])
        raise InputError(folder.path, "is finished; delete it to run the job again")
    if not is_new and (stored := stores.read(path)) != content:
        raise InputError(folder.path, f"{_difference(stored, content)}; run that command again, or delete the folder")
    if not is_new:
        _log.info("continuing an earlier run")
    return is_new


def _difference(stored: bytes, content: bytes) -> str:
    """Returns in words how the plan of a folder differs from that of this command."""
    try:
        stored_plan = json_file.parse(stored, dict[str, Any], FILE)
    except InputError:
        return f"has a damaged {FILE}"
    plan = json.loads(content)
    if stored_plan.get("command") != plan["command"]:
        return "is the unfinished output of another command"
    differences = []
    for name, value in plan.items():
        if name != "digest" and stored_plan.get(name) != value:
            is_short = not isinstance(value, list | dict) and name != "model"
            differences.append(f"{name} {stored_plan.get(name)!s:.60}, now {value}" if is_short else f"another {name}")
    return "is the unfinished output of other options: " + "; ".join(differences)


def discard(folder: Folder) -> None:
    """Deletes an unfinished folder, but no files that the jobs have not written."""
    stores.delete([folder.file(FILE)])
    names = [*filter(record_folder.is_record_file, stores.names(folder.path)), record_folder.MARKER_FILE]
    stores.delete(map(folder.file, names))
    _delete_temporary(folder)
    if stores.is_local(folder.path):
        with contextlib.suppress(OSError):  # there are other files
            os.rmdir(folder.path)


def _delete_temporary(folder: Folder) -> None:
    prefix = f".{folder.digest}."
    stores.delete([folder.file(name) for name in stores.names(folder.path) if name.startswith(prefix)])
