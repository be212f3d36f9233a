"""An unfinished output folder, whose `plan.json` describes its contents.

    FOLDER/plan.json              options, inputs with their sizes and times, and version; until the folder is finished
           .NAME.incomplete-ID    temporary files
           _SUCCESS               written last

Tasks are deterministic and their files appear whole, so repeating them is harmless: a folder with the same plan may be
continued, even by two runs at once.
"""

import contextlib
import json
import logging
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from elmo_tf.beam import job_config
from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging, stores
from elmo_tf.records import record_folder

FILE = "plan.json"
MARKER = b"finished\n"  # the content of the marker: Beam cannot write empty files to S3
_log = logging.getLogger("elmo_tf")


class Folder(NamedTuple):
    """An output folder. Workers get a copy."""

    path: str
    run: str  # of this command

    def file(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return stores.join(self.path, name)

    def run_file(self, name: str) -> str:
        """Returns the path of a temporary file of this command alone."""
        return self.file(staging.temporary_name(name, self.run))


def check(path: str) -> None:
    """Raises `InputError` unless `path` can become an output folder: absent, empty, or unfinished with a plan."""
    stores.check_folder(path)
    if stores.is_local(path):
        staging.check_link(path)
        if os.path.lexists(path) and not os.path.isdir(path):
            raise InputError(path, "is a file, not a folder")
    names = stores.names(path)
    if FILE in names or all(map(staging.is_temporary, names)):
        return
    if record_folder.MARKER_FILE in names:
        raise InputError(path, "is finished; delete it to run the job again")
    raise InputError(path, f"already exists, and is not an unfinished output (it has no {FILE})")


@contextlib.contextmanager
def claim(paths: Mapping[str, str], plan: Mapping[str, Any]) -> Iterator[dict[str, Folder]]:
    """Yields unfinished output folders, by the keys of `paths`; the block writes their markers.

    `plan` is everything that their contents depend on, as JSON. After an `InputError`, or another exception before any
    file of the output is written, the folders that this run created are removed. Raises `InputError` as `check` does,
    or if a folder cannot be created or has another plan.
    """
    run = staging.unique_id()
    folders, new = {name: Folder(path, run) for name, path in paths.items()}, []
    with contextlib.ExitStack() as stack:
        try:
            for name, folder in folders.items():
                check(folder.path)
                if stores.is_local(folder.path):
                    stack.enter_context(staging.created_folder(pathlib.Path(os.path.abspath(folder.path)), folder.path))
                if _claim(folder, {**plan, "folder": name}):
                    new.append(folder)
            with job_config.retry_hint():
                yield folders
        except BaseException as error:
            names = (name for folder in new for name in stores.names(folder.path))
            if isinstance(error, InputError) or not any(map(record_folder.is_record_file, names)):
                for folder in new:
                    discard(folder)
            raise
        finally:
            for folder in folders.values():
                stores.delete(_temporary_files(folder, run))
    # Delete plan.json only after every marker is written: a folder with both can still be resumed.
    for folder in folders.values():
        stores.delete([*_temporary_files(folder), folder.file(FILE)])


def _claim(folder: Folder, plan: Mapping[str, Any]) -> bool:
    """Gives a folder its plan; returns False if it already has this one. Raises `InputError` if it has another."""
    path, content = folder.file(FILE), json_file.dumps(plan, indent=1, sort_keys=True).encode() + b"\n"
    if not stores.exists(path):
        stores.write(path, content)
        return True
    if (stored := stores.read(path)) != content:
        raise InputError(folder.path, f"{_difference(stored, content)}; run that command again, or delete the folder")
    _log.info("continuing an earlier run")
    return False


def _difference(stored: bytes, content: bytes) -> str:
    """Describes how a folder's plan differs from that of this command."""
    try:
        stored_plan = json_file.parse(stored, dict[str, Any], FILE)
    except InputError:
        return f"has a damaged {FILE}"
    plan = json.loads(content)
    if stored_plan.get("command") != plan["command"]:
        return "is the unfinished output of a different command"
    differences = []
    for name, value in plan.items():
        if stored_plan.get(name) != value:
            is_short = not isinstance(value, list | dict) and name != "model"
            differences.append(f"{name} {stored_plan.get(name)!s:.60}, now {value}" if is_short else f"another {name}")
    return "is the unfinished output of different options: " + "; ".join(differences)


def discard(folder: Folder) -> None:
    """Deletes an unfinished folder, except files that the jobs did not write."""
    names = [record_folder.MARKER_FILE, *filter(record_folder.is_record_file, stores.names(folder.path))]
    stores.delete([*map(folder.file, names), *_temporary_files(folder), folder.file(FILE)])
    if stores.is_local(folder.path):
        with contextlib.suppress(OSError):  # other files remain
            os.rmdir(folder.path)


def _temporary_files(folder: Folder, run: str = "") -> list[str]:
    """Returns the paths of the temporary files of a run, or of all runs."""
    names = filter(staging.is_temporary, stores.names(folder.path))
    return [folder.file(name) for name in names if name.endswith(run)]
