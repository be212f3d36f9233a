"""The commands `preprocess` and `embed`: each parses its options and passes the others to Beam."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from elmo_tf import embedder, sources
from elmo_tf.beam import runners
from elmo_tf.beam.embed import EmbedConfig, embed
from elmo_tf.beam.embed import config as embed_config
from elmo_tf.beam.preprocess import PreprocessConfig, preprocess
from elmo_tf.beam.preprocess import config as preprocess_config
from elmo_tf.cli.arguments import PlainParser, flags_of, index_or_name
from elmo_tf.corpus import sentences
from elmo_tf.errors import InputError, suggestion
from elmo_tf.text import tokenizers

_EPILOG = "Beam's own options work too: --direct_num_workers=N --direct_running_mode=multi_processing uses N cores."


def run(name: str, argv: Sequence[str], load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Runs a job and returns its report.

    Args:
        name: of the command.
        argv: options of the command and of Beam.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError, OSError: as the job does.
    """
    arguments = parsed(name, argv)
    return _JOBS[name].run(_JOBS[name].config(**arguments), load_tensorflow)


def parsed(name: str, argv: Sequence[str]) -> dict[str, Any]:
    """Returns the fields of a job's configuration that a command line sets. Ends with status 2 if it is wrong."""
    parser, without_required = _parser(name), _parser(name)
    for action in without_required._actions:
        action.required = False  # an unknown option is reported before a missing one
    rest = without_required.parse_known_args(argv)[1]
    try:
        runners.parse(rest)
    except InputError as error:
        if error.subject != "beam":
            raise
        unknown = error.problem.removeprefix("unrecognized arguments: ").split()[0].partition("=")[0]
        parser.error(error.problem + suggestion(unknown, parser._option_string_actions))
    return {**vars(parser.parse_known_args(argv)[0]), "beam": rest}


def flags(name: str) -> dict[str, str]:
    """Returns the flag of each field of a command, and of each Beam option that errors name."""
    return {option: f"--{option}" for option in runners.PARAMETERS} | flags_of(_parser(name))


def _parser(name: str) -> argparse.ArgumentParser:
    # The configuration supplies the defaults.
    parser = PlainParser(
        prog=f"elmo-tf {name}",
        description=_JOBS[name].about,
        epilog=_EPILOG,
        allow_abbrev=False,  # otherwise it would read `--run` as Beam's `--runner`
        argument_default=argparse.SUPPRESS,
    )
    _JOBS[name].add_options(parser)
    return parser


def _add_text_options(parser: argparse.ArgumentParser, default: str) -> None:
    add = parser.add_argument
    add(
        "--input",
        action="extend",
        nargs="+",
        required=True,
        metavar="GLOB",
        help="UTF-8 text, plain or .gz, .bz2, .xz, .zst: files, folders, globs; with the tokenizer characters also "
        "FASTA",
    )
    add(
        "--tokenizer",
        choices=tokenizers.TOKENIZERS,
        help="whitespace: the text is already tokenized; penn: English sentences, split by the Penn Treebank's rules; "
        f"unicode: raw text; characters: each character is a token (default: {default})",
    )
    add(
        "--line",
        choices=sentences.LINES,
        help="what a line is, with the tokenizers penn and unicode: a sentence (the default of penn), a paragraph, or "
        "part (the default of unicode): paragraphs end at blank lines",
    )


def _add_preprocess_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_text_options(parser, "whitespace")
    add("--output", required=True, metavar="DIR", help="folder to create")
    add("--vocab", metavar="FILE", help="use this vocabulary instead of counting the words of the text")
    add("--min-count", type=int, metavar="N", help="leave out words that occur fewer than N times (default: 1)")
    add("--max-vocab", type=int, metavar="N", help="keep N words, including <S>, </S> and <UNK> (default: all)")
    add("--shards", type=int, metavar="N", help="files to write (default: one per 8 MB of text)")
    add("--seed", type=int, metavar="N", help="seed of the held-out split (default: 0)")
    add("--heldout", metavar="DIR", help="folder for held-out sentences, which are left out of --output")
    share = (
        f"share of the distinct sentences to hold out, between 0 and 1 (default: {preprocess_config.HELDOUT_FRACTION})"
    )
    add("--heldout-fraction", type=float, metavar="F", help=share)


def _add_embed_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = (
        "an exported model (a version's folder, or the model's for the newest), local or remote, a folder of published "
        "files, the name of a published model (`elmo-tf models`), or hf://owner/name"
    )
    add("--model", required=True, metavar="SOURCE", help=about)
    _add_text_options(parser, "the model's own")
    add("--output", required=True, metavar="PATH", help="HDF5 file to create; with other formats, a folder")
    add(
        "--format",
        choices=embed_config.FORMATS,
        help="hdf5 (default), in the layout of bilm-tf and AllenNLP; tfrecord; or, with --pool, npy: a matrix "
        "(vectors.npy), the identifiers of its rows (ids.txt) and their sentences (sentences.txt)",
    )
    add(
        "--layers",
        type=index_or_name,
        metavar="WHICH",
        help="all (default), top, the average or sum of all layers, mix (the ELMo vector with the model's own "
        "weights), or a layer's number, 0 being the token layer",
    )
    add("--pool", choices=embedder.POOLS, help="one vector per line, over its tokens (default: one per token)")
    add(
        "--id-column",
        nargs="?",
        const=1,
        type=int,
        metavar="N",
        help="lines have tab-separated columns: column N (default: 1) is the identifier, the others are the text",
    )
    add("--dtype", choices=embed_config.DTYPES, help="type of the values (default: float32)")
    add(
        "--precision",
        choices=sources.PRECISIONS,
        help="number format of the matrix products (default: float32); bfloat16 is faster for large models on CPUs "
        "with AMX",
    )
    add(
        "--batch-tokens",
        type=int,
        metavar="N",
        help=f"tokens per batch of sentences of similar length (default: {embedder.BATCH_TOKENS})",
    )
    add("--shards", type=int, metavar="N", help="TFRecord files to write (default: one per 256 MB of vectors)")
    add(
        "--processes-per-machine",
        type=int,
        metavar="N",
        help="worker processes that share a machine; each computes with its share of the cores (default: as many as "
        "Beam's options start there)",
    )


class _Job(NamedTuple):
    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    config: Callable[..., Any]
    run: Callable[..., dict[str, Any]]


_JOBS = {
    "preprocess": _Job(
        "Turns text into records, with Apache Beam.", _add_preprocess_options, PreprocessConfig, preprocess
    ),
    "embed": _Job("Turns text into vectors, with Apache Beam.", _add_embed_options, EmbedConfig, embed),
}
