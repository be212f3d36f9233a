"""Corpus to vectors: numbers its sentences, then has a SavedModel embed them, into one HDF5 file or TFRecord shards.

    elmo-tf embed --savedmodel savedmodels/mine --input corpus.txt.gz --output vectors.hdf5

The same text, options and number of threads give the same bytes, whatever the runner and however often it was killed.
"""

import argparse
import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import elmo_tf
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import embedding
from pipelines.embed import job
from pipelines.running import journal, processes, report, runner_options
from pipelines.text import corpora, filesystems, text_options
from pipelines.text.text_options import require

_log = logging.getLogger("elmo_tf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `elmo-tf embed` to `parser`."""
    add = parser.add_argument
    add("--savedmodel", required=True, metavar="DIR", help="a version's folder, or a model's: then its newest version")
    text_options.add(parser)
    add("--output", required=True, metavar="PATH", help="HDF5 file, or folder of TFRecords; neither may be there yet")
    add(
        "--format",
        choices=job.FORMATS,
        default="hdf5",
        help="hdf5 (default), as bilm-tf and AllenNLP write it; tfrecord",
    )
    add(
        "--layers",
        choices=embedding.LAYERS,
        default="all",
        help="all (default), top, their average, or mix: the ELMo vector with the weights in the model",
    )
    add("--dtype", choices=["float32", "float16"], default="float32", help="of the values (default: float32)")
    add(
        "--batch-tokens",
        type=int,
        default=embedding.BATCH_TOKENS,
        metavar="N",
        help=f"tokens of a batch, of sentences of about the same length (default: {embedding.BATCH_TOKENS})",
    )
    add("--shards", type=int, metavar="N", help="TFRecord files to write (default: one for about 64 MB of vectors)")


def run(argv: Sequence[str] | None = None, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Embeds a corpus as `argv` says, Beam's own options included; returns what is known of the vectors.

    Args:
        argv: the arguments; None: those of this process.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: if an argument or a file cannot be used, or an unfinished output is that of another command.
        OSError: if reading or writing fails or a worker process dies. The same command goes on from there.
    """
    parser = argparse.ArgumentParser(
        prog="elmo-tf embed",
        description="Turns text into vectors, with Apache Beam.",
        epilog=runner_options.EPILOG,
        allow_abbrev=False,
    )
    add_arguments(parser)
    arguments, beam_options = runner_options.parse(parser, argv)
    if filesystems.is_local(arguments.output):
        arguments.output = os.path.realpath(arguments.output)  # as any process on this machine finds it
    runner_options.make_pipeline(beam_options)  # complains of a runner that cannot be had
    _check(arguments)
    start = time.monotonic()
    model = embedding.find_model(arguments.savedmodel)
    if runner_options.uses_processes(beam_options):
        processes.prepare(["pipelines.embed.handler"])
    elif load_tensorflow:
        load_tensorflow()
    folder = _folder(arguments)
    corpus = text_options.corpus(arguments.input, [folder])
    sha256 = model.sha256()
    plan = _plan(arguments, corpus, sha256)
    _check_plan(folder, plan)
    with journal.unfinished({"--output": folder}, plan) as resumed:
        _log.info("embedding %s with %s", report.number(corpus, "file"), model.path)
        if model.tokenizer != arguments.tokenizer:
            told = "the text is split with --tokenizer %s, the model's own sentences (signature default) with %s"
            _log.warning(told, arguments.tokenizer, model.tokenizer)
        if resumed:
            _log.info("going on with an earlier run; what is whole is used again")
        with text_options.hint():
            about = job.Job(folder, model, sha256, arguments, beam_options).run(corpus)
    if arguments.format == "hdf5":
        filesystems.delete_folder(folder)
    _log.info("%s", job.summary(about, arguments.output, time.monotonic() - start))
    return about


def _check(arguments: argparse.Namespace) -> None:
    """Raises `InputError` for what can be seen before any work."""
    text_options.settings(arguments)
    for name in ("shards", "batch_tokens"):
        value = getattr(arguments, name)
        require(f"--{name.replace('_', '-')}", value is None or value >= 1, "at least 1", value)
    output = arguments.output
    if arguments.format == "tfrecord":
        journal.check(output, "--output")
        return
    require("--shards", arguments.shards is None, "--format tfrecord with it", "--format hdf5")
    require("--output", filesystems.is_local(output), "a local path for HDF5; --format tfrecord takes any", output)
    if os.path.lexists(output):
        found = "a folder" if os.path.isdir(output) else "one"
        raise InputError(f"--output: expected a file that does not exist yet, found {found}: {output}")
    journal.check(_folder(arguments), "--output")


def _folder(arguments: argparse.Namespace) -> str:
    """Returns the folder that is worked in."""
    return arguments.output + ".unfinished" if arguments.format == "hdf5" else arguments.output


def _plan(arguments: argparse.Namespace, corpus: list[corpora.TextFile], sha256: str) -> dict[str, Any]:
    """Returns all that the output depends on, as JSON: by the option that says it."""
    asked = {name: value for name, value in vars(arguments).items() if name not in ("input", "output", "savedmodel")}
    return {
        **{f"--{name.replace('_', '-')}": value for name, value in asked.items()},
        "--input": [[*file, filesystems.last_changed(file.path)] for file in corpus],
        "--savedmodel": sha256,
        "version": elmo_tf.__version__,
    }


def _told(value: Any) -> Any:
    return "not given" if value is None else value


def _check_plan(folder: str, plan: dict[str, Any]) -> None:
    """Raises `InputError` if another command has begun to write the folder: hours of work may be in it."""
    begun = journal.plan_of(folder)
    if begun and begun != plan:
        long = {"--input": "other --input files", "--savedmodel": "another --savedmodel"}
        found = [
            long.get(name, f"{name} {_told(begun.get(name))}, now {_told(value)}")
            for name, value in plan.items()
            if begun.get(name) != value
        ]
        raise InputError(
            f"--output: expected the command that began it, found one begun with {'; '.join(found)}. Give that command "
            f"to go on, or delete {folder}"
        )
