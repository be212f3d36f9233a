"""The one exception that means "the input is wrong", as opposed to "the program is wrong"."""

import contextlib
import re
from collections.abc import Iterator


class InputError(ValueError):
    """A user's argument, file or setting cannot be used.

    The message is one line, `parameter: expected ..., found ...`. The library speaks of its own parameters; the command
    line puts its flags in their place, prints the line and exits with status 1. Any other exception is a defect and
    keeps its traceback.

    Args:
        parameter: what cannot be used: a parameter of the function that was called, several between `", "`, a
            configuration key (`train.seed`), or a file's path.
        expected: what it has to be. Names of other parameters stand in backticks: "`heldout` with it".
        found: what it is instead, and where: with the path if it is a file's contents.
    """

    def __init__(self, parameter: str, expected: str = "", found: object = ""):
        # With its message alone an error is made again by Keras, which adds to the messages of a layer's errors.
        super().__init__(f"{parameter}: expected {expected}, found {found}" if expected else parameter)
        self.parameter = parameter
        self.expected = expected
        self.found = found

    def __reduce__(self):
        return _unpickled, (type(self), self.args, vars(self))

    @classmethod
    def from_message(cls, message: str) -> "InputError":
        """Returns the error that has this message: all that is left of one raised in another process."""
        parts = re.fullmatch(r"(.*?): expected (.*?), found (.*)", message, re.DOTALL)
        return cls(*parts.groups()) if parts else cls(message)


@contextlib.contextmanager
def renamed(**names: str) -> Iterator[None]:
    """Has an `InputError` raised in the block speak of the caller's parameters.

    `with renamed(path="heldout"): open_folder(heldout)`: what `open_folder` says of its `path` is said of `heldout`.

    Args:
        names: the caller's parameter for each of the callee's.
    """
    try:
        yield
    except InputError as error:
        error.parameter = ", ".join(names.get(name, name) for name in error.parameter.split(", "))
        error.args = InputError(error.parameter, error.expected, error.found).args
        raise


def _unpickled(kind: type[InputError], args: tuple, attributes: dict) -> InputError:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(attributes)
    return error
