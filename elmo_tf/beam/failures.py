"""Errors of tasks as data: a worker writes its error to a file, and the command raises it again with its type.

Runners pass on at most the text of an exception.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from elmo_tf.beam import output_folder
from elmo_tf.errors import InputError, printable
from elmo_tf.files import json_file, stores

_FILE = "error"
_KINDS = {kind.__name__: kind for kind in (InputError, stores.ReadError, stores.WriteError)}


@dataclasses.dataclass(eq=False)
class TaskFn(beam.DoFn):
    """Base class of steps that process tasks. Subclasses implement `process_task`.

    An error is written to the output folder before it is raised. Whether a task that failed is repeated is up to the
    runner.
    """

    folder: output_folder.Folder

    def process_task(self, task: Any, *side_inputs: Any) -> Iterable[Any]:
        """Returns the results of a task."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Any, *side_inputs: Any) -> Iterator[Any]:
        try:
            stores.status(self.folder.file(output_folder.FILE))  # fails if this worker does not see the folder
            yield from self.process_task(task, *side_inputs)
        except tuple(_KINDS.values()) as error:
            content = [type(error).__name__, *(printable(str(argument)) for argument in error.__reduce__()[1])]
            # The disk may be too full even for this; then only the runner has the error.
            with contextlib.suppress(stores.WriteError):
                stores.write(self.folder.run_file(_FILE), json_file.dumps(content).encode())
            raise


def task_error(folder: output_folder.Folder) -> Exception | None:
    """Returns the last error that a task of this run has written; None if there is none."""
    if not stores.exists(path := folder.run_file(_FILE)):
        return None
    kind, *arguments = json.loads(stores.read(path))
    return _KINDS[kind](*arguments)
