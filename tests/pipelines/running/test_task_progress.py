"""What the progress line says."""

from elmo_tf.pipelines.running import task_progress
from elmo_tf.pipelines.running.task_progress import Amount


def test_bytes_of_an_earlier_run_do_not_count_for_the_time_left():
    amount = Amount(bytes=600, sentences=10, tokens=100, reused_bytes=400)
    assert task_progress.describe(amount, 1000, 50.0) == "60%  10 sentences  100 tokens  2 tokens/s  0:01:40 left"
    assert task_progress.describe(Amount(bytes=400, reused_bytes=400), 1000, 50.0).endswith("time left unknown")


def test_tasks_of_an_earlier_run_do_not_count_for_the_time_left():
    assert task_progress.describe_tasks(1_200, 200, 3_200, 60.0) == "1,200 of 3,200 tasks  0:02:00 left"
    assert task_progress.describe_tasks(200, 200, 3_200, 60.0) == "200 of 3,200 tasks  time left unknown"
    assert task_progress.describe_tasks(1, 0, 1, 60.0) == "1 of 1 tasks  0:00:00 left"
