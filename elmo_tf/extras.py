"""Packages that only an extra of elmo-tf installs, and the error when one of them is missing."""

import contextlib
from collections.abc import Iterator

# The package and the extra (pyproject.toml) that bring each top-level module.
_EXTRAS = {
    "apache_beam": ("apache-beam", "beam"),
    "tensorflow_text": ("tensorflow-text", "text"),
    "sklearn": ("scikit-learn", "tasks"),
    "threadpoolctl": ("threadpoolctl", "tasks"),
    "seqeval": ("seqeval", "tasks"),
    "matplotlib": ("matplotlib", "tasks"),
}


class MissingExtraError(ModuleNotFoundError):
    """A package that an extra installs is missing; the message is one line with the command that installs it."""


@contextlib.contextmanager
def required() -> Iterator[None]:
    """Raises `MissingExtraError` when an import in the block fails because a package of an extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        package, extra = _EXTRAS[error.name]
        raise MissingExtraError(f"needs {package}: pip install 'elmo-tf[{extra}]'", name=error.name) from error
