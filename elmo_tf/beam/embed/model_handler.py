"""The model handler for RunInference in Beam pipelines, a user's own and `elmo-tf embed`."""

import contextlib
import inspect
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from elmo_tf import embedder, sources
from elmo_tf.beam.job_config import require
from elmo_tf.errors import InputError
from elmo_tf.files import stores
from elmo_tf.published import models
from elmo_tf.savedmodel import assets, contract


class ElmoModelHandler(ModelHandler[embedder.Text, PredictionResult, embedder.Embedder]):
    """Runs a SavedModel on sentences in a Beam pipeline.

        import apache_beam as beam
        from apache_beam.ml.inference.base import RunInference
        from elmo_tf.beam import ElmoModelHandler

        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            vectors = (
                pipeline
                | beam.Create(["The bank lends money .", "A bank of the river ."])
                | RunInference(ElmoModelHandler("english"))
                | beam.Map(lambda result: result.inference.vectors)
            )

    An element is a sentence (str or bytes), which is split as the model's signature `default` does, or a list of
    tokens. It becomes a `PredictionResult`: `example` is the element, `inference` has `tokens` (list of str) and
    `vectors`, float32 `(num_layers, tokens, dim)`, or `(tokens, dim)` if not all layers are asked for. A sentence's
    vectors depend on that sentence alone, not on Beam's batches.

    Args:
        savedmodel: a version's folder, or a model's (newest version), local or in an object store, such as
            `gs://`; or the name of a published model. Workers load it, so each must be able to read it. A remote model
            is copied to the worker's disk while it is loaded.
        layers: `"all"`, `"top"`, the `"average"` or `"sum"` of all layers, a layer's number, or `"mix"`, the ELMo
            vector.
        batch_tokens: the largest number of positions, padding included, that the model computes at a time. Sentences of
            a Beam batch are sorted by length, so a large Beam batch (`max_batch_size`) has little padding.
        num_threads: of each process that computes; None: one per core. Set it where several processes share a machine.
        pool: None: a vector for each token. `"mean"` or `"max"`: `inference` is one vector for the text, float32
            `(dim,)`, or `(num_layers, dim)` for all layers.
        precision: of the matrix products, as for `elmo_tf.load`.
        large_model: whether the processes of a machine share one copy of the model. The threads of a process always do.
        kwargs: of Beam's `ModelHandler`, such as `min_batch_size` and `max_batch_size`.

    Raises:
        InputError: for a value that cannot be used; on workers, for an unusable model or element.
        TypeError: for an unknown argument.
    """

    def __init__(
        self,
        savedmodel: str | os.PathLike,
        layers: embedder.Layers = "all",
        batch_tokens: int = embedder.BATCH_TOKENS,
        num_threads: int | None = None,
        *,
        pool: Literal["mean", "max"] | None = None,
        precision: str = "float32",
        large_model: bool = False,
        **kwargs: Any,
    ):
        known = inspect.signature(ModelHandler.__init__).parameters.keys() - {"self", "kwargs"} | {"env_vars"}
        if unknown := kwargs.keys() - known:
            raise TypeError(f"{type(self).__name__} has no argument {min(unknown)!r}")  # Beam would ignore it
        super().__init__(large_model=large_model, **kwargs)
        embedder.check_layers(layers)
        require("batch_tokens", batch_tokens >= 1, "at least 1", batch_tokens)
        require("num_threads", num_threads is None or num_threads >= 1, "None or at least 1", num_threads)
        require("pool", pool in (None, *embedder.POOLS), f"None or one of {', '.join(embedder.POOLS)}", repr(pool))
        precisions = sources.PRECISIONS
        require("precision", precision in precisions, f"one of {', '.join(precisions)}", repr(precision))
        self._savedmodel, self._layers, self._pool = os.fspath(savedmodel), layers, pool
        self._batch_tokens, self._num_threads, self._precision = batch_tokens, num_threads, precision

    def load_model(self) -> embedder.Embedder:
        """Returns the loaded model. Beam calls it once in a process, or on a machine with `large_model`."""
        with local_copy(self._savedmodel) as (path, _):
            source = sources.find(path).with_precision(self._precision)
            return embedder.Embedder(source, self._batch_tokens, self._num_threads, engine="tensorflow")

    def update_model_path(self, model_path: str | None = None) -> None:
        """Switches to another model; Beam calls this before `load_model`."""
        self._savedmodel = model_path or self._savedmodel

    def run_inference(
        self, batch: Sequence[embedder.Text], model: embedder.Embedder, inference_args: dict[str, Any] | None = None
    ) -> Iterable[PredictionResult]:
        """Yields the result for each text, in the order of the texts."""
        yield from map(PredictionResult, batch, model.encode(batch, self._layers, self._pool))


@contextlib.contextmanager
def local_copy(savedmodel: str) -> Iterator[tuple[str, str]]:
    """Yields a local path of the model; a remote model's newest version is copied for the duration of the block.

    Yields:
        the local path, or the address on the hub; and `savedmodel`, or the version's folder in it that was copied.
    """
    if stores.is_local(savedmodel) or models.is_hub_address(savedmodel):
        yield savedmodel, savedmodel
        return
    stores.check_folder(savedmodel)
    folder = savedmodel.rstrip("/") + "/"
    files = {path.removeprefix(folder): path for path in stores.match(folder + "**")}
    # Stores may contain objects that represent folders.
    files = {name: path for name, path in files.items() if name and not name.endswith("/")}
    source = savedmodel
    if contract.GRAPH_FILE not in files:
        graphs = (name.partition("/") for name in files)
        newest = assets.newest_of(version for version, _, name in graphs if name == contract.GRAPH_FILE)
        if newest is None:
            raise InputError(savedmodel, f"no {contract.GRAPH_FILE} in this folder")
        files = {name.removeprefix(f"{newest}/"): path for name, path in files.items() if name.startswith(f"{newest}/")}
        source = folder + newest
    for name, path in files.items():
        # Anyone who can write to a store can choose names.
        if name.startswith("/") or ".." in pathlib.PurePosixPath(name).parts:
            raise InputError(savedmodel, f"a file outside the model's folder: {path}")
    with tempfile.TemporaryDirectory(prefix="elmo-tf-") as copy:
        for name, path in files.items():
            target = pathlib.Path(copy, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with stores.open_file(path) as source_file, open(target, "wb") as file:
                shutil.copyfileobj(source_file, file)
        yield copy, source
