"""A library's error in the words of the command line: the flags that set its parameters stand in their place."""

import argparse
import re

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError

_NAME = r"[a-z]\w*"


def flags_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Returns what a person types for each parameter: the option, or what the help calls a positional argument."""
    return {
        action.dest: action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)
        for action in parser._actions
    }


def in_flags(error: InputError, flags: dict[str, str]) -> str:
    """Returns the error's message with flags for parameters.

    Args:
        error: its parameter may be several between `", "`, or a configuration key; in what it expected and found,
            names of parameters stand in backticks.
        flags: by parameter.
    """
    if not error.expected:
        return str(error)

    settable = config_lib.keys()

    def flag(name: str) -> str:
        return flags.get(name) or (f"--set {name}" if name in settable else name)

    def named(text: object) -> str:
        return re.sub(rf"`({_NAME})`", lambda match: flags.get(match[1], match[0]), str(text))

    parameters = ", ".join(map(flag, error.parameter.split(", ")))
    return f"{parameters}: expected {named(error.expected)}, found {named(error.found)}"
