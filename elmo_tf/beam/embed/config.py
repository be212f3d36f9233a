"""The configuration of `embed`."""

import dataclasses
import os

from elmo_tf import embedder, sources
from elmo_tf.beam import job_config
from elmo_tf.beam.job_config import Path, require
from elmo_tf.corpus import sentences

FORMATS = ("hdf5", "tfrecord", "npy")
DTYPES = ("float32", "float16")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig(job_config.JobConfig):
    """What to embed, and how. `output` is the HDF5 file or the folder to make."""

    model: Path  # an exported model (local or remote), a folder of published files, or a published name
    tokenizer: str | None = None  # type: ignore[assignment] # one of tokenizers.TOKENIZERS; None: the model's own
    format: str = "hdf5"  # in the layout of bilm-tf and AllenNLP, tfrecord, or npy: one matrix, for which see `pool`
    layers: embedder.Layers = "all"  # one of embedder.LAYERS, or a layer's number
    pool: str | None = None  # one vector per line, the "mean" or "max" over its tokens; None: one per token
    id_column: int | None = None  # tab-separated column, from 1, with the identifier of each line; not part of its text
    dtype: str = "float32"  # of the values
    precision: str = "float32"  # of the model's matrix products, one of sources.PRECISIONS
    batch_tokens: int = embedder.BATCH_TOKENS  # tokens per batch of sentences of similar length
    shards: int | None = None  # TFRecord files to write; None: one per 256 MB of vectors
    processes_per_machine: int | None = None  # that share a machine's cores; None: as many as Beam starts there

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_one_of("format", FORMATS)
        self.require_one_of("dtype", DTYPES)
        self.require_one_of("precision", sources.PRECISIONS)
        embedder.check_layers(self.layers)
        require("pool", self.pool in (None, *embedder.POOLS), f"one of {', '.join(embedder.POOLS)}", self.pool)
        for name in ("shards", "batch_tokens", "processes_per_machine", "id_column"):
            self.require_at_least(name, 1)
        no_shards = self.shards is None or self.format == "tfrecord"
        require("shards", no_shards, "only applies to the format tfrecord")
        require("format", self.format != "npy" or self.pool is not None, "npy requires pool mean or max")
        are_sentences = self.id_column is None or self.resolved_line == sentences.SENTENCE
        require("id_column", are_sentences, "lines have to be sentences; set line to sentence")

    def settings(self) -> sentences.Settings:
        """Returns how text becomes sentences."""
        return super().settings()._replace(id_column=self.id_column)

    @property
    def folder(self) -> str:
        """The folder to work in."""
        return f"{self.output}.unfinished" if self.format == "hdf5" else os.fspath(self.output)
