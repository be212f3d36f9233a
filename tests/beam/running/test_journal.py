"""The journal in an output folder: after any kill the folder is usable, and no finished one is lost."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.beam.cluster import job_service
from elmo_tf.beam.running import journal, task_progress
from elmo_tf.beam.running.journal import Result
from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from tests.beam.common import contents, interrupted

PLAN = {"some": "plan"}


@contextlib.contextmanager
def killed(folder: pathlib.Path, plan: object = PLAN) -> Iterator[journal.Journal]:
    """A run that is killed when the block ends; its journal."""
    with pytest.raises(KeyboardInterrupt), journal.unfinished([str(folder)], plan) as notes:
        yield notes
        raise KeyboardInterrupt


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("then", ["old plan", "new plan"])
def test_what_a_kill_has_left_of_another_run_is_not_resumed(tmp_path, after, then):
    outputs = [str(tmp_path)]
    with killed(tmp_path, plan={"plan": "old plan"}):
        for name in ("vocab.txt", "shard-0.tfrecord", "_unfinished/write-00000.json", "_unfinished/counts-00"):
            (tmp_path / name).write_bytes(b"old")
    with interrupted(filesystems, "delete", after), journal.unfinished(outputs, {"plan": "new plan"}):
        pass
    journal.check(str(tmp_path))
    with journal.unfinished(outputs, {"plan": then}):
        assert os.listdir(tmp_path) == ["_unfinished"]
        assert os.listdir(tmp_path / "_unfinished") == ["plan.json"]


def test_a_late_result_of_another_run_counts_for_no_task(tmp_path):
    """The job of a command that was killed goes on: its workers write results of another plan."""
    result = Result(files={str(tmp_path / "shard-0"): 3})
    with killed(tmp_path, plan={"plan": "old"}) as late:
        pass
    with killed(tmp_path) as now:
        (tmp_path / "shard-0").write_bytes(b"old")
        late.done("write", 0, result)
        assert (now.result("write", 0, Result), now.done_paths("write")) == (None, [])
        now.done("write", 0, result)
    with journal.unfinished([str(tmp_path)], PLAN) as now:
        assert (now.result("write", 0, Result), len(now.done_paths("write"))) == (result, 1)


def test_the_job_of_an_earlier_run_is_ended_before_anything_changes(tmp_path, monkeypatch):
    outputs, note = [str(tmp_path)], tmp_path / "_unfinished" / "job.json"
    with killed(tmp_path, plan={"plan": "old"}):
        (tmp_path / "shard-0.tfrecord").write_bytes(b"old")
        note.write_bytes(b"{}")
    options = PipelineOptions()
    with pytest.raises(ChildProcessError, match="may still be running"), journal.unfinished(outputs, PLAN, options):
        pass
    assert (tmp_path / "shard-0.tfrecord").exists()
    assert journal.plan_of(str(tmp_path))["plan"] == "old"
    monkeypatch.setattr(job_service, "end_job", lambda options, note: os.remove(note))
    with journal.unfinished(outputs, PLAN, options):
        assert not (tmp_path / "shard-0.tfrecord").exists()
        assert not note.exists()


@pytest.mark.parametrize("resumed", [False, True])
def test_what_an_earlier_run_has_done_stays_when_input_turns_out_wrong(tmp_path, resumed):
    output = tmp_path / "output"
    if resumed:
        with killed(output):
            (output / "hours.hdf5").touch()
    with pytest.raises(InputError, match="wrong"), journal.unfinished([str(output)], PLAN):
        raise InputError("wrong")
    assert output.exists() == (output / "hours.hdf5").exists() == resumed


def test_a_run_killed_between_the_markers_is_resumed(corpus, process, tmp_path):
    paths = corpus(b"".join(b"a b %d\n" % number for number in range(100)))
    outputs = tmp_path / "output", tmp_path / "heldout"
    options = [f"--heldout={outputs[1]}", "--heldout-fraction=0.5"]
    with interrupted(filesystems, "write", when=lambda path, _: path == str(outputs[1] / "_SUCCESS")):
        process(paths, *options)
    assert (outputs[0] / "_SUCCESS").exists()
    with pytest.raises(InputError, match=r"/output: expected a folder that does not exist yet"):
        process(paths, *options, "--seed=1")  # would throw away what is finished
    assert (outputs[0] / "_SUCCESS").exists()
    process(paths, *options)
    assert [len(record_folder.open_folder(output).shards) for output in outputs] == [1, 1]
    assert not [output for output in outputs if (output / "_unfinished").exists()]


def test_a_run_killed_while_it_tidies_up_is_finished_and_its_folder_is_kept_until_then(corpus, process, tmp_path):
    paths = corpus(b"a b\n")

    def is_kept(path: str) -> bool:
        with pytest.raises(InputError, match="found one in use"), journal.unfinished([str(tmp_path / "output")], PLAN):
            pass
        return True

    with interrupted(filesystems, "delete_folder", when=is_kept):
        process(paths)
    assert record_folder.open_folder(tmp_path / "output").info.sentences == 1
    assert (tmp_path / "output" / "_unfinished").exists()
    with pytest.raises(InputError, match=r"/output: expected a folder that does not exist yet, found a finished one"):
        process(paths)
    assert not (tmp_path / "output" / "_unfinished").exists()


def test_a_folder_that_another_run_has_finished_meanwhile_stays(tmp_path):
    folder = tmp_path / "output"
    with journal.unfinished([str(folder)], PLAN):
        # By another run, which continues later.
        journal.check(str(folder))
        (folder / "vocab.txt").write_bytes(b"mine")
    before = contents(folder)
    refused = pytest.raises(InputError, match=r"/output: expected a folder that does not exist yet")
    with refused, journal.unfinished([str(folder)], {"another": "plan"}):
        pass
    assert contents(folder) == before == {"vocab.txt": b"mine", "_SUCCESS": b""}


@pytest.mark.parametrize("busy", ["output", "heldout"])
def test_beside_a_folder_that_is_being_written_no_other_is_left(tmp_path, busy):
    outputs = [str(tmp_path / "new" / name) for name in ("output", "heldout")]
    with journal.unfinished([str(tmp_path / "new" / busy)], PLAN):
        refused = pytest.raises(InputError, match=f"/{busy}: expected a folder that no other run writes, found one in")
        with refused, journal.unfinished(outputs, PLAN):
            pass
        assert os.listdir(tmp_path / "new") == [busy]


def test_what_a_kill_left_among_the_notes_is_deleted(tmp_path):
    notes = tmp_path / "_unfinished"
    with killed(tmp_path):
        for name in ("scatter-00000-train.run.tmp-0", "scatter-00000-train.run", "scatter.progress"):
            (notes / name).write_bytes(b"0")
    with journal.unfinished([str(tmp_path)], PLAN):
        assert sorted(os.listdir(notes)) == ["plan.json", "scatter-00000-train.run"]
        # Of a worker that is killed in this run.
        (tmp_path / "shard-0.tmp-0").write_bytes(b"half")
        (tmp_path / "shard-0").write_bytes(b"whole")
    assert contents(tmp_path) == {"shard-0": b"whole", "_SUCCESS": b""}


@pytest.mark.parametrize("content", [b'{"some": "pl', b"[]"])
def test_a_damaged_plan_is_an_error_and_nothing_is_deleted(tmp_path, content):
    folder = tmp_path / "output"
    (folder / "_unfinished").mkdir(parents=True)
    (folder / "_unfinished" / "plan.json").write_bytes(content)
    (folder / "vocab.txt").write_bytes(b"hours of work")
    expected = rf"^{folder}: expected an unfinished folder with an intact plan, found a damaged one: .*plan\.json$"
    with pytest.raises(InputError, match=expected):
        journal.check(str(folder))
    with pytest.raises(InputError, match=expected), journal.unfinished([str(folder)], PLAN):
        pass
    assert (folder / "vocab.txt").read_bytes() == b"hours of work"
    assert (folder / "_unfinished" / "plan.json").read_bytes() == content


@pytest.mark.parametrize("content", [b'{"files": ', b'{"files": {}}', b'{"files": {"a": -1}}'])
def test_a_damaged_result_is_that_of_no_task(notes, tmp_path, content):
    result = Result(files={str(tmp_path / "a"): 1})
    (tmp_path / "a").write_bytes(b"1")
    notes.done("write", 3, result)
    assert notes.result("write", 3, Result) == result
    pathlib.Path(notes.path("write-00003.json")).write_bytes(content)
    assert notes.result("write", 3, Result) is None


def test_the_progress_of_tasks_is_added_up_and_damaged_lines_are_left_out(notes):
    amounts = task_progress.amounts(notes, "write")
    assert next(amounts) == (0, 0, 0, 0)
    for amount in ((5, 2, 3), (1, 1, 1, 7)):
        progress = task_progress.TaskProgress(notes, "write")
        progress.add(*amount)
        progress.write()
        with open(notes.path("write.progress"), "ab") as file:
            file.write(b"1 x\n\xff\n1 2 3 4 5\n")
    assert next(amounts) == (6, 3, 4, 7)


def test_what_an_earlier_run_has_done_does_not_count_for_the_time_left():
    amount = task_progress.Amount(bytes=600, sentences=10, tokens=100, reused_bytes=400)
    assert task_progress.describe(amount, 1000, 50.0) == "60%  10 sentences  100 tokens  2 tokens/s  0:01:40 left"
    assert task_progress.describe_tasks(1_200, 200, 3_200, 60.0) == "1,200 of 3,200 tasks  0:02:00 left"
    assert task_progress.describe_tasks(200, 200, 3_200, 60.0) == "200 of 3,200 tasks  time left unknown"
    assert task_progress.describe(amount, 1000, 5.0).endswith("20 tokens/s  time left unknown")


def test_a_failed_run_deletes_no_file_of_somebody_else(tmp_path):
    folder = tmp_path / "output"
    with pytest.raises(InputError, match="wrong"), journal.unfinished([str(folder)], PLAN):
        (folder / "info.json").write_bytes(b"ours")
        (folder / "notes.txt").write_bytes(b"mine")
        (folder / "my.progress").write_bytes(b"mine")
        raise InputError("wrong")
    assert sorted(os.listdir(folder)) == ["my.progress", "notes.txt"]


def test_a_journal_that_is_a_link_is_refused_and_nothing_behind_it_is_touched(tmp_path):
    target, output = tmp_path / "target", tmp_path / "output"
    target.mkdir()
    output.mkdir()
    (target / "precious").write_bytes(b"content")
    (output / "_unfinished").symlink_to(target)
    journal.check(str(output))
    message = rf"^{output}/_unfinished: expected no link, found one, which is not followed$"
    with pytest.raises(InputError, match=message), journal.unfinished([str(output)], PLAN):
        pass
    assert contents(target) == {"precious": b"content"}
