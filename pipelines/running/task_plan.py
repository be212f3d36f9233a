"""The tasks of a phase as files in the journal, so that a pipeline does not grow with its tasks.

FOLDER/_unfinished/PHASE-tasks-00012.json    tasks 12,000 to 12,999
                   PHASE-results-00012.json  their results
"""

import collections
import concurrent.futures
import itertools
import json
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import apache_beam as beam

from elmo_tf.files.json_file import ListOf, Object, Schema, Whole
from elmo_tf.pipelines.running import journal
from elmo_tf.pipelines.text import filesystems

PART_TASKS = 1000  # of one file
_READERS = 16  # questions to a store at the same time


class Numbered(Protocol):
    """What a phase needs to know of a task: a NamedTuple of numbers, texts and such tuples."""

    number: int
    size: int  # bytes to read


class Plan(NamedTuple):
    """The tasks of a phase, after they were written."""

    phase: str
    num_tasks: int
    size: int  # of all tasks

    @property
    def num_parts(self) -> int:
        """How many files hold them."""
        return -(-self.num_tasks // PART_TASKS)


def write(notes: journal.Journal, phase: str, tasks: Iterable[Numbered]) -> Plan:
    """Writes the tasks of a phase, which are numbered from 0."""
    num_tasks = size = 0
    for part, chosen in enumerate(_parts(tasks)):
        filesystems.write(_tasks_path(notes, phase, part), json.dumps(chosen).encode())
        num_tasks += len(chosen)
        size += sum(task.size for task in chosen)
    return Plan(phase, num_tasks, size)


class ReadTasks(beam.PTransform):
    """The tasks of a plan, spread over the workers."""

    def __init__(self, notes: journal.Journal, plan: Plan, kind: type):
        super().__init__()
        self._notes, self._plan, self._kind = notes, plan, kind

    @beam.typehints.no_annotations
    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        # One element has no place in the graph but its own.
        parts = begin | "Parts" >> beam.Create([self._plan.num_parts]) | "NumberParts" >> beam.FlatMap(_numbers)
        # A single part is already in one place; each step of a graph costs time at the start of a job.
        if self._plan.num_parts > 1:
            parts = parts | "SpreadParts" >> beam.Reshuffle()
        return (
            parts
            | "ReadParts" >> beam.FlatMap(_read_tasks, self._notes, self._plan.phase, self._kind)
            | "SpreadTasks" >> beam.Reshuffle()
        )


class KeepResults(beam.PTransform):
    """`(number, result as JSON)` of tasks -> files of many results each, so that nobody has to ask for each task's."""

    def __init__(self, notes: journal.Journal, phase: str):
        super().__init__()
        self._notes, self._phase = notes, phase

    @beam.typehints.no_annotations
    def expand(self, results: beam.PCollection) -> beam.PCollection:
        return (
            results
            | "ByPart" >> beam.Map(_by_part).with_output_types(tuple[int, Any])
            | "GroupResults" >> beam.GroupByKey()
            | "WriteResults" >> beam.Map(_write_results, self._notes, self._phase)
        )


def results(notes: journal.Journal, plan: Plan, schema: Schema) -> list[Any]:
    """Returns the results of all tasks, in order.

    Raises:
        filesystems.ReadError: if one is missing or damaged.
    """
    content = Object({"numbers": ListOf(Whole()), "results": ListOf(schema)})

    def read(part: int) -> list[Any]:
        path = _results_path(notes, plan.phase, part)
        first = part * PART_TASKS
        expected = list(range(first, min(first + PART_TASKS, plan.num_tasks)))
        found = filesystems.read_json(path, content) if filesystems.exists(path) else None
        if found is None or found["numbers"] != expected or len(found["results"]) != len(expected):
            raise filesystems.ReadError(f"cannot read {path}: the result of a task is missing or damaged")
        return found["results"]

    return list(itertools.chain.from_iterable(at_once(read, range(plan.num_parts))))


def at_once(ask: typing.Callable[[Any], Any], about: Iterable[Any]) -> Iterator[Any]:
    """Yields the answers of a store, in order; several questions are on their way at the same time, and no more."""
    asked: collections.deque[concurrent.futures.Future] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(_READERS) as threads:
        for one in about:
            asked.append(threads.submit(ask, one))
            if len(asked) >= _READERS:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()


def decoded(kind: Any, value: Any) -> Any:
    """Returns a value of `kind`, a NamedTuple or a part of one, that was written as JSON."""
    if typing.get_origin(kind) is tuple:
        return tuple(decoded(typing.get_args(kind)[0], one) for one in value)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return None if value is None else decoded(next(one for one in typing.get_args(kind) if one is not None), value)
    if hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind)
        return kind(*(decoded(hints[name], one) for name, one in zip(kind._fields, value, strict=True)))
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"not of type {kind}: {value}")
    return value


def _parts(tasks: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    remaining = iter(tasks)
    while chosen := list(itertools.islice(remaining, PART_TASKS)):
        yield chosen


def _numbers(count: int) -> Iterator[int]:
    yield from range(count)


@beam.typehints.no_annotations
def _read_tasks(part: int, notes: journal.Journal, phase: str, kind: type) -> Iterator[Numbered]:
    path = _tasks_path(notes, phase, part)
    if not filesystems.exists(path):
        raise filesystems.ReadError(f"cannot read {path}: No such file; {filesystems.UNSEEN}")
    try:
        rows = json.loads(filesystems.read(path))
        tasks = [decoded(kind, row) for row in rows]
    except (ValueError, TypeError):
        raise filesystems.ReadError(f"cannot read {path}: the plan of the tasks is damaged") from None
    yield from tasks


@beam.typehints.no_annotations
def _by_part(numbered: tuple[int, Any]) -> tuple[int, tuple[int, Any]]:
    return numbered[0] // PART_TASKS, numbered


@beam.typehints.no_annotations
def _write_results(grouped: tuple[int, Iterable[tuple[int, str]]], notes: journal.Journal, phase: str) -> None:
    part, found = grouped
    # A bundle that is repeated may bring a result twice.
    by_number = dict(found)
    numbers = sorted(by_number)
    content = {"numbers": numbers, "results": [json.loads(by_number[number]) for number in numbers]}
    filesystems.write(_results_path(notes, phase, part), json.dumps(content).encode())


def _tasks_path(notes: journal.Journal, phase: str, part: int) -> str:
    return notes.path(f"{phase}-tasks-{part:05d}.json")


def _results_path(notes: journal.Journal, phase: str, part: int) -> str:
    return notes.path(f"{phase}-results-{part:05d}.json")
