"""Errors of tasks as data."""

import collections

import pytest

from elmo_tf.beam import failures, output_folder
from elmo_tf.errors import InputError
from elmo_tf.files import stores

Task = collections.namedtuple("Task", "number error")


class Failing(failures.TaskFn):
    failed = ("failed",)

    def process_task(self, task: Task):
        yield "begun"
        raise task.error


def test_a_remote_job_goes_on_and_the_command_raises_the_error_of_the_lowest_task(folder):
    step = Failing(folder, is_local_run=False)
    for number in (11, 2, 300):
        error = InputError(f"/x/{number}", "text", "none: \udce9") if number != 300 else InputError("a", "is bad")
        assert list(step.process(Task(number, error))) == ["begun", "failed"]
    stored = failures.first_error(folder)
    assert (type(stored), stored.subject) == (InputError, "/x/2")
    assert str(stored) == "/x/2: expected text, found none: \\udce9"


def test_an_earlier_phase_comes_first_and_other_runs_are_not_asked(folder):
    late = Failing(folder, is_local_run=False)
    late.phase = 2
    list(late.process(Task(0, InputError("late"))))
    list(Failing(folder, is_local_run=False).process(Task(9, InputError("early"))))
    assert str(failures.first_error(folder)) == "early"
    assert failures.first_error(folder._replace(run="another")) is None


@pytest.mark.parametrize("error", [InputError("a", "is bad"), stores.WriteError("cannot write b")])
def test_a_local_run_stops_and_the_error_keeps_its_type(folder, error):
    with pytest.raises(type(error)):
        list(Failing(folder, is_local_run=True).process(Task(0, error)))
    stored = failures.first_error(folder)
    assert (type(stored), str(stored)) == (type(error), str(error))


@pytest.mark.parametrize("error", [stores.ReadError("cannot read a"), KeyError()])
def test_a_failing_disk_and_other_exceptions_are_left_to_a_remote_runner_which_tries_again(folder, error):
    with pytest.raises(type(error)):
        list(Failing(folder, is_local_run=False).process(Task(0, error)))
    assert failures.first_error(folder) is None


def test_a_task_of_an_abandoned_folder_does_nothing(folder):
    stores.delete([folder.file(output_folder.FILE)])
    assert list(Failing(folder, is_local_run=True).process(Task(0, InputError("a")))) == ["failed"]
    assert failures.first_error(folder) is None
