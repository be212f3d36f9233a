"""Errors of tasks as data: a worker writes its error to a file, and the command raises it again with its type.

Runners pass on at most the text of an exception, and repeat the task that raised it.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import apache_beam as beam

from elmo_tf.beam import plan
from elmo_tf.errors import InputError, printable
from elmo_tf.files import stores

_KINDS = {kind.__name__: kind for kind in (InputError, stores.ReadError, stores.WriteError)}


@dataclasses.dataclass(eq=False)
class TaskFn(beam.DoFn):
    """Does tasks. If one meets bad input, its error is written to the output folder, and it yields nothing.

    If the disk or the network fails, a remote runner may try again, so there the exception is raised. A local run stops
    at the first error. Subclasses do a task in `do` and say where their `phase` stands among those of the job.
    """

    folder: plan.Folder  # the output folder
    stops: bool  # whether the run is local

    phase: ClassVar[int] = 0
    failed: ClassVar[tuple[Any, ...]] = ()  # what a task that failed yields

    def do(self, task: Any, *sides: Any) -> Iterable[Any]:
        """Returns what becomes of a task."""
        raise NotImplementedError

    @beam.typehints.no_annotations
    def process(self, task: Any, *sides: Any) -> Iterator[Any]:
        try:
            self.folder.check()  # an earlier run's job ends here
            yield from self.do(task, *sides)
        except plan.AbandonedError:
            yield from self.failed
        except tuple(_KINDS.values()) as error:
            if isinstance(error, OSError) and not self.stops:
                raise
            number = task if isinstance(task, int) else getattr(task, "number", 0)
            content = [type(error).__name__, *(printable(str(argument)) for argument in error.__reduce__()[1])]
            # A disk may be too full even for this; then the runner has the error alone.
            with contextlib.suppress(stores.WriteError):
                stores.write(self.folder.own(f"error-{self.phase}-{number:08d}"), json.dumps(content).encode())
            if self.stops:
                raise
            yield from self.failed


def first(folder: plan.Folder) -> Exception | None:
    """Returns the error of this run with the lowest phase and number; None if there is none."""
    prefix = folder.own("error-").rpartition("/")[2]
    names = sorted(name for name in stores.names(folder.path) if name.startswith(prefix))
    if not names:
        return None
    kind, *arguments = json.loads(stores.read(folder.file(names[0])))
    return _KINDS[kind](*arguments)
