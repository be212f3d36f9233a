"""Shared by the jobs that read text: configuration, checks, and the hint that a failed job can be run again."""

import contextlib
import dataclasses
import numbers
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from elmo_tf.corpus import corpora, reading, sentences
from elmo_tf.errors import InputError
from elmo_tf.extras import check_installed
from elmo_tf.files import staging, stores
from elmo_tf.text import tokenizers

Path = str | os.PathLike
_HINT = "run the same command again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobConfig:
    """The text a job reads, and how it runs. Paths become `str`, and several inputs a tuple.

    Raises:
        InputError: naming the field, if a value cannot be used.
    """

    input: Path | Sequence[Path]  # files, folders, globs; see pipelines/README.md
    output: Path  # the folder or file to make
    tokenizer: str = "whitespace"  # one of tokenizers.TOKENIZERS
    line: str | None = None  # one of sentences.LINES; None: `part` with the tokenizer unicode, else `sentence`
    beam: Sequence[str] = ()  # Beam's own options, as on a command line: ("--direct_num_workers=8",)

    def __post_init__(self) -> None:
        if not isinstance(self.input, str | os.PathLike):
            object.__setattr__(self, "input", tuple(os.fspath(path) for path in self.input))
        object.__setattr__(self, "beam", tuple(self.beam))
        require("input", all(self.patterns or [""]), "at least one file, folder or glob", self.input)
        for field in dataclasses.fields(self):
            if isinstance(value := getattr(self, field.name), os.PathLike):
                object.__setattr__(self, field.name, os.fspath(value))
            elif isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        if self.tokenizer is not None:
            self.require_one_of("tokenizer", tokenizers.TOKENIZERS)
        if self.line is not None:
            self.require_one_of("line", sentences.LINES)
            splits_text = self.tokenizer in ("penn", "unicode", None)
            problem = f"only works with the tokenizers penn and unicode, not with {self.tokenizer}"
            require("line", splits_text, problem)

    @property
    def resolved_line(self) -> str:
        """`line`, or what None stands for with this tokenizer."""
        return self.line or (sentences.PART if self.tokenizer == "unicode" else sentences.SENTENCE)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The files, folders and globs of `input`."""
        paths = [self.input] if isinstance(self.input, str | os.PathLike) else self.input
        return tuple(os.fspath(path) for path in paths)

    def require_one_of(self, name: str, values: Iterable[str]) -> None:
        """Raises `InputError` unless a field has one of the values."""
        value = getattr(self, name)
        require(name, value in values, f"one of {', '.join(values)}", value)

    def require_at_least(self, name: str, minimum: int) -> None:
        """Raises `InputError` if a field is less than `minimum`."""
        value = getattr(self, name)
        if value is not None:
            require_integer(name, value, minimum)

    def settings(self) -> sentences.Settings:
        """Returns how text becomes sentences."""
        settings = sentences.Settings(self.tokenizer, self.resolved_line)
        if settings.needs_tensorflow:
            check_installed("tensorflow_text")  # now rather than in a worker
        return settings

    def plan_options(self, *without: str) -> dict[str, Any]:
        """Returns the fields that the output depends on, by name, without paths, Beam's options and `without`."""
        excluded = ("input", "output", "beam", *without)
        fields = dataclasses.asdict(self) | {"line": self.resolved_line}
        return {name: value for name, value in fields.items() if name not in excluded}


def corpus(patterns: Iterable[str], outputs: Iterable[str], tokenizer: str) -> list[corpora.TextFile]:
    """Returns the files to read, but not those in the output folders. Raises `InputError` if one is not text."""
    written = tuple(f"{folder}/" for folder in outputs)
    files = [file for file in corpora.match(patterns) if not _real_path(file.path).startswith(written)]
    require("input", bool(files), "all these files are in the output folders")
    return reading.inspect(files, tokenizer)


def output_path(path: Path) -> str:
    """Returns an absolute path without links; raises `InputError` for a dangling link. Stores lose a final slash."""
    path = os.fspath(path)
    if stores.is_local(path):
        staging.check_link(path)
    return _real_path(path)


def _real_path(path: str) -> str:
    return os.path.realpath(path) if stores.is_local(path) else path.rstrip("/")


def require(parameter: str, condition: bool, problem: str, *actual: Any) -> None:
    """Raises `InputError` about `parameter`, with the other arguments, unless the `condition` is true."""
    if not condition:
        raise InputError(parameter, problem, *actual)


def require_integer(parameter: str, value: object, minimum: int, maximum: int | None = None) -> None:
    """Raises `InputError` about `parameter` unless `value` is an integer in the range."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(parameter, is_integer, "an integer", repr(value))
    limits = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
    is_inside = minimum <= value and (maximum is None or value <= maximum)  # type: ignore[operator]
    require(parameter, is_inside, limits, value)


@contextlib.contextmanager
def retry_hint() -> Iterator[None]:
    """Adds to the message of an error or interrupt in the block that the same command can be run again."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"{error}; {_HINT}") from error
    except KeyboardInterrupt as interrupt:
        what = interrupt.args[0] if interrupt.args else "interrupted"
        raise KeyboardInterrupt(f"{what}; {_HINT}") from None
