"""Tasks are made on workers: results in order, and a graph that does not grow with tasks or files."""

from typing import NamedTuple

import pytest

from elmo_tf.beam.running import do_once, runner_options
from elmo_tf.beam.running.journal import Journal, Result
from elmo_tf.beam.text import filesystems
from elmo_tf.files.json_file import Count


class Task(NamedTuple):
    number: int
    size: int = 1


class Squared(Result):
    square: Count


class Square(do_once.DoOnce):
    phase = "square"
    kind = Squared

    def do(self, task, progress):
        return Squared(files={}, square=task.number**2)


def run_step(journal: Journal, count: int) -> list[Squared]:
    tasks = do_once.Tasks(lambda: map(Task, range(count)), count, count)
    return do_once.run_step("squaring", Square(journal), tasks, runner_options.parse([])[0])


def test_results_come_in_the_order_of_the_tasks(notes):
    assert [result.square for result in run_step(notes, 11)] == [number**2 for number in range(11)]


def test_the_graph_does_not_grow_with_the_tasks(notes, monkeypatch):
    graphs = []
    monkeypatch.setattr(runner_options, "execute", lambda pipeline, note: graphs.append(pipeline.to_runner_api()))
    monkeypatch.setattr(Journal, "results", lambda *_: [])
    for count in (2000, 7000):
        run_step(notes, count)
    one, other = (len(graph.SerializeToString()) for graph in graphs)
    # Pickled functions differ by a few bytes from one time to the next. Every task would take at least one byte.
    assert abs(one - other) < 1000


@pytest.mark.parametrize("content", [None, b"[{", b'[{"files": {}}]', b'[{"files": {}}, {"files": {"a": -1}}]'])
def test_results_that_are_missing_or_damaged_are_an_error(notes, tmp_path, content):
    path = tmp_path / "_unfinished" / "x-results.run.json"
    path.write_bytes(b'[{"files": {}}, {"files": {"a": 1}}]')
    assert [result.files for result in notes.results("x", 2, Result)] == [{}, {"a": 1}]
    path.unlink() if content is None else path.write_bytes(content)
    found = "No such file" if content is None else "the result of a task is missing or damaged"
    with pytest.raises(filesystems.ReadError, match=rf"^cannot read .*x-results\.run\.json: {found}"):
        notes.results("x", 2, Result)


def test_answers_come_in_order_and_few_wait_in_memory():
    asked = []
    answers = filesystems.at_once(lambda number: asked.append(number) or number, range(1000))
    assert next(answers) == 0
    assert len(asked) <= 16
    assert list(answers) == list(range(1, 1000))
