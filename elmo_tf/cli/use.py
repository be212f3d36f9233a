"""The commands that use a SavedModel: `neighbors`."""

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


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tf import neighbors

    uses = neighbors.nearest_uses(
        arguments.savedmodel, arguments.text, arguments.word, arguments.sentence, arguments.count
    )
    for use in uses:
        tokens = list(use.sentence)
        tokens[use.position] = f"[{tokens[use.position]}]"
        print(f"{use.similarity:.3f}  {' '.join(tokens)}")
