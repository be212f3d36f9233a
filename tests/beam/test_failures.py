"""Errors of tasks as data."""

import pytest

from elmo_tf.beam import failures, output_folder
from elmo_tf.errors import InputError
from elmo_tf.files import stores


class Failing(failures.TaskFn):
    def process_task(self, error: Exception):
        yield "begun"
        raise error


def fail(folder: output_folder.Folder, error: Exception) -> None:
    with pytest.raises(type(error)):
        list(Failing(folder).process(error))


ERRORS = [
    InputError("a", "is bad"),
    InputError("/x", "text", "none: \udce9"),
    stores.ReadError("cannot read a"),
    stores.WriteError("cannot write b"),
]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_raised_and_keeps_its_type(folder, error):
    assert failures.task_error(folder) is None
    fail(folder, error)
    stored = failures.task_error(folder)
    assert (type(stored), str(stored)) == (type(error), str(error).replace("\udce9", "\\udce9"))
    assert failures.task_error(folder._replace(run="0123456789ab")) is None  # another run of the same command


def test_the_last_error_counts_because_runners_repeat_tasks(folder):
    fail(folder, stores.ReadError("cannot read a"))
    fail(folder, InputError("/x", "is bad"))
    stored = failures.task_error(folder)
    assert isinstance(stored, InputError)
    assert stored.subject == "/x"


def test_other_exceptions_are_left_to_the_runner(folder):
    fail(folder, KeyError("a"))
    assert failures.task_error(folder) is None


def test_a_task_does_not_begin_where_its_worker_does_not_see_the_folder(folder):
    stores.delete([folder.file(output_folder.FILE)])
    problem = rf"^cannot read {folder.path}/plan.json: No such file or directory; all workers need it under this path$"
    with pytest.raises(stores.ReadError, match=problem):
        list(Failing(folder).process(KeyError()))
