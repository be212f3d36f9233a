"""Corpus to vectors: numbers its sentences, then has a SavedModel embed them, into one HDF5 file or TFRecord shards.

    elmo-tf embed --savedmodel savedmodels/mine --input corpus.txt.gz --output vectors.hdf5

The same text, options and number of threads give the same bytes with every runner, and after any number of kills.
"""

import argparse
import functools
import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

import elmo_tf
from elmo_tf import embedder, sources
from elmo_tf.errors import InputError, renamed
from elmo_tf.files.progress import counted
from elmo_tf.pipelines.embed import job, model_handler, vector_output
from elmo_tf.pipelines.running import job_service, journal, processes, runner_options, task_plan
from elmo_tf.pipelines.text import corpora, filesystems, text_options
from elmo_tf.pipelines.text.text_options import require
from elmo_tf.savedmodel import contract

_log = logging.getLogger("elmo_tf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `elmo-tf embed` to `parser`."""
    add = parser.add_argument
    about = (
        "a version's folder or a model's (newest version), local or remote, or the name of a published model (`elmo-tf "
        "models`)"
    )
    add("--savedmodel", required=True, metavar="DIR", help=about)
    text_options.add(parser)
    add("--output", required=True, metavar="PATH", help="HDF5 file or folder of TFRecords to make")
    add(
        "--format",
        choices=job.FORMATS,
        default="hdf5",
        help="hdf5 (default), in the layout of bilm-tf and AllenNLP, or tfrecord",
    )
    add(
        "--layers",
        choices=contract.LAYERS,
        default="all",
        help="all (default), top, their average or sum, or mix: the ELMo vector with the model's own weights",
    )
    add("--dtype", choices=["float32", "float16"], default="float32", help="type of the values (default: float32)")
    add(
        "--batch-tokens",
        type=int,
        default=embedder.BATCH_TOKENS,
        metavar="N",
        help=f"tokens per batch of sentences of similar length (default: {embedder.BATCH_TOKENS})",
    )
    add("--shards", type=int, metavar="N", help="TFRecord files to write (default: one per 64 MB of vectors)")
    add(
        "--processes-per-machine",
        type=int,
        metavar="N",
        help="worker processes that share a machine; each computes with its share of the cores (default: as many as "
        "Beam's options start there)",
    )


def run(argv: Sequence[str] | None = None, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Runs `elmo-tf embed` and returns the description of the vectors.

    Args:
        argv: options of the command and of Beam; None: those of this process.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: if an option or a file cannot be used, or another command began the unfinished output. The error
            speaks of parameters: `batch_tokens` for `--batch-tokens`.
        OSError: if reading or writing fails or a worker process dies. The same command resumes.
    """
    parser = argparse.ArgumentParser(
        prog="elmo-tf embed",
        description="Turns text into vectors, with Apache Beam.",
        epilog=runner_options.EPILOG,
        allow_abbrev=False,
    )
    add_arguments(parser)
    arguments, beam_options, unknown = runner_options.parse(parser, argv)
    arguments.output = text_options.real_path(arguments.output)
    # Fails if the runner is not available.
    runner_options.make_pipeline(beam_options)
    _check(arguments)
    with (
        job_service.connected(beam_options, unknown),
        model_handler.on_this_machine(arguments.savedmodel) as (path, remote),
    ):
        with renamed(source="savedmodel"):
            model = sources.find(path)
        savedmodel = model.name if filesystems.is_local(remote) else remote
        return _run(arguments, model, savedmodel, beam_options, load_tensorflow)


def _run(
    arguments: argparse.Namespace,
    model: sources.Source,
    savedmodel: str,
    beam_options: PipelineOptions,
    load_tensorflow: Callable[[], None] | None,
) -> dict[str, Any]:
    start = time.monotonic()
    if runner_options.uses_processes(beam_options):
        processes.prepare(["elmo_tf.pipelines.embed.handler"])
    elif load_tensorflow:
        load_tensorflow()
    folder = _folder(arguments)
    corpus = text_options.corpus(arguments.input, [folder])
    sha256 = model.sha256()
    plan = _plan(arguments, corpus, sha256)
    _check_plan(folder, plan)
    end_job = functools.partial(job_service.end_job, beam_options)
    with journal.unfinished({"output": folder}, plan, end_job) as resumed:
        _log.info("embedding %s with %s", counted(len(corpus), "file"), savedmodel)
        if model.tokenizer != arguments.tokenizer:
            text = "warning: this text is split by the tokenizer %s, but the model's signature default uses %s"
            _log.warning(text, arguments.tokenizer, model.tokenizer)
        if resumed:
            _log.info("resuming an earlier run; its finished files are kept")
        with text_options.hint():
            about = job.Job(folder, model, savedmodel, sha256, arguments, beam_options).run(corpus)
    if arguments.format == "hdf5":
        journal.discard(folder)
    _log.info("%s", job.summary(about, arguments.output, time.monotonic() - start))
    return about


def _check(arguments: argparse.Namespace) -> None:
    """Raises `InputError` for what can be checked before any work."""
    text_options.settings(arguments)
    for name in ("shards", "batch_tokens", "processes_per_machine"):
        value = getattr(arguments, name)
        require(name, value is None or value >= 1, "at least 1", value)
    output = arguments.output
    if arguments.format == "hdf5":
        require("shards", arguments.shards is None, "`format` tfrecord with it", "`format` hdf5")
        local = "a local path for HDF5 (`format` tfrecord can write to remote stores)"
        require("output", filesystems.is_local(output), local, output)
        if os.path.lexists(output):
            _discard_left(_folder(arguments))
            found = "a folder" if os.path.isdir(output) else "one"
            raise InputError("output", "a file that does not exist yet", f"{found}: {output}")
    with renamed(folder="output"):
        journal.check(_folder(arguments))


def _discard_left(folder: str) -> None:
    """Deletes the folder of a run that was killed after it had moved its file to the output."""
    with renamed(folder="output"):
        if journal.plan_of(folder) is None and journal.is_marked(folder):
            journal.discard(folder)
        elif vector_output.Hdf5(journal.opened(folder)).is_moved():
            with journal.locked(folder, "output"):
                journal.discard(folder)


def _folder(arguments: argparse.Namespace) -> str:
    """Returns the folder to work in."""
    return arguments.output + ".unfinished" if arguments.format == "hdf5" else arguments.output


def _plan(arguments: argparse.Namespace, corpus: list[corpora.TextFile], sha256: str) -> dict[str, Any]:
    """Returns everything that the output depends on, as JSON, by parameter."""
    elsewhere = ("input", "output", "savedmodel", "processes_per_machine")
    asked = {name: value for name, value in vars(arguments).items() if name not in elsewhere}
    times = task_plan.at_once(filesystems.last_changed, [file.path for file in corpus])
    return {
        **asked,
        "input": [[*file, changed] for file, changed in zip(corpus, times, strict=True)],
        "savedmodel": sha256,
        "version": elmo_tf.__version__,
    }


def _check_plan(folder: str, plan: dict[str, Any]) -> None:
    """Raises `InputError` if another command began to write the folder, which may hold hours of work."""
    with renamed(folder="output"):
        begun = journal.plan_of(folder)
    if not begun or begun == plan:
        return
    differences = [
        _difference(name, begun.get(name), value) for name, value in plan.items() if begun.get(name) != value
    ]
    raise InputError(
        "output",
        "the command that began it",
        f"one begun with {'; '.join(differences)}. Run that command to resume, or delete {folder}",
    )


def _difference(name: str, begun: Any, value: Any) -> str:
    if name in ("input", "savedmodel"):
        return f"another `{name}`"
    before, now = ("not given" if one is None else one for one in (begun, value))
    return f"`{name}` {before}, now {now}"
