"""The command `corpus`: a public corpus, fetched."""

import argparse
import dataclasses

from elmo_tf.cli.arguments import add_command


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    help_text = "fetch a public corpus"
    corpus = commands.add_parser("corpus", help=help_text, description=help_text, allow_abbrev=False)
    corpora = corpus.add_subparsers(title="corpora", metavar="CORPUS", required=True)
    lm1b = add_command(
        corpora,
        "lm1b",
        _lm1b,
        "fetch the 1 Billion Word benchmark, check and unpack it; prints the folder. Needs 6 GB of disk (the download "
        "is 1.8 GB, the text 4.2 GB). Run again, it goes on where it ended",
        needs_tensorflow=False,
    )
    lm1b.add_argument("--output", required=True, metavar="DIR", help="gets a training and a held-out folder of text")
    source = lm1b.add_mutually_exclusive_group()
    source.add_argument("--url", help="a mirror of the archive; the checksum stays the same")
    source.add_argument(
        "--archive", metavar="FILE", help="the archive if you have it: it is checked, unpacked and kept"
    )
    lm1b.add_argument(
        "--keep-archive", action="store_true", help="keep the downloaded archive in DIR (removed once it is unpacked)"
    )


def _lm1b(arguments: argparse.Namespace) -> None:
    from pipelines.corpus import lm1b

    source = dataclasses.replace(lm1b.LM1B, url=arguments.url) if arguments.url else lm1b.LM1B
    lm1b.fetch(arguments.output, source, arguments.archive, arguments.keep_archive)
    print(arguments.output)
