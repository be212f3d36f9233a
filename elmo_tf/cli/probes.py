"""The commands `probe`, `weights-plot`, `projector` and `look`, which show what a model knows."""

import argparse
import shlex
from typing import TYPE_CHECKING

from elmo_tf.cli.arguments import SAVEDMODEL, add_command, non_negative, text_file
from elmo_tf.files import json_file, staging

if TYPE_CHECKING:
    from elmo_tf.probes.results import Results

_SEMCOR = (
    "SemCor's four tab-separated columns (form, part of speech, lemma, sense key or _), empty lines between sentences, "
    "a line `# doc NAME` before each document; plain or compressed"
)


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    help_text = "measure what each layer of a model has learned"
    probe = commands.add_parser("probe", help=help_text, description=help_text, allow_abbrev=False)
    tasks = probe.add_subparsers(title="tasks", metavar="TASK", required=True)
    _add_pos(tasks)
    _add_wsd(tasks)
    _add_blimp(tasks)
    _add_weights_plot(commands)
    _add_projector(commands)
    _add_look(commands)


def _add_pos(tasks: argparse._SubParsersAction) -> None:
    help_text = "parts of speech, or other labels of words, by a linear classifier on each layer and their learned mix"
    pos = add_command(tasks, "pos", _pos, help_text)
    help_text = (
        "CoNLL-U (also Plus), or trees in brackets (the Penn Treebank's .mrg, OntoNotes's .parse); plain or compressed"
    )
    _add_probe_arguments(pos, help_text)
    pos.add_argument("--test", required=True, metavar="FILE", help="as --train")
    help_text = (
        "the labels of CoNLL-U: a column such as upos, xpos or deprel, or a feature such as Case, of the words that "
        "have it (default: upos; xpos if --train has trees, which have parts of speech only)"
    )
    pos.add_argument("--tags", default="upos", metavar="NAME", help=help_text)
    pos.add_argument("--seed", type=non_negative, default=0, metavar="N", help="random seed of the mix's training (0)")


def _add_wsd(tasks: argparse._SubParsersAction) -> None:
    help_text = "word sense disambiguation by the nearest average vector of the training senses"
    wsd = add_command(tasks, "wsd", _wsd, help_text)
    framework = "or NAME.data.xml of Raganato's framework, with NAME.gold.key.txt beside it"
    _add_probe_arguments(wsd, f"{_SEMCOR}; {framework}")
    help_text = (
        "as --train, one or several; without it, every fifth document of --train is held out. Each data set, a file or "
        "a part of the framework's ALL, also has its own F1"
    )
    wsd.add_argument("--test", action="extend", nargs="+", metavar="FILE", help=help_text)
    help_text = "WordNet's index.sense: lemmas that are not in --train get their first sense (without it: no answer)"
    wsd.add_argument("--sense-index", metavar="FILE", help=help_text)


def _add_blimp(tasks: argparse._SubParsersAction) -> None:
    help_text = "how often a model prefers the acceptable sentence of a minimal pair"
    blimp = add_command(tasks, "blimp", _blimp, help_text)
    help_text = "a model with its softmax (default: english)"
    blimp.add_argument("--model", default="english", metavar="SOURCE", help=help_text)
    help_text = (
        "BLiMP's JSON lines, or your own with the same keys: sentence_good, sentence_bad, UID (the paradigm) and "
        "linguistics_term; plain or compressed"
    )
    blimp.add_argument("--data", required=True, metavar="FILE", help=help_text)
    _add_output(blimp)


def _add_weights_plot(commands: argparse._SubParsersAction) -> None:
    help_text = "plot the layer weights that saved models have learned"
    plot = add_command(commands, "weights-plot", _weights_plot, help_text, needs_tensorflow=False)
    help_text = "a .keras file with an ELMo layer; may be repeated"
    plot.add_argument("--model", required=True, action="append", dest="mixes", metavar="FILE", help=help_text)
    plot.add_argument("--output", required=True, metavar="FILE", help="a new PNG file")


def _add_projector(commands: argparse._SubParsersAction) -> None:
    help_text = "write the uses of a word for TensorBoard's projector and print the command that shows them"
    projector = add_command(commands, "projector", _projector, help_text)
    _add_model(projector)
    source = projector.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", dest="text", type=text_file, metavar="FILE", help="one sentence per line, or FASTA")
    semcor_help = f"{_SEMCOR}; uses are labeled with their senses"
    source.add_argument("--data", dest="sentences", metavar="FILE", help=semcor_help)
    help_text = "with --input a token, in upper or lower case; with --data a lemma: play or play%%2"
    projector.add_argument("--word", required=True, metavar="W", help=help_text)
    projector.add_argument("--logdir", required=True, metavar="DIR", help="a new folder")


def _add_look(commands: argparse._SubParsersAction) -> None:
    help_text = "write a page about the uses of a word; one HTML file that works offline"
    look = add_command(commands, "look", _look, help_text, needs_tensorflow=False)
    _add_model(look)
    look.add_argument(
        "--input",
        dest="text",
        required=True,
        type=text_file,
        metavar="FILE",
        help="one sentence per line, or FASTA; at most 1,000",
    )
    look.add_argument("--word", required=True, metavar="W", help="a token of the sentences, in upper or lower case")
    look.add_argument("--output", required=True, metavar="FILE", help="a new HTML file")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="english", metavar="SOURCE", help=f"{SAVEDMODEL}; default: english")


def _add_probe_arguments(parser: argparse.ArgumentParser, train_help: str) -> None:
    _add_model(parser)
    parser.add_argument("--train", required=True, metavar="FILE", help=train_help)
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder for a table, JSON and a plot")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, not the table")


def _pos(arguments: argparse.Namespace) -> None:
    from elmo_tf.annotated import conllu, penn_trees
    from elmo_tf.probes import pos

    staging.check_absent(arguments.output)
    has_trees = arguments.tags == "upos" and penn_trees.has_penn_trees(arguments.train)
    tags = "xpos" if has_trees else arguments.tags
    train, test = (conllu.read_labels(path, tags) for path in (arguments.train, arguments.test))
    _finish(pos.probe(arguments.model, train, test, arguments.seed, tags), arguments)


def _wsd(arguments: argparse.Namespace) -> None:
    from elmo_tf.annotated import senses
    from elmo_tf.probes import wsd

    staging.check_absent(arguments.output)
    train = senses.read_senses(arguments.train)
    train, test = wsd.split(train) if arguments.test is None else (train, senses.read_data_sets(arguments.test))
    first_senses = None if arguments.sense_index is None else senses.read_first_senses(arguments.sense_index)
    _finish(wsd.probe(arguments.model, train, test, first_senses), arguments)


def _blimp(arguments: argparse.Namespace) -> None:
    from elmo_tf.probes import blimp

    staging.check_absent(arguments.output)
    _finish(blimp.probe(arguments.model, blimp.read_minimal_pairs(arguments.data)), arguments)


def _finish(results: "Results", arguments: argparse.Namespace) -> None:
    results.write(arguments.output)
    print(json_file.dumps(results.to_json() | {"model": arguments.model}) if arguments.json else results.table())


def _weights_plot(arguments: argparse.Namespace) -> None:
    from elmo_tf.probes import learned_weights

    staging.check_new_file(arguments.output)
    mixes = learned_weights.read_all(arguments.mixes)
    learned_weights.plot(mixes, arguments.output)
    for mix in mixes:
        print(mix.name, "  ".join(f"{weight:.3f}" for weight in mix.weights), f" gamma {mix.gamma:.3f}", sep="  ")
    print(json_file.dumps([mix._asdict() for mix in mixes]))


def _projector(arguments: argparse.Namespace) -> None:
    from elmo_tf import sources
    from elmo_tf.annotated import senses
    from elmo_tf.probes import projector

    staging.check_absent(arguments.logdir)
    if arguments.text is not None:
        tokenizer = sources.find(arguments.model).tokenizer
        sentences = projector.sentences_with(arguments.text, arguments.word, tokenizer)
    else:
        sentences = senses.read_semcor(arguments.sentences)
    projector.write(arguments.model, projector.uses_of(sentences, arguments.word), arguments.logdir)
    print(f"tensorboard --logdir {shlex.quote(arguments.logdir)}")


def _look(arguments: argparse.Namespace) -> None:
    from elmo_tf import sources
    from elmo_tf.probes import look

    look.write(sources.find(arguments.model), arguments.text, arguments.word, arguments.output)
    print(arguments.output)
