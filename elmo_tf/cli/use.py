"""The commands `neighbors` and `verify`. `embed` takes Beam's options as well: see `main`."""

import argparse

from elmo_tf.cli.arguments import SAVEDMODEL, add_command, natural, positive


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    neighbors = add_command(
        commands,
        "neighbors",
        _neighbors,
        "print the uses in a text that are nearest to a word in a sentence, by the cosine of their vectors after "
        "subtracting the mean of the text's vectors",
    )
    add = neighbors.add_argument
    add("--savedmodel", required=True, metavar="DIR", help=SAVEDMODEL)
    add(
        "--text",
        required=True,
        metavar="GLOB",
        help="one tokenized sentence per line; may be compressed, a folder or a glob",
    )
    add("--word", required=True, metavar="W", help="the word, a token of --sentence")
    add("--sentence", required=True, metavar='"..."', help="a tokenized sentence with W; skipped in the text")
    add(
        "--position",
        type=natural,
        metavar="N",
        help="index of W in --sentence, from 0, if it occurs more than once (default: the first)",
    )
    add("--layer", default="elmo", metavar="L", help="elmo (default), the weighted vector, or a layer: 0, 1, 2, ..")
    add("--count", type=positive, default=10, metavar="N", help="uses to print, one per sentence (default: 10)")
    add("--same-word", action="store_true", help="consider only uses of W (default: all words)")
    add("--json", action="store_true", help="print one line of JSON")

    verify = add_command(
        commands,
        "verify",
        _verify,
        "verify an exported model: its files by their SHA-256, and its vectors of a few sentences in a fresh process",
        needs_tensorflow=False,
    )
    verify.add_argument("savedmodel", metavar="DIR", help=SAVEDMODEL)


def _verify(arguments: argparse.Namespace) -> None:
    from elmo_tf.savedmodel import verification

    for line in verification.verify(arguments.savedmodel):
        print(line, flush=True)


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tf.pipelines.embed import search

    query = search.find_query(arguments.word, arguments.sentence, arguments.position)
    given = (arguments.savedmodel, arguments.text, query, arguments.layer, arguments.count, arguments.same_word)
    uses = search.search(*given)
    print(search.as_json(query, uses) if arguments.json else search.as_table(uses))
