"""Corpus to vectors: numbers its sentences, then embeds them, into an HDF5 file, TFRecord shards or a matrix.

    elmo-tf embed --savedmodel savedmodels/mine --input corpus.txt.gz --output vectors.hdf5

The same text, options and number of threads give the same bytes with every runner, and after any number of kills.
"""

import dataclasses
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

import elmo_tf
from elmo_tf import embedder, sources
from elmo_tf.beam.embed import embed_step, job, model_handler
from elmo_tf.beam.embed.config import EmbedConfig
from elmo_tf.beam.running import journal, runner_options
from elmo_tf.beam.text import filesystems, job_config
from elmo_tf.beam.text.job_config import require
from elmo_tf.errors import InputError
from elmo_tf.files.progress import counted

_log = logging.getLogger("elmo_tf")


def embed(config: EmbedConfig, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Makes vectors of text; returns their description.

    With several worker processes a script that calls this needs `if __name__ == "__main__"`, as with Python's
    `multiprocessing`. From this call on, servers that Beam starts in this process listen on loopback addresses only,
    and Beam logs only warnings.

    Args:
        config: what to do.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: naming the field of `config`, if it or a file cannot be used, or another configuration began the
            unfinished output.
        OSError: if reading or writing fails or a worker process dies. The same configuration resumes.
    """
    beam_options, unknown = runner_options.parse(config.beam)
    config = dataclasses.replace(config, output=job_config.real_path(config.output))
    _check(config)
    with (
        runner_options.connected(beam_options, unknown, embed_step.__name__, load_tensorflow),
        model_handler.on_this_machine(config.savedmodel) as (path, remote),
    ):
        model = sources.find(path)
        stays = "an exported model or published files, which do not change; export the workdir first"
        require(path, not isinstance(model, sources.Workdir), stays, "a workdir")
        model = model.with_precision(config.precision)
        embedder.check_layers(config.layers, model.num_layers)
        savedmodel = model.name if filesystems.is_local(remote) else remote
        return _run(config, model, savedmodel, beam_options)


def _run(config: EmbedConfig, model: sources.Source, savedmodel: str, beam_options: PipelineOptions) -> dict[str, Any]:
    start = time.monotonic()
    folder = config.folder
    corpus = job_config.corpus(config.input, [folder])
    sha256 = model.sha256()
    plan = {
        **config.asked("savedmodel", "processes_per_machine"),
        **journal.plan_input(corpus),
        "savedmodel": sha256,
        "version": elmo_tf.__version__,
        **({"chunks": "of tokens and lines"} if config.pool else {}),
    }
    _check_plan(folder, plan)
    with journal.unfinished([folder], plan, beam_options) as notes:
        _log.info("embedding %s with %s", counted(len(corpus), "file"), savedmodel)
        if model.tokenizer != config.tokenizer:
            text = "warning: this text is split by the tokenizer %s, but the model's signature default uses %s"
            _log.warning(text, config.tokenizer, model.tokenizer)
        about = job.Job(notes, model, savedmodel, sha256, config, beam_options).run(corpus)
    if config.format == "hdf5":
        journal.discard(folder)
    _log.info("%s", job.summary(about, config.output, time.monotonic() - start))
    return about


def _check(config: EmbedConfig) -> None:
    """Raises `InputError` for what can be checked before any work."""
    config.settings()
    if config.format == "hdf5":
        output = config.output
        local = "a local path for HDF5 (the format tfrecord can be written to object stores)"
        require(output, filesystems.is_local(output), local, "a remote one")
        found = "a folder" if os.path.isdir(output) else "one; delete it to start again"
        require(output, not os.path.lexists(output), "a file that does not exist yet", found)
    journal.check(config.folder)


def _check_plan(folder: str, plan: dict[str, Any]) -> None:
    """Raises `InputError` if another command began to write the folder, which may hold hours of work."""
    stored = journal.plan_of(folder)
    different = [
        f"another {name}" if name in ("input", "savedmodel") else f"{name} {stored.get(name)}, now {value}"
        for name, value in plan.items()
        if stored and stored.get(name) != value
    ]
    if different:
        found = f"other options: {'; '.join(different)}. Run that command to resume, or delete {folder}"
        raise InputError(folder, "the command that began it", found)
