"""The one exception that means "the input is wrong", as opposed to "the program is wrong"."""

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator

_OUT_OF_MEMORY = ("std::bad_alloc", "OOM when allocating", "CUDA_ERROR_OUT_OF_MEMORY", "ailed to allocate memory")
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


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

    def __reduce__(self) -> tuple:
        return _unpickled, (type(self), self.args, vars(self))

    @classmethod
    def from_message(cls, message: str) -> "InputError":
        """Returns the error that has this message: all that is left of one raised in another process."""
        parts = re.fullmatch(r"(.*?): expected (.*?), found (.*)", message, re.DOTALL)
        return cls(*parts.groups()) if parts else cls(message)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean ...?` with the known name that is most like `name`, or nothing if none is like it."""
    similar = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


def reason(error: BaseException) -> str:
    """Returns an error's message in one line, an `OSError`'s without its number and the file; the caller names it."""
    return " ".join(str(getattr(error, "strerror", None) or error).split())


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


@contextlib.contextmanager
def memory_explained(parameters: str = "memory", expected: str = "enough of it for this command") -> Iterator[None]:
    """Turns an error about memory, TensorFlow's or Python's, into an `InputError` in plain words.

    Args:
        parameters: what the user can change so that less memory is needed.
        expected: what these have to be.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or not is_about_memory(error):
            raise
        raise InputError(parameters, expected, f"too little memory: {_first_line(error)}") from error


def is_about_memory(error: BaseException) -> bool:
    """Whether memory ran out; TensorFlow uses one exception for memory and for disks, and is not imported here."""
    if isinstance(error, MemoryError):
        return True
    if any(words in str(error) for words in _DISK_FULL):
        return False
    return type(error).__name__ == "ResourceExhaustedError" or any(words in str(error) for words in _OUT_OF_MEMORY)


def _first_line(error: BaseException) -> str:
    """Returns the line of a message that says what did not fit, without TensorFlow's names of nodes and devices."""
    lines = re.sub(r"\{\{.*?\}\}|\[Op:.*|/job:\S*/device:|by allocator \S+", "", str(error)).strip().splitlines()
    about_memory = [line for line in lines if any(words in line for words in _OUT_OF_MEMORY)]
    return " ".join((about_memory or lines or [type(error).__name__])[0].split())
