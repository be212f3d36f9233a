"""What the commands that read text share: options, their checks, and the hint that a failed command can be resumed."""

import argparse
import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

from elmo_tf.errors import InputError, renamed
from elmo_tf.extras import check_installed
from elmo_tf.pipelines.text import corpora, filesystems, sentences

_HINT = "run the same command again to resume"


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say what text to read, and how."""
    option = parser.add_argument
    option(
        "--input",
        nargs="+",
        required=True,
        metavar="GLOB",
        help="UTF-8 text, plain or .gz, .bz2, .xz, .zst: files, folders, globs; tar files, or ARCHIVE/GLOB for members",
    )
    option(
        "--tokenizer",
        choices=list(sentences.TOKENIZERS),
        default="whitespace",
        help="whitespace (default): the text is already tokenized; unicode: raw text",
    )
    option(
        "--line",
        choices=sentences.LINES,
        help="what a line of raw text is: a sentence, a paragraph, or part of one that ends at a blank line (default)",
    )
    option(
        "--strict",
        action="store_true",
        help="refuse irregular text (blank lines, bytes that are not UTF-8 ...); the error names file and line",
    )


def settings(arguments: argparse.Namespace, seed: int = 0, heldout_fraction: float | None = None) -> sentences.Settings:
    """Returns how text becomes sentences with the options of `add` and, to hold some out, `seed` and fraction.

    Raises:
        InputError: if the options contradict each other.
    """
    is_raw = arguments.tokenizer == "unicode"
    require("line", is_raw or arguments.line is None, "`tokenizer` unicode with it", f"`line` {arguments.line} alone")
    line = arguments.line or (sentences.PART if is_raw else sentences.SENTENCE)
    if is_raw:
        check_installed("tensorflow_text")  # now, and not in a worker after the corpus has been planned
    return sentences.Settings(arguments.tokenizer, line, arguments.strict, seed, heldout_fraction)


def corpus(patterns: Iterable[str], outputs: Iterable[str]) -> list[corpora.TextFile]:
    """Returns the files to read, without those that an earlier run has written to the output folders.

    Raises:
        InputError: naming `input`, if there are none.
    """
    written = tuple(f"{folder}/" for folder in outputs)
    with renamed(patterns="input"):
        matched = corpora.match(patterns)
    found = [file for file in matched if not real_path(file.path).startswith(written)]
    require("input", bool(found), "files outside of the output folders", "none")
    return found


def real_path(path: str) -> str:
    """Returns a path that is the same for every process on this machine, without a slash at the end."""
    return os.path.realpath(path) if filesystems.is_local(path) else path.rstrip("/")


def require(parameter: str, holds: bool, expected: str, found: Any) -> None:
    """Raises `InputError` about `parameter` unless the expectation `holds`."""
    if not holds:
        raise InputError(parameter, expected, found)


@contextlib.contextmanager
def hint() -> Iterator[None]:
    """Adds to an error or interrupt in the block that the command can be resumed."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"{error}; {_HINT}") from error
    except KeyboardInterrupt as interrupt:
        what = interrupt.args[0] if interrupt.args else "interrupted"
        raise KeyboardInterrupt(f"{what}; {_HINT}") from None
