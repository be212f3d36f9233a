"""The commands that use a SavedModel: `neighbors`, `verify`."""

import argparse

from elmo_tf.cli.arguments import add_command, positive


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    neighbors = add_command(commands, "neighbors", _neighbors, "print the nearest uses of a word in context")
    neighbors.add_argument("--savedmodel", required=True, metavar="DIR", help="a version's folder")
    neighbors.add_argument("--text", required=True, metavar="FILE", help="one tokenised sentence a line")
    neighbors.add_argument("--word", required=True, metavar="W")
    neighbors.add_argument("--sentence", required=True, metavar='"..."', help="tokens between spaces, W among them")
    neighbors.add_argument("--count", type=positive, default=10, metavar="N", help="uses to print (10)")

    verify = add_command(
        commands,
        "verify",
        _verify,
        "check an exported model: its files by their SHA-256, then, in a fresh process, its vectors of a few sentences",
        needs_tensorflow=False,
    )
    verify.add_argument("savedmodel", metavar="DIR", help="a version's folder, or a model's: then its newest version")


def _verify(arguments: argparse.Namespace) -> None:
    from elmo_tf import verification

    for line in verification.verify(arguments.savedmodel):
        print(line, flush=True)


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tf import neighbors

    uses = neighbors.nearest_uses(
        arguments.savedmodel, arguments.text, arguments.word, arguments.sentence, arguments.count
    )
    for use in uses:
        tokens = list(use.sentence)
        tokens[use.position] = f"[{tokens[use.position]}]"
        print(f"{use.similarity:.3f}  {' '.join(tokens)}")
