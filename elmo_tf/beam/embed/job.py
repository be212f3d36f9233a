"""The phases of embedding, one after the other; each leaves its results in the output folder."""

import collections
import logging
import os
import shutil
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf import sources
from elmo_tf.beam.embed import text_chunks, vector_output
from elmo_tf.beam.embed.config import EmbedConfig
from elmo_tf.beam.embed.embed_step import EmbedChunk, Embedded, Settings
from elmo_tf.beam.running import do_once, report, runner_options
from elmo_tf.beam.running.journal import Journal
from elmo_tf.beam.text import corpora, filesystems
from elmo_tf.beam.text.job_config import require
from elmo_tf.files.progress import counted
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import vector_files

_TEXT_BYTES = 8 << 20  # of text that one task numbers
_CHUNK_BYTES = 64 << 20  # of vectors that are computed and written together
_CHUNK_TOKENS = 1 << 17  # that are computed together, at most, if a line has one vector
_MOST_CHUNK_BYTES = 512 << 20  # the largest chunk: memory holds one that is computed and one that is written
_LINE_BYTES = 400  # per line in addition to its vectors, roughly
_log = logging.getLogger("elmo_tf")


class Job(NamedTuple):
    """What to do."""

    journal: Journal
    model: sources.Source
    savedmodel: str  # where workers find it
    sha256: str  # of the model
    config: EmbedConfig
    beam_options: PipelineOptions

    @property
    def layout(self) -> vector_output.Layout:
        """Shape and type of the vectors."""
        return vector_output.Layout(self.model.shape(self.config.layers), self.config.dtype, self.config.pool)

    def run(self, corpus: list[corpora.TextFile]) -> dict[str, Any]:
        """Does what is not done yet; returns the description of the vectors, as JSON.

        Raises:
            InputError: if the text or the model cannot be used.
            OSError: if reading or writing fails.
        """
        journal, folder = self.journal, self.journal.folder
        texts = self._number(corpus)
        about = self._describe(texts)
        require("input", about["tokens"] > 0, "text", f"no words; {report.describe_irregular(about['irregular'])}")
        num_chunks = self._num_chunks(about)
        self._check_room(about, num_chunks)
        lines = text_chunks.named_lengths(journal, len(texts), self.config.settings().has_ids)
        if self.config.format == "hdf5":
            output = vector_output.Hdf5(journal)
            if not output.is_framed():
                filesystems.delete(journal.done_paths(EmbedChunk.phase))
                output.make_frame(lines, self.layout, about)
            self._embed(texts, num_chunks, output)
            output.finish(self.config.output)
            return about
        if self.config.format == "tfrecord":
            written = self._embed(texts, num_chunks, vector_output.Shards(folder, num_chunks))
            about["shards"] = [_describe_shard(one) for one in written]
        else:
            matrix = vector_output.Matrix(journal)
            self._embed(texts, num_chunks, matrix)
            matrix.finish((names for names, _ in lines), about["lines"], num_chunks, self.layout)
            about["bytes"] = self.layout.size(about["lines"], about["tokens"])
        filesystems.write_json(filesystems.join(folder, record_folder.INFO_FILE), about)
        return about

    def _number(self, corpus: list[corpora.TextFile]) -> list[text_chunks.Kept]:
        """Reads the text and numbers its lines; returns the results of the tasks, in the order of the text."""
        journal, size = self.journal, sum(file.text_size for file in corpus)
        count = -(-size // _TEXT_BYTES) or 1
        # Lines are numbered through all files, which needs a plan of all of them.
        tasks = do_once.Tasks(lambda: corpora.plan_in_order(journal.corpus(), count), count, size)
        step = text_chunks.KeepText(journal, self.config.settings())
        return do_once.run_step("reading", step, tasks, self.beam_options)

    def _num_chunks(self, about: dict[str, Any]) -> int:
        size, asked = self.layout.size(about["lines"], about["tokens"]), self.config.shards
        least = -(-size // _MOST_CHUNK_BYTES)
        expected = (
            f"at least {least}, for {report.megabytes(size)} of vectors at {report.megabytes(_MOST_CHUNK_BYTES)} each"
        )
        require("shards", asked is None or asked >= least, expected, asked)
        return asked or max(-(-size // _CHUNK_BYTES), -(-about["tokens"] // _CHUNK_TOKENS) if self.config.pool else 1)

    def _check_room(self, about: dict[str, Any], num_chunks: int) -> None:
        """Logs the size of the vectors that are not written yet, and warns if the disk cannot hold them."""
        folder = self.journal.folder
        # Chunks have about the same number of tokens.
        left = 1 - len(self.journal.done_paths(EmbedChunk.phase)) / num_chunks
        num_lines, num_tokens = (round(left * about[name]) for name in ("lines", "tokens"))
        size = self.layout.size(num_lines, num_tokens) + num_lines * _LINE_BYTES
        _log.info("%s tokens to embed, %s of vectors", f"{num_tokens:,}", report.megabytes(size))
        needed = 2 * size if self.config.format == "npy" else size
        if filesystems.is_local(folder) and needed > (free := shutil.disk_usage(folder).free):
            _log.warning("warning: the disk has room for only %s", report.megabytes(free))

    def _embed(self, texts: list[text_chunks.Kept], num_chunks: int, output: vector_output.Output) -> list[Embedded]:
        config, journal = self.config, self.journal
        num_processes = config.processes_per_machine
        if num_processes is None:
            num_processes = runner_options.processes_per_machine(self.beam_options)
        settings = Settings(
            self.savedmodel, config.layers, self.layout, config.batch_tokens, num_processes, config.precision
        )
        # With a pool, a line without tokens has a vector, too.
        line_size = 1 if config.pool else 0
        total = sum(text.tokens + line_size * sum(text.lines.values()) for text in texts)
        num_texts = len(texts)
        size = sum(size for text in texts for path, size in text.files.items() if path.endswith(".txt"))
        tasks = do_once.Tasks(
            lambda: text_chunks.cut(journal, num_texts, num_chunks, total, line_size), num_chunks, size
        )
        return do_once.run_step("embedding", EmbedChunk(journal, settings, output), tasks, self.beam_options)

    def _describe(self, texts: list[text_chunks.Kept]) -> dict[str, Any]:
        settings, config = self.config.settings(), self.config
        inputs, first, lines = [], 0, collections.Counter()
        for text in texts:
            lines.update(text.lines)
        for source, count in lines.items():
            inputs.append({"name": os.path.basename(source), "first_line": first, "lines": count})
            first += count
        return {
            "format_version": vector_files.FORMAT_VERSION,
            "layers": config.layers,
            "dtype": config.dtype,
            "precision": config.precision,
            "token_shape": self.layout.token_shape,
            "lines": first,
            "tokens": sum(text.tokens for text in texts),
            "savedmodel_sha256": self.sha256,
            "tokenizer": settings.tokenizer,
            "line": settings.line,
            **({"pool": config.pool} if config.pool else {}),
            **({"identifiers": True} if settings.has_ids else {}),
            "irregular": report.irregular(texts, text_chunks.rules(settings)),
            "inputs": inputs,
            "versions": report.versions(),
        }


def _describe_shard(written: Embedded) -> dict[str, Any]:
    ((path, size),) = written.files.items()
    about = {"first_line": written.first_line, "lines": written.lines, "tokens": written.tokens}
    return {"name": os.path.basename(path), **about, "bytes": size}


def summary(about: dict[str, Any], output: str, seconds: float) -> str:
    """Returns the final report."""
    shards = about.get("shards", [])
    size = about.get("bytes") or sum(one["bytes"] for one in shards) or os.path.getsize(output)
    files = f", {counted(len(shards), 'file')}" if shards else ""
    shape, pool = " x ".join(f"{length:,}" for length in about["token_shape"]), about.get("pool")
    layers = about["layers"] if isinstance(about["layers"], str) else f"layer {about['layers']}"
    rows = [
        ("output", f"{output}: {report.megabytes(size)}{files}"),
        ("lines", f"{about['lines']:,}, numbered from 0"),
        ("tokens", f"{about['tokens']:,}"),
        ("per line" if pool else "per token", f"{pool or ''} {layers}: {shape}, {about['dtype']}".lstrip()),
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
