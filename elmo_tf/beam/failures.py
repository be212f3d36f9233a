"""Errors of tasks as data: a worker writes its error to a file, and the command raises it again with its type.

Runners pass on at most the text of an exception, and repeat the task that raised it.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import apache_beam as beam

from elmo_tf.beam import output_folder
from elmo_tf.errors import InputError, printable
from elmo_tf.files import stores

_KINDS = {kind.__name__: kind for kind in (InputError, stores.ReadError, stores.WriteError)}


@dataclasses.dataclass(eq=False)
class TaskFn(beam.DoFn):
    """Base class of steps that process tasks.

    On bad input it writes the error to the output folder and yields `failed`. A local run stops at the first error. If
    the disk or the network fails, the exception is raised, because a remote runner may try again. Subclasses implement
    `process_task`; `phase` is the step's place in the order of the job.
    """

    folder: output_folder.Folder
    is_local_run: bool

    phase: ClassVar[int] = 0
    failed: ClassVar[tuple[Any, ...]] = ()  # what a task that failed yields

    def process_task(self, task: Any, *side_inputs: Any) -> Iterable[Any]:
        """Returns the results of a task."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Any, *side_inputs: Any) -> Iterator[Any]:
        try:
            self.folder.check()  # a job left over from an earlier run stops here
            yield from self.process_task(task, *side_inputs)
        except output_folder.AbandonedError:
            yield from self.failed
        except tuple(_KINDS.values()) as error:
            if isinstance(error, OSError) and not self.is_local_run:
                raise
            number = task if isinstance(task, int) else getattr(task, "number", 0)
            content = [type(error).__name__, *(printable(str(argument)) for argument in error.__reduce__()[1])]
            # The disk may be too full even for this; then only the runner has the error.
            with contextlib.suppress(stores.WriteError):
                stores.write(self.folder.run_file(f"error-{self.phase}-{number:08d}"), json.dumps(content).encode())
            if self.is_local_run:
                raise
            yield from self.failed


def first_error(folder: output_folder.Folder) -> Exception | None:
    """Returns the error of this run with the lowest phase and number; None if there is none."""
    prefix = folder.run_file("error-").rpartition("/")[2]
    names = sorted(name for name in stores.names(folder.path) if name.startswith(prefix))
    if not names:
        return None
    kind, *arguments = json.loads(stores.read(folder.file(names[0])))
    return _KINDS[kind](*arguments)
