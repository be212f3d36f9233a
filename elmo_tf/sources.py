"""Where a model can come from: an exported SavedModel, a workdir, published files, or a published model's name.

The only place that knows what a source can be. TensorFlow is imported when a network or a model is asked for, because a
job that starts worker processes has to find its source first.
"""

import abc
import dataclasses
import hashlib
import os
import pathlib
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, is_about_memory, reason
from elmo_tf.files import staging
from elmo_tf.published import fetching, models
from elmo_tf.published.options import read_options
from elmo_tf.savedmodel import assets, checksums, contract, finding
from elmo_tf.scoring import LanguageModel
from elmo_tf.text import tokenizers
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.workdir.folder import is_workdir, open_workdir

if TYPE_CHECKING:
    from elmo_tf.model.bilm import BiLM
    from elmo_tf.model.packed_bilm import PackedBiLM

# A folder, a published model's name, or options.json with weights.hdf5.
Path = str | os.PathLike | Sequence[str | os.PathLike]

_EXPECTED = (
    "a SavedModel, a workdir, a folder of options.json and weights.hdf5, the pair of these two files, or "
    f"{models.expected_names()}"
)


@dataclasses.dataclass(frozen=True)
class Source(abc.ABC):
    """A model on disk.

    Args:
        name: finds it again, on another machine too if the files are there: an absolute path, or a model's name.
        config: the network's sizes.
        tokenizer: how a sentence is split, one of `tokenizers.TOKENIZERS`.
        precision: of `model`'s matrix products, one of `contract.PRECISIONS`.
    """

    name: str
    config: config_lib.ModelConfig
    tokenizer: str = "whitespace"
    precision: str = "float32"

    def __post_init__(self) -> None:
        tokenizers.check(self.tokenizer)

    @property
    def num_layers(self) -> int:
        """Layers of a token, the token layer included."""
        return self.config.lstm.num_layers + 1

    @property
    def dim(self) -> int:
        """Width of a vector, twice the projection."""
        return 2 * self.config.lstm.projection_dim

    def with_precision(self, precision: str) -> Self:
        """Returns the same model with another precision; `InputError` if it does not have it."""
        if precision not in contract.PRECISIONS:
            raise InputError("precision", f"one of {', '.join(contract.PRECISIONS)}", repr(precision))
        if precision != "float32" and isinstance(self, SavedModel):
            expected = "float32 for a SavedModel, whose graph computes in it; published files can use another"
            raise InputError("precision", expected, precision)
        return dataclasses.replace(self, precision=precision)

    def shape(self, layers: str | int) -> tuple[int, ...]:
        """Returns the shape of a token's vectors: `(num_layers, dim)` for "all", else `(dim,)`."""
        return (self.num_layers, self.dim) if layers == "all" else (self.dim,)

    @abc.abstractmethod
    def sha256(self) -> str:
        """Returns a checksum of all that determines the vectors but `precision`; `InputError` if a file is damaged."""

    @abc.abstractmethod
    def network(self) -> "BiLM | PackedBiLM":
        """Returns the network, without a softmax; `InputError` if a file is damaged."""

    def language_model(self) -> LanguageModel:
        """Returns the network with its softmax; `InputError` if the source has none."""
        raise InputError(self.name, "a model with its softmax: a workdir, or an export made with --softmax", "none")

    def model(self) -> Any:
        """Returns an object that embeds with `tokens` and has `trainable_variables`, as an exported model does.

        Except in SavedModels, the mix is the average of the layers, with gamma 1, and every sentence starts from the
        zero state.
        """
        import tensorflow as tf  # noqa: PLC0415 - see the top

        from elmo_tf.model.kernels import products  # noqa: PLC0415
        from elmo_tf.model.packed_bilm import PackedBiLM  # noqa: PLC0415
        from elmo_tf.model.scalar_mix import build_mix  # noqa: PLC0415
        from elmo_tf.text import in_graph  # noqa: PLC0415

        if self.precision == "bfloat16":
            products.check_bfloat16()
        bilm, mix = PackedBiLM.of(self.network(), self.precision), build_mix(self.num_layers)
        bilm.compiled = True  # never saved: other machines may have no XLA

        specs = [tf.TensorSpec((None, None), tf.string), tf.TensorSpec((None,), tf.int32)]

        @tf.function(input_signature=specs, autograph=False)
        def tokens(tokens, sequence_len):
            ids = in_graph.encode_tokens(tokens, sequence_len, self.config.char_cnn.max_chars_per_token)
            layers, _ = bilm(ids)
            return {"layers": layers, "elmo": mix(layers)}

        return types.SimpleNamespace(tokens=tokens, trainable_variables=mix.trainable_variables)


@dataclasses.dataclass(frozen=True)
class SavedModel(Source):
    """A version's folder of an exported model; its mix and its initial state are part of it."""

    @property
    def path(self) -> pathlib.Path:
        """The version's folder."""
        return pathlib.Path(self.name)

    def sha256(self) -> str:
        listed = checksums.check(self.path, thorough=True).items()
        lines = [f"{name} {about.sha256}" for name, about in listed if not name.startswith("assets")]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def network(self) -> "PackedBiLM":
        from elmo_tf.savedmodel import stored_weights  # noqa: PLC0415 - see the top

        checksums.check(self.path, thorough=True)
        return stored_weights.read_network(self.path, self.config)

    def language_model(self) -> LanguageModel:
        from elmo_tf.savedmodel import stored_weights  # noqa: PLC0415 - see the top

        file = self.path / contract.VOCABULARY_FILE
        if not file.exists():
            return super().language_model()
        network = self.network()
        vocabulary = vocabulary_lib.from_bytes(file.read_bytes(), str(file))
        return LanguageModel(network, stored_weights.read_softmax(self.path, self.config, len(vocabulary)), vocabulary)

    def model(self) -> Any:
        import tensorflow as tf  # noqa: PLC0415 - see the top

        if assets.read_tokenizer(self.path) == "unicode":
            import tensorflow_text  # noqa: F401, PLC0415 - the graph has its operations
        checksums.check(self.path)
        try:
            return tf.saved_model.load(self.name)
        except Exception as error:  # a damaged graph can raise anything
            if is_about_memory(error):
                raise
            raise InputError(self.name, "an intact SavedModel", reason(error)) from None


@dataclasses.dataclass(frozen=True)
class Workdir(Source):
    """The newest checkpoint of a workdir."""

    def sha256(self) -> str:
        # Not a checkpoint's checksums, which cover the optimizer as well.
        digest = hashlib.sha256()
        for variable in self.network().variables:
            digest.update(variable.numpy().tobytes())
        return digest.hexdigest()

    def network(self) -> "BiLM":
        return open_workdir(self.name).trained_bilm(with_softmax=False)

    def language_model(self) -> LanguageModel:
        from elmo_tf.model.packed_bilm import PackedBiLM  # noqa: PLC0415 - see the top

        workdir = open_workdir(self.name)
        if workdir.vocabulary is None:
            return super().language_model()
        bilm = workdir.trained_bilm()
        return LanguageModel(PackedBiLM.of(bilm), bilm.softmax, workdir.vocabulary)


@dataclasses.dataclass(frozen=True)
class Published(Source):
    """A pair of files in the format of bilm-tf and AllenNLP."""

    options: pathlib.Path = pathlib.Path()
    weights: pathlib.Path = pathlib.Path()

    def sha256(self) -> str:
        with open(self.weights, "rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha256(f"{self.config} {weights}".encode()).hexdigest()

    def network(self) -> "BiLM":
        from elmo_tf.published import weights  # noqa: PLC0415 - see the top

        return weights.load(self.options, self.weights)[1]

    def language_model(self) -> LanguageModel:
        from elmo_tf.model.packed_bilm import PackedBiLM  # noqa: PLC0415 - see the top
        from elmo_tf.published import weights  # noqa: PLC0415

        found = weights.load_softmax(self.weights, self.config)
        return LanguageModel(PackedBiLM.of(self.network()), *found) if found else super().language_model()


def find(source: Path) -> Source:
    """Returns what `source` is: see `elmo_tf.load`. A folder comes before a published model of the same name.

    Raises:
        InputError: if it is none of these, cannot be fetched, or its configuration is damaged.
    """
    if not isinstance(source, str | os.PathLike):
        is_pair = isinstance(source, Sequence) and len(source) == 2
        if not is_pair or not all(isinstance(path, str | os.PathLike) for path in source):
            raise InputError("source", _EXPECTED, repr(source))
        options, weights = map(pathlib.Path, source)
        return _published(os.path.abspath(weights), options, weights)
    if not os.fspath(source):
        raise InputError("source", _EXPECTED, "an empty string")
    folder = pathlib.Path(source)
    name = os.path.abspath(folder)
    if is_workdir(folder):
        workdir = open_workdir(folder)
        return Workdir(name, workdir.config.model, workdir.tokenizer)
    if (folder / models.OPTIONS_FILE).is_file():
        return _published(name, folder / models.OPTIONS_FILE, folder / models.WEIGHTS_FILE)
    if (version := finding.newest(folder)) is not None:
        staging.check_for_tensorflow(version)
        checksums.check(version)
        return SavedModel(os.path.abspath(version), assets.read_config(version), assets.read_tokenizer(version))
    if not models.is_name(source):
        raise InputError(str(source), _EXPECTED, "none of them" + models.suggested(source))
    model = models.find(str(source))
    return dataclasses.replace(_published(str(source), *fetching.files(model)), tokenizer=model.tokenizer)


def network(
    source: "Path | config_lib.ModelConfig | BiLM | PackedBiLM", trainable: bool = False
) -> "BiLM | PackedBiLM":
    """Returns the network of `source`, without a softmax: a `BiLM` if it is `trainable`, or else a `PackedBiLM`.

    Args:
        source: as for `find`; or sizes, for random weights; or a network, which is copied if it is `trainable`.
        trainable: whether it will be trained.

    Raises:
        InputError: as for `find`, or if a file is damaged.
    """
    from elmo_tf.model.bilm import BiLM  # noqa: PLC0415 - see the top
    from elmo_tf.model.packed_bilm import PackedBiLM  # noqa: PLC0415

    if isinstance(source, config_lib.ModelConfig):
        return BiLM(source) if trainable else PackedBiLM.of(BiLM(source))
    is_given = isinstance(source, BiLM | PackedBiLM)
    found = source if is_given else find(source).network()
    if trainable:
        is_new = isinstance(found, BiLM) and not is_given
        return found if is_new else BiLM.of(found, found.product_dtype if isinstance(found, BiLM) else "float32")
    return found if isinstance(found, PackedBiLM) else PackedBiLM.of(found)


def _published(name: str, options: pathlib.Path, weights: pathlib.Path) -> Published:
    return Published(name, read_options(options).model, options=options, weights=weights)
