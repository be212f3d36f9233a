"""TensorFlow does not survive a fork: its threads are not in the child, which would wait for them for ever."""

import os

from elmo_tf.errors import InputError

_started_in: list[int] = []  # the process that first used TensorFlow here


def check_not_forked() -> None:
    """Raises `InputError` in a child forked after this package used TensorFlow; called before every such use."""
    if not _started_in:
        _started_in.append(os.getpid())
    if _started_in[0] != os.getpid():
        problem = (
            "TensorFlow was used before this process was forked, and would wait for ever; "
            "start processes by spawn, or fork before the first use"
        )
        raise InputError("multiprocessing", problem)
