"""What the commands that read text share: its options, their checks, and what is said when they fail."""

import argparse
import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

from elmo_tf.errors import InputError
from elmo_tf.extras import check_installed
from pipelines.text import corpora, filesystems, sentences


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say what text to read, and how."""
    option = parser.add_argument
    option(
        "--input",
        nargs="+",
        required=True,
        metavar="GLOB",
        help="UTF-8 text, plain, .gz, .bz2 or .xz: files, folders, globs; tar archives, or ARCHIVE/GLOB for members",
    )
    option(
        "--tokenizer",
        choices=list(sentences.TOKENIZERS),
        default="whitespace",
        help="whitespace (default): tokens stand apart already; unicode: raw text",
    )
    option(
        "--line",
        choices=sentences.LINES,
        help="what a line of raw text is: a sentence, a paragraph, or part of one that ends at a blank line (default)",
    )
    option(
        "--strict", action="store_true", help="refuse irregular text (blank lines, not UTF-8 ...), naming file and line"
    )


def settings(arguments: argparse.Namespace, seed: int = 0, heldout_fraction: float | None = None) -> sentences.Settings:
    """Returns what `add`'s options, and a split if there is to be one, make of text.

    Raises:
        InputError: if the options do not go together.
    """
    is_raw = arguments.tokenizer == "unicode"
    require("--line", is_raw or arguments.line is None, "--tokenizer unicode with it", f"--line {arguments.line} alone")
    line = arguments.line or (sentences.PART if is_raw else sentences.SENTENCE)
    if is_raw:
        check_installed("tensorflow_text")  # now, and not in a worker after the corpus has been planned
    return sentences.Settings(arguments.tokenizer, line, arguments.strict, seed, heldout_fraction)


def corpus(patterns: Iterable[str], outputs: Iterable[str]) -> list[corpora.TextFile]:
    """Returns the files to read: not those in output folders, which a run to go on with has written.

    Raises:
        InputError: if there are none.
    """
    written = tuple(f"{folder}/" for folder in outputs)
    found = [file for file in corpora.match(patterns) if not real_path(file.path).startswith(written)]
    require("--input", bool(found), "files outside of --output and --heldout", "none")
    return found


def real_path(path: str) -> str:
    """Returns a path as any process on this machine finds it."""
    return os.path.realpath(path) if filesystems.is_local(path) else path


def require(argument: str, holds: bool, expected: str, found: Any) -> None:
    """Raises `InputError`, naming `argument`, unless what is expected of it `holds`."""
    if not holds:
        raise InputError(f"{argument}: expected {expected}, found {found}")


@contextlib.contextmanager
def hint() -> Iterator[None]:
    """Adds to an exception that leaves something to go on with that this is so."""
    words = "the same command goes on from here"
    try:
        yield
    except OSError as error:
        raise type(error)(f"{error}; {words}") from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {words}") from None
