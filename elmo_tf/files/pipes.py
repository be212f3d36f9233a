"""Pipes: a copy that can be read twice."""

import contextlib
import logging
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from elmo_tf.errors import InputError

_log = logging.getLogger("elmo_tf")


@contextlib.contextmanager
def copied_if_pipe(path: str | os.PathLike) -> Iterator[str | os.PathLike]:
    """Yields a path that can be read twice: a temporary copy of a pipe, which has its base name, or `path` itself.

    Errors and log messages in the block name the pipe, not its copy.
    """
    if not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = str(pathlib.Path(folder, pathlib.Path(path).name))
        with open(path, "rb") as pipe, open(copy, "wb") as file:
            shutil.copyfileobj(pipe, file)

        def name_pipe(record: logging.LogRecord) -> bool:
            record.msg, record.args = record.getMessage().replace(copy, str(path)), ()
            return True

        _log.addFilter(name_pipe)
        try:
            yield copy
        except InputError as error:
            raise error.about(error.subject.replace(copy, str(path))) from None
        finally:
            _log.removeFilter(name_pipe)
