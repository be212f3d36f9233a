"""Shared by the commands: their declaration, and types of arguments."""

import argparse
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any, NoReturn

from elmo_tf import config as config_lib
from elmo_tf.errors import printable, suggestion

SAVEDMODEL = "folder of a version or of a model (its newest version), a name (`elmo-tf models`), or hf://owner/name"


class PlainParser(argparse.ArgumentParser):
    """A parser that rejects empty arguments.

    Its errors have no control characters, which file names on a command line may contain.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if not self._subparsers:
            for before, word in itertools.pairwise(["", *(args or ())]):
                option, sign, value = word.partition("=")
                if not word or (sign and not value and option.startswith("--")):
                    named = f"argument {before if not word else option}: " if before.startswith("--") or sign else ""
                    self.error(f"{named}expected a value, found an empty one")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Ends with status 2 and the message."""
        super().error(printable(message))


class Parser(PlainParser):
    """A parser that suggests the nearest command, choice or option for a wrong word.

    It reports an unknown option before a missing one.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        options = () if self._subparsers else itertools.takewhile(lambda word: word != "--", args or ())
        for option in (word.partition("=")[0] for word in options if word.startswith("--") and " " not in word):
            if option not in self._option_string_actions:
                self.error(f"unrecognized arguments: {option}{suggestion(option, self._option_string_actions)}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Ends with status 2 and the message."""
        wrong = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
        super().error(message + (suggestion(wrong[1], re.findall(r"[\w-]+", wrong[2])) if wrong else ""))


def add_command(
    commands: argparse._SubParsersAction,
    name: str,
    run: Callable,
    help_text: str,
    on_gpu: bool = False,
    needs_tensorflow: bool = True,
) -> argparse.ArgumentParser:
    """Adds a command and returns its parser.

    Args:
        help_text: its description; up to the first semicolon or parenthesis, also its line in the list of commands.
        run: called with the parsed arguments.
        on_gpu: whether it uses the machine's GPUs, and has `--gpus`. Other commands run on the CPU, where
            TensorFlow computes with more precision.
        needs_tensorflow: whether it waits for TensorFlow to load, which takes seconds.
    """
    short = re.split(r"; | \(", help_text)[0]
    added = commands.add_parser(name, help=short, description=help_text, allow_abbrev=False)
    if on_gpu:
        added.add_argument("--gpus", metavar="0,1,..", help="GPUs to use (default: all; for `task`, the first)")
    added.set_defaults(run=run, on_gpu=on_gpu, gpus=None, needs_tensorflow=needs_tensorflow, parser=added)
    return added


def flags_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Maps parameter names to command-line flags: an option, the name of a positional argument, or `--set KEY`."""
    flags = {key: f"--set {key}" for key in parser.get_default("settings") or config_lib.keys()}
    for action in parser._actions:
        flags[action.dest] = action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)
    return flags | (parser.get_default("other_flags") or {})


def text_file(path: str) -> str:
    """Returns the path of a file that is read once; `-` is standard input. A type of arguments."""
    return "/dev/stdin" if path == "-" else path


def add_checkpoint_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--checkpoint`, which of a workdir's checkpoints to use."""
    parser.add_argument(
        "--checkpoint",
        default="latest",
        metavar="WHICH",
        help="latest (default), best (by held-out perplexity while training) or a step",
    )


def index_or_name(text: str) -> int | str:
    """Returns an index, negative ones too, or a name. A type of arguments."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def _integer_from(minimum: int, text: str) -> int:
    if not text.isdecimal() or int(text) < minimum:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least {minimum}, found {text!r}")
    return int(text)


positive, non_negative = (functools.partial(_integer_from, minimum) for minimum in (1, 0))  # types of arguments
