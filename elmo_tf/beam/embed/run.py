"""Corpus to vectors: numbers its sentences, then embeds them, into TFRecord shards, an HDF5 file or a matrix.

    elmo-tf embed --model savedmodels/mine --input corpus.txt.gz --output vectors.hdf5

The same text, options and number of threads give the same bytes with every runner, and after any number of kills.
"""

import dataclasses
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

import apache_beam as beam

import elmo_tf
from elmo_tf import embedder, sources
from elmo_tf.beam import corpus_tasks, failures, job_config, output_folder, progress, report, runners
from elmo_tf.beam.embed import assembly, embed_task, info, model_handler, numbering
from elmo_tf.beam.embed.config import EmbedConfig
from elmo_tf.beam.job_config import require
from elmo_tf.corpus import corpora
from elmo_tf.display import with_count
from elmo_tf.errors import InputError
from elmo_tf.files import staging, stores
from elmo_tf.records import record_folder

_SHARD_BYTES = 256 << 20  # of vectors, when --shards is not given
_SHARD_TOKENS = 1 << 19  # of text, when a line has one vector
_TOKEN_BYTES = {"characters": 1}  # of text, roughly; 5 with other tokenizers
_log = logging.getLogger("elmo_tf")


def embed(config: EmbedConfig, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Makes vectors of text; returns their description.

    The notes on `preprocess` (main guard, loopback servers, log level) apply here too.

    Args:
        config: what to do.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: naming the field of `config`, if it or a file cannot be used, or the unfinished output was begun
            with another configuration.
        OSError: if reading or writing fails or a worker process dies. The same configuration resumes.
    """
    start = time.monotonic()
    beam_options = runners.parse(config.beam)
    output = _output_path(config)
    config = dataclasses.replace(config, output=output)
    output_folder.check(config.folder)
    source, model, sha256 = _find_model(config)
    tokenizer = config.tokenizer or source.tokenizer
    config = dataclasses.replace(config, tokenizer=tokenizer)
    is_model_tokenizer = tokenizer == source.tokenizer
    split = f"its tokenizer {tokenizer}" if is_model_tokenizer else f"{tokenizer}, not by its own {source.tokenizer}"
    layout = embed_task.Layout(source.shape(config.layers), config.dtype, config.pool)
    num_processes = config.processes_per_machine or runners.processes_per_machine(beam_options)
    settings = embed_task.Settings(
        config.settings(), model, config.layers, layout, config.batch_tokens, num_processes, config.precision
    )
    corpus = job_config.corpus(config.patterns, [config.folder], tokenizer)
    size = sum(file.text_size for file in corpus)
    num_tokens = size // _TOKEN_BYTES.get(tokenizer, 5)  # roughly
    num_shards = config.shards or _num_shards(layout, num_tokens)
    plan_content = {
        "command": "embed",
        **config.plan_options("processes_per_machine"),
        "shards": num_shards,
        "model": sha256,
        "version": elmo_tf.__version__,
        "input": corpus,
    }
    with (
        runners.configured_pipeline(beam_options, embed_task.__name__, load_tensorflow) as pipeline,
        output_folder.claim({"vectors": config.folder}, plan_content) as folders,
    ):
        folder = folders["vectors"]
        _log.info("embedding %s with %s; text is split by %s", with_count(len(corpus), "file"), model, split)
        _check_room(folder, layout, num_tokens, config.format)
        build(pipeline, config, folder, settings, corpus, num_shards, sha256)
        with progress.show_progress(folder, size, num_shards):
            runners.run(pipeline, folder)
        if load_tensorflow and config.format != "tfrecord" and "tensorflow" not in sys.modules:
            load_tensorflow()  # to read the shards that other processes have written
        description = _assemble(config.format, folder, layout, output)
    _log.info("%s", info.summary(description, output, time.monotonic() - start))
    return description


def _find_model(config: EmbedConfig) -> tuple[sources.Source, str, str]:
    """Returns the model, where workers find it, and its checksum; raises `InputError` if it cannot be used."""
    with model_handler.local_copy(os.fspath(config.model)) as (path, remote):
        source = sources.find(path)
        stays = "an exported model or published files, because a workdir changes; export it first"
        require(path, not isinstance(source, sources.Workdir), stays, "a workdir")
        source = source.with_precision(config.precision)
        embedder.check_layers(config.layers, source.num_layers)
        return source, source.name if path == remote else remote, source.sha256()


def _output_path(config: EmbedConfig) -> str:
    """Returns an absolute path; raises `InputError` if nothing can be written there."""
    output = os.fspath(config.output)
    if config.format != "hdf5":
        return job_config.output_path(output)
    local = "a local path for HDF5 (the format tfrecord can be written to object stores)"
    require(output, stores.is_local(output), local, "a remote one")
    staging.check_link(output)
    if os.path.lexists(output):
        kind = "a folder" if os.path.isdir(output) else "a link" if os.path.islink(output) else "a file"
        raise InputError(output, f"is {kind} already; delete it to start again")
    return os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(output))), os.path.basename(output))


def _num_shards(layout: embed_task.Layout, num_tokens: int) -> int:
    return -(-num_tokens // _SHARD_TOKENS if layout.pool else -layout.size(0, num_tokens) // _SHARD_BYTES) or 1


def _check_room(folder: output_folder.Folder, layout: embed_task.Layout, num_tokens: int, form: str) -> None:
    """Logs roughly how large the vectors will be, and warns if the disk cannot hold them."""
    needed = layout.size(num_tokens // 20, num_tokens) * (1 if form == "tfrecord" else 2)
    _log.info("about %s tokens, for which the disk needs %s", f"{num_tokens:,}", report.megabytes(needed))
    if stores.is_local(folder.path) and needed > (free := shutil.disk_usage(folder.path).free):
        _log.warning("warning: the disk has room for only %s", report.megabytes(free))


def build(
    pipeline: beam.Pipeline,
    config: EmbedConfig,
    folder: output_folder.Folder,
    settings: embed_task.Settings,
    corpus: list[corpora.TextFile],
    num_shards: int,
    sha256: str,
) -> None:
    """Adds the job to a pipeline: tasks, the number of each task's first line as a side input, shards, `info.json`."""
    packed = corpus_tasks.pack(corpus)
    tasks = pipeline | "Tasks" >> corpus_tasks.make_tasks(
        lambda: corpora.plan_in_order(corpus_tasks.unpack(packed), num_shards)
    )
    counts = tasks | "CountLines" >> beam.ParDo(
        numbering.CountLines(folder, settings.text, ids_name_datasets=config.format == "hdf5")
    )
    number = numbering.NumberLines(folder, settings.text)
    numbered = beam.pvalue.AsSingleton(
        counts | "ListCounts" >> beam.combiners.ToList() | "NumberLines" >> beam.ParDo(number)
    )
    written = tasks | "Embed" >> beam.ParDo(embed_task.EmbedTask(folder, settings, num_shards), numbered)
    finish = _Finish(folder, config, settings, packed, sha256)
    _ = written | "ListShards" >> beam.combiners.ToList() | "Finish" >> beam.ParDo(finish, numbered)


@dataclasses.dataclass(eq=False)
class _Finish(failures.TaskFn):
    """The sizes of all shards -> nothing; writes their description, and the marker of a folder of shards."""

    config: EmbedConfig
    settings: embed_task.Settings
    corpus: bytes  # packed
    sha256: str  # of the model

    def process_task(self, written: list[tuple[int, int]], numbered: numbering.LineNumbers) -> tuple[()]:
        sizes = dict(written)  # a repeated bundle may deliver a result twice
        corpora.check_unchanged(corpus_tasks.unpack(self.corpus))
        description = info.describe(self.config, self.settings, numbered, sizes, self.sha256)
        stores.write(_description_file(self.config.format, self.folder), report.info_file(description))
        if self.config.format == "tfrecord":
            stores.write(self.folder.file(record_folder.MARKER_FILE), output_folder.MARKER)
        return ()


def _description_file(form: str, folder: output_folder.Folder) -> str:
    """Returns where the pipeline writes the description: `info.json`, unless the shards are only a step."""
    return (folder.file if form == "tfrecord" else folder.run_file)(record_folder.INFO_FILE)


def _assemble(form: str, folder: output_folder.Folder, layout: embed_task.Layout, output: str) -> dict[str, Any]:
    """Makes the output of formats that are one file; returns the description, which then has no shards."""
    description = json.loads(stores.read(_description_file(form, folder)))
    if form == "tfrecord":
        return description
    shards = {folder.file(shard["name"]): shard["lines"] for shard in description.pop("shards")}
    if form == "hdf5":
        assembly.write_hdf5(folder, shards, output, description)
        output_folder.discard(folder)
        return description
    assembly.write_matrix(folder, shards, layout)
    description["bytes"] = layout.size(description["lines"], description["tokens"])
    stores.write(folder.file(record_folder.INFO_FILE), report.info_file(description))
    stores.write(folder.file(record_folder.MARKER_FILE), output_folder.MARKER)
    stores.delete(shards)
    return description
