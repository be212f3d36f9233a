"""An unfinished folder: who may go on with it, what appears in it, and what remains of it."""

import json
import os

import pytest

from elmo_tf.beam import output_folder
from elmo_tf.errors import InputError
from elmo_tf.files import stores

ABOUT = {"command": "test", "shards": 2, "input": [["a", 1]]}


def claimed(path, **changes: object):
    return output_folder.claim({"train": str(path)}, ABOUT | changes)


def end(path, error: type[BaseException], work: str | None = None, **changes: object) -> None:
    """Lets a run end with an error, perhaps after it has written a file."""
    with pytest.raises(error), claimed(path, **changes) as folders:
        if work:
            stores.write(folders["train"].file(work), b"x")
        raise error("no")


@pytest.mark.parametrize("where", ["here", "store"])
def test_a_folder_has_its_plan_until_it_is_finished(where, tmp_path, store):
    path = str(tmp_path / "deep" / "a") if where == "here" else "memory://out/a"
    output_folder.check(path)
    with claimed(path) as folders:
        train = folders["train"]
        assert json.loads(stores.read(train.file("plan.json"))) == ABOUT | {"folder": "train"}
        stores.write(train.file(".a.incomplete-0123456789ab"), b"x")  # left by a killed worker
        for name in (".a.incomplete-", "info.json", "_SUCCESS"):
            stores.write(train.file(name), b"x")
        stores.write(train.run_file("progress"), b"x")
    assert sorted(stores.names(path)) == [".a.incomplete-", "_SUCCESS", "info.json"]
    with pytest.raises(InputError, match=r"/a: is finished; delete it to run the job again$"):
        output_folder.check(path)


def test_the_same_plan_goes_on_and_another_one_is_named_and_touches_nothing(tmp_path, caplog):
    caplog.set_level("INFO", "elmo_tf")
    end(tmp_path / "a", OSError, "shard-0.tfrecord")
    assert caplog.messages == []
    left = sorted(os.listdir(tmp_path / "a"))
    assert left == ["plan.json", "shard-0.tfrecord"]
    for changes, difference in (
        ({"shards": 3}, "other options: shards 2, now 3; run"),
        ({"input": []}, "other options: another input; run"),
        ({"command": "embed"}, "another command; run"),
    ):
        with (
            pytest.raises(InputError, match=rf"/a: is the unfinished output of {difference}"),
            claimed(tmp_path / "a", **changes),
        ):
            pass
    assert sorted(os.listdir(tmp_path / "a")) == left
    with claimed(tmp_path / "a") as folders:
        stores.write(folders["train"].file("_SUCCESS"), output_folder.MARKER)
    assert caplog.messages == ["continuing an earlier run"]
    assert sorted(os.listdir(tmp_path / "a")) == ["_SUCCESS", "shard-0.tfrecord"]


def test_an_error_costs_nothing_of_an_earlier_run_and_one_killed_before_it_deleted_its_plan_goes_on(tmp_path):
    end(tmp_path / "a", OSError, "shard-0.tfrecord")
    end(tmp_path / "a", InputError)
    assert sorted(os.listdir(tmp_path / "a")) == ["plan.json", "shard-0.tfrecord"]
    (tmp_path / "a" / "_SUCCESS").touch()
    output_folder.check(str(tmp_path / "a"))
    with claimed(tmp_path / "a"):
        pass
    assert sorted(os.listdir(tmp_path / "a")) == ["_SUCCESS", "shard-0.tfrecord"]


@pytest.mark.parametrize(
    ("error", "work", "left"),
    [
        (InputError, "shard-0.tfrecord", []),
        (OSError, None, []),
        (KeyboardInterrupt, None, []),
        (KeyboardInterrupt, "shard-0.tfrecord", ["deep"]),
    ],
)
def test_wrong_input_leaves_nothing_and_other_ends_leave_only_work(tmp_path, error, work, left):
    end(tmp_path / "deep" / "deeper" / "a", error, work)
    assert os.listdir(tmp_path) == left


def test_the_folders_of_one_command_are_not_exchanged(tmp_path):
    end(tmp_path / "a", OSError, "shard-0.tfrecord")
    with (
        pytest.raises(InputError, match=r"other options: folder train, now heldout; run"),
        output_folder.claim({"heldout": str(tmp_path / "a")}, ABOUT),
    ):
        pass


def test_a_command_that_was_killed_while_it_wrote_its_plan_goes_on(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".plan.json.incomplete-0123456789ab").touch()
    with claimed(tmp_path / "a") as folders:
        stores.write(folders["train"].file("_SUCCESS"), output_folder.MARKER)
    assert os.listdir(tmp_path / "a") == ["_SUCCESS"]


def test_what_stands_in_a_foreign_plan_is_part_of_no_path(tmp_path):
    (tmp_path / "a").mkdir()
    foreign = {"digest": "x/../../../../escaped/evil", "run": "x/../../evil", **ABOUT}
    (tmp_path / "a" / "plan.json").write_text(json.dumps(foreign))
    with pytest.raises(InputError, match="is the unfinished output of different options"), claimed(tmp_path / "a"):
        pass
    (tmp_path / "a" / "plan.json").write_text("[" * 9999)
    with pytest.raises(InputError, match=r"/a: has a damaged plan.json; "), claimed(tmp_path / "a"):
        pass
    assert os.listdir(tmp_path) == ["a"]


def test_what_is_not_ours_is_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    problems = {"file": "is a file", "link": "a link to a path that does not", "folder": "already exists, and is"}
    for name, problem in problems.items():
        with pytest.raises(InputError, match=rf"/{name}: {problem}"):
            output_folder.check(str(tmp_path / name))


def test_a_folder_that_another_run_finishes_meanwhile_is_refused(tmp_path):
    output_folder.check(str(tmp_path / "a"))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "_SUCCESS").touch()
    with pytest.raises(InputError, match=r"/a: is finished"), claimed(tmp_path / "a"):
        pass
    assert os.listdir(tmp_path / "a") == ["_SUCCESS"]
