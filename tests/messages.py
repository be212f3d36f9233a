"""Prints every error that the tests provoke, once, so that a person can read them all:

.venv/bin/python -m pytest -n 0 -p tests.messages
"""

import re

from elmo_tf import errors

_MESSAGES: set[str] = set()


def pytest_configure() -> None:
    real = errors.InputError.__init__

    def init(self, *arguments) -> None:
        real(self, *arguments)
        # Messages that differ only in the temporary folder or the checksum count as one.
        _MESSAGES.add(re.sub(r"\S*/pytest-of-\S*?/(?=[^/\s]+(:|,|\s|$))|[0-9a-f]{64}", "...", str(self)))

    errors.InputError.__init__ = init


def pytest_terminal_summary(terminalreporter) -> None:
    terminalreporter.write_line("")
    for message in sorted(_MESSAGES):
        terminalreporter.write_line(message)
