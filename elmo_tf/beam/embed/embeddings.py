"""One vector per text in Beam's own interfaces: `MLTransform`, and the chunks of `beam.ml.rag`."""

import copy
import os
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.ml.inference.base import RunInference
from apache_beam.ml.rag.embeddings.base import create_text_adapter
from apache_beam.ml.rag.types import EmbeddableItem
from apache_beam.ml.transforms.base import EmbeddingsManager, EmbeddingTypeAdapter

from elmo_tf import embedder
from elmo_tf.beam.embed.model_handler import ElmoModelHandler
from elmo_tf.beam.job_config import require


class ElmoEmbeddings(EmbeddingsManager):
    """Embeds columns of text, or the chunks of a RAG pipeline, with a list of floats for each text.

        from apache_beam.ml.transforms.base import MLTransform
        from elmo_tf.beam import ElmoEmbeddings

        embed = MLTransform(write_artifact_location="artifacts").with_transform(
            ElmoEmbeddings("english", columns=["title"])
        )
        rows = pipeline | beam.Create([{"id": 1, "title": "A bank of the river ."}]) | embed

    Each of the columns then holds its vector instead of its text. `MLTransform(read_artifact_location="artifacts")`
    embeds other text with the same model and options. Without `columns` the elements are `Chunk`s (`EmbeddableItem`s)
    of `apache_beam.ml.rag`, whose `embedding` is set, as its vector databases expect.

    Args:
        savedmodel: as for `ElmoModelHandler`.
        layers: as for `ElmoModelHandler`, but not `"all"`.
        pool: how a text's token vectors become one: `"mean"` or `"max"`. A text without tokens gets zeros.
        columns: the keys of dictionaries, or the fields of `beam.Row`s, whose text is embedded.
        type_adapter: Beam's `EmbeddingTypeAdapter`, for other kinds of elements.
        batch_tokens: as for `ElmoModelHandler`.
        num_threads: as for `ElmoModelHandler`.
        min_batch_size: of Beam's batches.
        max_batch_size: of Beam's batches.
        large_model: as for `ElmoModelHandler`.

    Raises:
        InputError: for a value that cannot be used; on workers, if the model or a text cannot be used.
    """

    def __init__(
        self,
        savedmodel: str | os.PathLike,
        layers: embedder.Layers = "mix",
        pool: str = "mean",
        *,
        columns: Sequence[str] | None = None,
        type_adapter: EmbeddingTypeAdapter | None = None,
        batch_tokens: int = embedder.BATCH_TOKENS,
        num_threads: int | None = None,
        min_batch_size: int | None = None,
        max_batch_size: int | None = None,
        large_model: bool = False,
    ):
        require("layers", layers != "all", "top, average, sum, mix or a layer's number", "all, several vectors")
        require("columns", not isinstance(columns, str), "a list of names", repr(columns))
        require("pool", pool in embedder.POOLS, f"one of {', '.join(embedder.POOLS)}", repr(pool))
        self._is_rag = columns is None and type_adapter is None
        adapter = create_text_adapter() if self._is_rag else type_adapter
        batches: dict[str, Any] = {
            "min_batch_size": min_batch_size,
            "max_batch_size": max_batch_size,
            "large_model": large_model,
        }
        super().__init__(columns=list(columns) if columns else None, type_adapter=adapter, **batches)
        self._handler = _Handler(
            self.type_adapter,
            savedmodel,
            layers,
            batch_tokens,
            num_threads,
            pool=pool,
            **batches,
        )

    def get_model_handler(self) -> ElmoModelHandler:
        """Returns the handler, which takes and returns whole elements."""
        return self._handler

    def get_ptransform_for_processing(self, **_: Any) -> beam.PTransform:
        """Returns the transform for `MLTransform`."""
        transform = RunInference(self._handler)
        return transform.with_output_types(EmbeddableItem) if self._is_rag else transform


class _Handler(ElmoModelHandler):
    """Embeds the texts of elements that an adapter takes apart and puts together again."""

    def __init__(self, adapter: EmbeddingTypeAdapter, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self._adapter = adapter

    def run_inference(
        self, batch: Sequence[Any], model: embedder.Embedder, inference_args: dict[str, Any] | None = None
    ) -> list[Any]:
        """Returns the elements with their vectors."""
        # Adapters change elements, which other transforms may read as well.
        batch = [copy.copy(element) for element in batch]
        results = super().run_inference(self._adapter.input_fn(batch), model, inference_args)
        return self._adapter.output_fn(batch, [np.asarray(result.inference).tolist() for result in results])
