"""Preconditions of parts of elmo-tf: installed packages, Keras's backend, no fork after TensorFlow."""

import contextlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator

from elmo_tf.errors import InputError

# The package and the extra (pyproject.toml) that bring each top-level module.
_EXTRAS = {
    "apache_beam": ("apache-beam", "beam"),
    "backports": ("backports.zstd", "beam"),
    "tensorflow_text": ("tensorflow-text", "text"),
    "spacy": ("spacy", "spacy"),
    "sklearn": ("scikit-learn", "tasks"),
    "seqeval": ("seqeval", "tasks"),
    "scipy": ("scipy", "tasks"),
    "matplotlib": ("matplotlib", "tasks"),
    "huggingface_hub": ("huggingface_hub", "hub"),
}
_NOT_IN_NUMPY = ("tensorflow", "keras", "filelock")  # dependencies that NumPy's engine does not need
_started_in: list[int] = []  # the process that first used TensorFlow here


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Returns one line with the missing package and its extra; None if no extra has it."""
    if error.name in _NOT_IN_NUMPY:
        return f"needs {error.name}: install elmo-tf with its dependencies"
    if error.name not in _EXTRAS:
        return None
    package, extra = _EXTRAS[error.name]
    return f"needs {package}: install elmo-tf with the extra [{extra}]"


@contextlib.contextmanager
def explain_missing_extra() -> Iterator[None]:
    """Gives the `ModuleNotFoundError` of an import in the block the message of `missing_extra`, if there is any."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (message := missing_extra(error)) is None:
            raise
        raise ModuleNotFoundError(message, name=error.name) from error


def check_installed(module: str) -> None:
    """Checks, without importing it, that a module is installed; if not, raises as `explain_missing_extra` does."""
    with explain_missing_extra():
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def installed() -> dict[str, bool]:
    """Returns of each extra whether all its packages are installed, without importing them."""
    complete = dict.fromkeys((extra for _, extra in _EXTRAS.values()), True)
    for package, extra in _EXTRAS.values():
        complete[extra] &= version(package) is not None
    return complete


def version(package: str) -> str | None:
    """Returns an installed package's version without importing it; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_keras_backend() -> None:
    """Raises `InputError` if Keras, imported or not, uses a backend other than TensorFlow."""
    config = getattr(sys.modules.get("keras"), "config", None)
    backend = config.backend() if config else os.environ.get("KERAS_BACKEND")
    if backend not in (None, "", "tensorflow"):
        raise InputError("KERAS_BACKEND", f"it is {backend}; set it to tensorflow before Keras is imported")


def check_not_forked() -> None:
    """Raises `InputError` in a child forked after this package used TensorFlow; called before every such use.

    TensorFlow's threads do not exist in the child, which would wait for them forever.
    """
    if not _started_in:
        _started_in.append(os.getpid())
    if _started_in[0] != os.getpid():
        problem = (
            "TensorFlow was used before this process was forked, and would hang; "
            "start processes with spawn, or fork before the first use"
        )
        raise InputError("multiprocessing", problem)
