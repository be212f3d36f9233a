"""SIGINT and SIGTERM as a request to stop between two steps."""

import contextlib
import os
import signal


class Interrupt:
    """Turns the first SIGINT or SIGTERM into a request, so that the current step ends; the second acts as usual."""

    def __init__(self):
        self.requested = False
        self._before = {}

    def __enter__(self):
        # Outside the main thread, setting a handler raises ValueError.
        with contextlib.suppress(ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number, _frame):
        self.requested = True
        for one, handler in self._before.items():
            signal.signal(one, handler)
        # Not print: the signal may interrupt one.
        name = signal.Signals(number).name
        os.write(2, f"\n{name}: stopping after this step; a second signal stops at once\n".encode())
