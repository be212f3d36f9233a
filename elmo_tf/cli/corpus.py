"""The command `corpus`: downloads public corpora."""

import argparse

from elmo_tf.cli.arguments import add_command


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    help_text = "download a public corpus"
    corpus = commands.add_parser("corpus", help=help_text, description=help_text, allow_abbrev=False)
    corpora = corpus.add_subparsers(title="corpora", metavar="CORPUS", required=True)
    help_text = (
        "download, check and unpack the 1 Billion Word benchmark, and print its folder. Needs 6 GB of disk (1.8 GB for "
        "the download, 4.2 GB for the text). The same command resumes an interrupted download"
    )
    lm1b = add_command(corpora, "lm1b", _lm1b, help_text, needs_tensorflow=False)
    lm1b.add_argument("--output", required=True, metavar="DIR", help="a new folder for the training and held-out text")
    lm1b.add_argument("--archive", metavar="FILE", help="an archive that is already downloaded; it is kept")


def _lm1b(arguments: argparse.Namespace) -> None:
    from elmo_tf.corpus import lm1b

    lm1b.fetch(arguments.output, arguments.archive)
    print(arguments.output)
