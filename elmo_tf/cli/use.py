"""The commands that use a SavedModel: `neighbors`, `verify`; `embed` takes Beam's options as well: see `main`."""

import argparse

from elmo_tf.cli.arguments import add_command, natural, positive


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    neighbors = add_command(
        commands, "neighbors", _neighbors, "print the uses of words in a text that are nearest to one in a sentence"
    )
    add = neighbors.add_argument
    add("--savedmodel", required=True, metavar="DIR", help="a version's folder, or a model's: then its newest version")
    add("--text", required=True, metavar="GLOB", help="one tokenised sentence a line; .gz and the like, folders, globs")
    add("--word", required=True, metavar="W")
    add("--sentence", required=True, metavar='"..."', help="tokens between spaces, W among them; left out of the text")
    add("--position", type=natural, metavar="N", help="which token of the sentence, from 0, if W occurs twice (first)")
    add("--layer", default="elmo", metavar="L", help="elmo (default), the weighted vector, or 0, 1, 2, ..: one layer")
    add("--count", type=positive, default=10, metavar="N", help="uses to print, of different sentences (10)")
    which = neighbors.add_mutually_exclusive_group()
    which.add_argument("--any-word", action="store_false", dest="same_word", help="look at all words (default)")
    which.add_argument("--same-word", action="store_true", help="look at uses of W only")
    add("--vectors", metavar="FILE", help="HDF5 that `elmo-tf embed` made of the text: nothing is embedded again")
    add("--json", action="store_true", help="print one line of JSON")

    verify = add_command(
        commands,
        "verify",
        _verify,
        "check an exported model: its files by their SHA-256, then, in a fresh process, its vectors of a few sentences",
        needs_tensorflow=False,
    )
    verify.add_argument("savedmodel", metavar="DIR", help="a version's folder, or a model's: then its newest version")


def _verify(arguments: argparse.Namespace) -> None:
    from elmo_tf.savedmodel import verification

    for line in verification.verify(arguments.savedmodel):
        print(line, flush=True)


def _neighbors(arguments: argparse.Namespace) -> None:
    from pipelines.embed import search as neighbors

    search = neighbors.Search(**{name: getattr(arguments, name) for name in neighbors.Search._fields})
    query, uses = search.run()
    print(neighbors.as_json(query, uses) if arguments.json else neighbors.as_table(uses))
