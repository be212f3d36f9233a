"""Tasks reach workers as files: the same tasks, results in order, and a graph that does not grow with them."""

import json

import apache_beam as beam
import pytest

from elmo_tf.files.json_file import Object, Whole
from elmo_tf.pipelines.embed import text_chunks
from elmo_tf.pipelines.preprocess import shuffle
from elmo_tf.pipelines.running import do_once, journal, runner_options
from elmo_tf.pipelines.text import corpora, filesystems

TASKS = [
    corpora.Task(0, (0, 3), (corpora.Slice(corpora.TextFile("a.gz", 7, "*"), part=1, parts=2),)),
    corpora.Task(1, (1,), (corpora.Slice(corpora.TextFile("caf\u00e9\udcff", 7), 1, 3),) * 2),
    corpora.Task(2, (2,), ()),
]
CHUNKS = [text_chunks.Chunk(0, 0, 2, 3, (text_chunks.Piece(0, 1, 2), text_chunks.Piece(1, 0, 9)))]


@pytest.fixture
def notes(tmp_path) -> journal.Journal:
    (tmp_path / "_unfinished").mkdir()
    return journal.Journal(str(tmp_path))


@pytest.mark.parametrize(
    "tasks", [TASKS, CHUNKS, [shuffle.GatherTask(0, 5)]], ids=lambda tasks: type(tasks[0]).__name__
)
def test_a_task_is_the_same_after_json(tasks):
    assert [do_once.decoded(type(task), json.loads(json.dumps(task))) for task in tasks] == tasks


@pytest.mark.parametrize("row", [[0], [0, "5"], [True, 5], "05", 3, None, [0, 5, 6]])
def test_another_value_is_no_task(row):
    with pytest.raises((TypeError, ValueError)):
        do_once.decoded(shuffle.GatherTask, row)


class Square(do_once.DoOnce):
    phase = "square"
    schema = Object({"square": Whole()})

    def do(self, task, progress):
        return {"square": task.number**2, "files": {}}


def test_results_come_in_the_order_of_the_tasks(notes):
    options, _ = runner_options.parse([])
    tasks = (shuffle.GatherTask(number, 1) for number in range(11))
    found = do_once.run_step("squaring", notes, Square(notes.folder), tasks, options)
    assert [result["square"] for result in found] == [number**2 for number in range(11)]


class Ignored(beam.PTransform):
    """Does nothing with the tasks."""

    def expand(self, tasks):
        return tasks


def test_the_graph_does_not_grow_with_the_tasks(notes, monkeypatch):
    sizes = []

    def measured(pipeline: beam.Pipeline, note: str) -> None:
        sizes.append(len(pipeline.to_runner_api().SerializeToString()))

    monkeypatch.setattr(runner_options, "execute", measured)
    for count in (2000, 7000):
        tasks = (shuffle.GatherTask(number, 1) for number in range(count))
        do_once.run("squaring", notes, "square", tasks, Ignored(), runner_options.parse([])[0])
    # The graph holds pickled functions, whose size differs by a few bytes from one time to the next. Every task would
    # take at least one byte.
    assert abs(sizes[0] - sizes[1]) < 1000


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"{",
        b'{"numbers": [0], "results": [{}]}',
        b'{"numbers": [0, 1], "results": [{}]}',
        b'{"numbers": [0, 1], "results": [{}, 1]}',
        b'{"numbers": [1, 0], "results": [{}, {}]}',
    ],
)
def test_results_that_are_missing_or_damaged_are_an_error(notes, tmp_path, content):
    path = tmp_path / "_unfinished" / "x-results.json"
    path.write_bytes(b'{"numbers": [0, 1], "results": [{}, {"a": 1}]}')
    assert do_once.results(notes, "x", 2, Object({})) == [{}, {"a": 1}]
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(filesystems.ReadError, match=r"^cannot read .*x-results\.json: the result of a task is m"):
        do_once.results(notes, "x", 2, Object({}))


def test_a_plan_that_a_worker_cannot_see_or_read_is_one_line(notes):
    with pytest.raises(filesystems.ReadError, match="No such file; all workers need it under this path"):
        list(do_once.read_tasks("x", notes, shuffle.GatherTask))
    for content in (b"{", b"[[0]]", b"[1]", b"3"):
        filesystems.write(notes.path("x-tasks.json"), content)
        with pytest.raises(filesystems.ReadError, match="the plan of the tasks is damaged"):
            list(do_once.read_tasks("x", notes, shuffle.GatherTask))


def test_answers_come_in_order_and_few_wait_in_memory():
    asked = []
    answers = filesystems.at_once(lambda number: asked.append(number) or number, range(1000))
    assert next(answers) == 0
    assert len(asked) <= filesystems._READERS
    assert list(answers) == list(range(1, 1000))
