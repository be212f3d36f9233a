"""The phases of embedding, one after the other; each leaves its results in the output folder."""

import collections
import logging
import os
import shutil
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf import sources
from elmo_tf.files.progress import counted
from elmo_tf.pipelines.embed import handler, text_chunks, vector_output
from elmo_tf.pipelines.embed.config import EmbedConfig
from elmo_tf.pipelines.running import do_once, journal, report, runner_options
from elmo_tf.pipelines.text import corpora, filesystems
from elmo_tf.pipelines.text.job_config import require
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import vector_files

_TEXT_BYTES = 8 << 20  # of text that one task numbers
_CHUNK_BYTES = 64 << 20  # of vectors that are computed and written together
_MOST_CHUNK_BYTES = 512 << 20  # the largest chunk: memory holds one that is computed and one that is written
_LINE_BYTES = 400  # per line in addition to its vectors, roughly
_log = logging.getLogger("elmo_tf")


class Job(NamedTuple):
    """What to do."""

    folder: str
    model: sources.Source
    savedmodel: str  # where workers find it
    sha256: str  # of the model
    config: EmbedConfig
    beam_options: PipelineOptions

    @property
    def notes(self) -> journal.Journal:
        """The journal of all phases."""
        return journal.opened(self.folder)

    @property
    def layout(self) -> vector_output.Layout:
        """Shape and type of the vectors."""
        return vector_output.Layout(self.model.shape(self.config.layers), self.config.dtype)

    def run(self, corpus: list[corpora.TextFile]) -> dict[str, Any]:
        """Does what is not done yet; returns the description of the vectors, as JSON.

        Raises:
            InputError: if the text or the model cannot be used.
            OSError: if reading or writing fails.
        """
        texts = self._number(corpus)
        about = self._describe(texts)
        require("input", about["tokens"] > 0, "text", "no words")
        num_chunks = self._num_chunks(about["tokens"])
        chunks = list(text_chunks.cut(self.notes, len(texts), num_chunks, about["tokens"]))
        self._check_room(chunks)
        if self.config.format == "tfrecord":
            self._embed(chunks, vector_output.Shards(self.folder, num_chunks))
            about["shards"] = self._shards(chunks)
            filesystems.write_json(filesystems.join(self.folder, record_folder.INFO_FILE), about)
        else:
            output = vector_output.Hdf5(self.notes)
            if not output.is_framed():
                self.notes.forget(handler.PHASE)
                output.make_frame(text_chunks.line_lengths(self.notes, len(texts)), self.layout, about)
            self._embed(chunks, output)
            output.finish(self.config.output)
        return about

    def _number(self, corpus: list[corpora.TextFile]) -> list[dict[str, Any]]:
        """Reads the text and numbers its lines; returns the results of the tasks, in the order of the text."""
        count = -(-sum(file.text_size for file in corpus) // _TEXT_BYTES) or 1
        tasks = corpora.plan_in_order(corpus, count)
        step = text_chunks.KeepText(self.folder, self.config.settings())
        return do_once.run_step("reading", self.notes, step, tasks, self.beam_options)

    def _num_chunks(self, num_tokens: int) -> int:
        size, asked = num_tokens * self.layout.token_bytes, self.config.shards
        least = -(-size // _MOST_CHUNK_BYTES)
        expected = (
            f"at least {least}, for {report.megabytes(size)} of vectors at {report.megabytes(_MOST_CHUNK_BYTES)} each"
        )
        require("shards", asked is None or asked >= least, expected, asked)
        return asked or -(-size // _CHUNK_BYTES)

    def _check_room(self, chunks: list[text_chunks.Chunk]) -> None:
        """Logs the size of the vectors that are not written yet, and warns if the disk cannot hold them."""
        done = self.notes.numbers(handler.PHASE)
        left = [chunk for chunk in chunks if chunk.number not in done]
        num_tokens = sum(chunk.tokens for chunk in left)
        size = num_tokens * self.layout.token_bytes + _LINE_BYTES * sum(chunk.lines for chunk in left)
        _log.info("%s tokens to embed, %s of vectors", f"{num_tokens:,}", report.megabytes(size))
        if filesystems.is_local(self.folder) and size > (free := shutil.disk_usage(self.folder).free):
            _log.warning("warning: the disk has room for only %s", report.megabytes(free))

    def _embed(self, chunks: list[text_chunks.Chunk], output: vector_output.Shards | vector_output.Hdf5) -> None:
        config = self.config
        processes = config.processes_per_machine
        if processes is None:
            processes = runner_options.processes_per_machine(self.beam_options)
        settings = handler.Settings(self.savedmodel, config.layers, self.layout, config.batch_tokens, processes)
        transform = handler.EmbedChunks(self.folder, settings, output)
        do_once.run("embedding", self.notes, handler.PHASE, chunks, transform, self.beam_options)

    def _shards(self, chunks: list[text_chunks.Chunk]) -> list[dict[str, Any]]:
        """Returns the descriptions of the shards, one per chunk. Raises `ReadError` if one is missing."""
        done, sizes = self.notes.numbers(handler.PHASE), filesystems.sizes(self.folder)
        described = []
        for chunk in chunks:
            name = record_folder.shard_name(chunk.number, len(chunks))
            if chunk.number not in done or name not in sizes:
                path = filesystems.join(self.folder, name)
                raise filesystems.ReadError(f"cannot read {path}: vectors are missing")
            about = {"first_line": chunk.first_line, "lines": chunk.lines, "tokens": chunk.tokens}
            described.append({"name": name, **about, "bytes": sizes[name]})
        return described

    def _describe(self, texts: list[dict[str, Any]]) -> dict[str, Any]:
        settings, config = self.config.settings(), self.config
        irregular = collections.Counter()
        for text in texts:
            irregular.update(text["irregular"])
        inputs, first = [], 0
        for source, count in text_chunks.lines_by_source(texts).items():
            inputs.append({"name": os.path.basename(source), "first_line": first, "lines": count})
            first += count
        return {
            "format_version": vector_files.FORMAT_VERSION,
            "layers": config.layers,
            "dtype": config.dtype,
            "token_shape": self.layout.token_shape,
            "lines": first,
            "tokens": sum(text["tokens"] for text in texts),
            "savedmodel_sha256": self.sha256,
            "tokenizer": settings.tokenizer,
            "line": settings.line,
            "irregular": {
                name: {"count": irregular[name], "rule": rule} for name, rule in text_chunks.rules(settings).items()
            },
            "inputs": inputs,
            "versions": report.versions(),
        }


def summary(about: dict[str, Any], output: str, seconds: float) -> str:
    """Returns the final report."""
    size = os.path.getsize(output) if os.path.isfile(output) else sum(shard["bytes"] for shard in about["shards"])
    shards = f", {counted(len(about['shards']), 'file')}" if "shards" in about else ""
    shape = " x ".join(f"{length:,}" for length in about["token_shape"])
    rows = [
        ("output", f"{output}: {report.megabytes(size)}{shards}"),
        ("lines", f"{about['lines']:,}, numbered from 0"),
        ("tokens", f"{about['tokens']:,}"),
        ("per token", f"{about['layers']}: {shape}, {about['dtype']}"),
    ]
    if len(about["inputs"]) > 1:
        rows += [("from line", f"{source['first_line']:,}: {source['name']}") for source in about["inputs"][:10]]
    return "\n".join(
        [
            *report.table(rows),
            report.describe_irregular(about["irregular"]),
            f"{about['tokens']:,} tokens in {seconds:,.1f} s, {about['tokens'] / seconds:,.0f} tokens/s",
        ]
    )
