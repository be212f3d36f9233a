"""SIGINT and SIGTERM as a request to stop between two steps."""

import contextlib
import os
import signal


class Interrupt:
    """Turns the first SIGINT or SIGTERM into a request, so that no step is cut in two; the second has its usual way."""

    def __init__(self):
        self.requested = False
        self._before = {}

    def __enter__(self):
        with contextlib.suppress(ValueError):  # only the main thread may set handlers
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
        # Not print: a signal may come in the middle of one.
        os.write(2, f"\n{signal.Signals(number).name}: stopping after this step; once more stops at once\n".encode())
