"""Where a model can come from: a SavedModel, a workdir, published files, a published model's name, or the hub.

Only this file knows what a source can be. What reads SavedModels and workdirs is imported where it is used, because a
name needs neither. TensorFlow is imported only to build a network, and to read SavedModels and workdirs: published
files do not need it, and a job that starts worker processes has to find its source first.
"""

import abc
import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.files import intact
from elmo_tf.published import arrays, models
from elmo_tf.published.options import read_options, read_tokenizer

if TYPE_CHECKING:
    from elmo_tf.model.fast import BiLM
    from elmo_tf.text.vocabulary import Softmax

# A folder, a published model's name, an address on Hugging Face's hub, or options.json with weights.hdf5.
Path = str | os.PathLike | Sequence[str | os.PathLike]

PRECISIONS = ("float32", "bfloat16")  # of the matrix products

_NLPL_WEIGHTS = "model.hdf5"  # in folders of the NLPL repository
_MANY_LANGS = "token_embedder.pkl"  # of ELMoForManyLangs
_EXPECTED = (
    "a SavedModel, a workdir, a folder of options.json and weights.hdf5, the pair of these two files, "
    f"an address hf://owner/name, or {models.expected_names()}"
)
# What is fetched from the hub, and nothing else: published files, a SavedModel, and the card.
_HUB_FILES = (
    *("options.json", "weights.hdf5", "model.hdf5", "softmax.hdf5", "vocab.txt", "README.md"),
    *("saved_model.pb", "fingerprint.pb", "variables/variables.index", "variables/variables.data-?????-of-?????"),
    *("assets/config.json", "assets/provenance.json", "assets/vocab.txt", "assets.extra/checksums.json"),
    *("assets.extra/sample_vectors.npz", "assets.extra/tf_serving_warmup_requests"),
)


class NoSoftmaxError(InputError):
    """The model has no softmax."""


@dataclasses.dataclass(frozen=True)
class Source(abc.ABC):
    """A model on disk.

    Args:
        name: identifies it, also on another machine that has the files: an absolute path, a model's name, or an
            address on the hub with its commit.
        config: the network's sizes.
        tokenizer: how a sentence is split, in `tokenizers.TOKENIZERS`.
        precision: of the network's matrix products, in `PRECISIONS`.
        path: the folder with its files.
    """

    needs_tensorflow: ClassVar[bool] = True  # to read it

    name: str
    config: config_lib.ModelConfig
    tokenizer: str = "whitespace"
    precision: str = "float32"
    path: pathlib.Path = pathlib.Path()

    @property
    def num_layers(self) -> int:
        """Layers of a token, the token layer included."""
        return self.config.lstm.num_layers + 1

    @property
    def dim(self) -> int:
        """Width of a vector, twice the projection."""
        return 2 * self.config.lstm.projection_dim

    def with_precision(self, precision: str) -> Self:
        """Returns the same model with another precision, one of `PRECISIONS`."""
        if precision not in PRECISIONS:
            raise InputError("precision", f"one of {', '.join(PRECISIONS)}", repr(precision))
        return dataclasses.replace(self, precision=precision)

    def shape(self, layers: str | int) -> tuple[int, ...]:
        """Returns the shape of a token's vectors: `(num_layers, dim)` for "all", else `(dim,)`."""
        return (self.num_layers, self.dim) if layers == "all" else (self.dim,)

    @abc.abstractmethod
    def sha256(self) -> str:
        """Returns a checksum of all that determines the vectors but `precision`; `InputError` if a file is damaged."""

    @abc.abstractmethod
    def weights(self) -> dict[str, np.ndarray]:
        """Returns the weights without a softmax, float32, by name; `InputError` if a file is damaged."""

    def mix(self) -> tuple[np.ndarray, float]:
        """Returns the scalar parameters of the layers, and gamma: those of the average unless the source has a mix."""
        return np.zeros(self.num_layers, np.float32), 1.0

    def trainable_network(self) -> "BiLM":
        """Returns the network for training, without a softmax; `InputError` if a file is damaged."""
        from elmo_tf.model.fast import BiLM  # noqa: PLC0415 - see the top

        return BiLM.from_weights(self.config, self.weights())

    def network(self) -> "BiLM":
        """Returns the network for use in TensorFlow, frozen, without a softmax; `InputError` if a file is damaged."""
        from elmo_tf.model.fast import BiLM  # noqa: PLC0415 - see the top

        return frozen(BiLM.from_weights(self.config, self.weights(), product_dtype=self.precision))

    def softmax(self) -> "Softmax":
        """Returns the softmax and its words; `NoSoftmaxError` if the source has none."""
        raise NoSoftmaxError(self.name, "this model has no softmax; use a workdir, or an export made with --softmax")


@dataclasses.dataclass(frozen=True)
class SavedModel(Source):
    """A version's folder of an exported model, which has a mix. TensorFlow reads its variables, not its graph."""

    def sha256(self) -> str:
        from elmo_tf.savedmodel import checksums  # noqa: PLC0415 - see the top

        listed = checksums.check(self.path, thorough=True).items()
        lines = [f"{name} {about.sha256}" for name, about in listed if not name.startswith("assets")]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def weights(self) -> dict[str, np.ndarray]:
        _check_not_forked()
        from elmo_tf.savedmodel import checksums, stored_weights  # noqa: PLC0415 - see the top

        checksums.check(self.path, thorough=True)
        return stored_weights.read_weights(self.path, self.config)

    def mix(self) -> tuple[np.ndarray, float]:
        _check_not_forked()
        from elmo_tf.savedmodel import stored_weights  # noqa: PLC0415 - see the top

        return stored_weights.read_mix(self.path, self.num_layers)

    def softmax(self) -> "Softmax":
        from elmo_tf.savedmodel import contract  # noqa: PLC0415 - see the top

        file = self.path / contract.VOCABULARY_FILE
        if not file.exists():
            return super().softmax()
        _check_not_forked()
        from elmo_tf.savedmodel import stored_weights  # noqa: PLC0415 - see the top
        from elmo_tf.text import vocabulary as vocabulary_lib  # noqa: PLC0415 - see the top

        return stored_weights.read_softmax(self.path, self.config, vocabulary_lib.read(file))


@dataclasses.dataclass(frozen=True)
class Workdir(Source):
    """The newest checkpoint of a workdir, which TensorFlow reads."""

    def sha256(self) -> str:
        # Not a checkpoint's checksums, which cover the optimizer as well.
        digest = hashlib.sha256(str(self.config).encode())
        for values in self.weights().values():
            digest.update(values.tobytes())
        return digest.hexdigest()

    def weights(self) -> dict[str, np.ndarray]:
        from elmo_tf.model.variables import relative_names  # noqa: PLC0415 - see the top

        return {name: variable.numpy() for name, variable in relative_names(self.trainable_network()).items()}

    def trainable_network(self) -> "BiLM":
        _check_not_forked()
        from elmo_tf.workdir import checkpoints, folder  # noqa: PLC0415 - see the top

        return checkpoints.restore(folder.open_workdir(self.name), with_softmax=False)[0]

    def softmax(self) -> "Softmax":
        from elmo_tf.workdir import folder  # noqa: PLC0415 - see the top

        workdir = folder.open_workdir(self.name)
        if workdir.vocabulary is None:
            return super().softmax()
        _check_not_forked()
        from elmo_tf.text.vocabulary import Softmax  # noqa: PLC0415 - see the top
        from elmo_tf.workdir import checkpoints  # noqa: PLC0415 - see the top

        softmax = checkpoints.restore(workdir)[0].softmax
        return Softmax(softmax.kernel.numpy(), softmax.bias.numpy(), workdir.vocabulary)


@dataclasses.dataclass(frozen=True)
class Published(Source):
    """A pair of files in the format of bilm-tf and AllenNLP."""

    options: pathlib.Path = pathlib.Path()
    weights_file: pathlib.Path = pathlib.Path()
    needs_tensorflow = False

    def sha256(self) -> str:
        intact.check_regular(self.weights_file)
        with open(self.weights_file, "rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha256(f"{self.config} {weights}".encode()).hexdigest()

    def weights(self) -> dict[str, np.ndarray]:
        return dict(arrays.read_weights(self.weights_file, self.config))

    def softmax(self) -> "Softmax":
        return arrays.read_softmax(self.weights_file, self.config) or super().softmax()


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
    if models.is_hub_address(source):
        from elmo_tf.published import hub  # noqa: PLC0415 - other sources do not need it

        folder, name = hub.fetch(str(source), _HUB_FILES)
        if (fetched := _source_at(folder)) is None:
            raise InputError(name, "no model of elmo_tf: neither options.json and weights.hdf5 nor a SavedModel")
        return dataclasses.replace(fetched, name=name)
    if os.path.exists(source) and (at_path := _source_at(pathlib.Path(source))) is not None:
        return at_path
    if models.is_system(source):
        raise InputError(str(source), "a trained system, which has no vectors; use elmo_tf.tasks.load or elmo-tf task")
    if not models.is_name(source):
        problem = f"no model at this path or of this name{models.suggested(source)} (expected {_EXPECTED})"
        raise InputError(str(source), problem)
    return named(str(source))


def named(name: str) -> Published:
    """Returns a published model of the table; raises as `find`."""
    model = models.find(name)
    return dataclasses.replace(_published(model.name, *model.files()), tokenizer=model.tokenizer)


def _source_at(path: pathlib.Path) -> Source | None:
    """Returns the source at an existing path; None if it is none."""
    from elmo_tf.files import staging  # noqa: PLC0415 - see the top
    from elmo_tf.savedmodel import assets, checksums  # noqa: PLC0415 - see the top
    from elmo_tf.workdir import folder  # noqa: PLC0415 - see the top

    name, published = os.path.abspath(path), _published_files(path)
    if folder.is_workdir(path):
        workdir = folder.open_workdir(path)
        return Workdir(name, workdir.config.model, workdir.tokenizer, path=workdir.path)
    if published is not None:
        return _published(name, *published)
    if (version := assets.newest(path)) is None:
        return None
    staging.check_for_tensorflow(version)
    checksums.check(version)
    config, tokenizer = assets.read_config(version), assets.read_tokenizer(version)
    return SavedModel(os.path.abspath(version), config, tokenizer, path=version.absolute())


def _published_files(folder: pathlib.Path) -> models.Files | None:
    """Returns the options and the weights in a folder, or None if it has no options.

    `options.json` and `weights.hdf5`; with NLPL `model.hdf5`; with AllenNLP `elmo_..._options.json` and
    `elmo_..._weights.hdf5`, or any other ending.

    Raises:
        InputError: if it has the files of several models, or those of another kind of model.
    """
    if folder.suffix == ".zip" and folder.is_file():
        raise InputError(str(folder), f"an archive: unpack it (unzip {folder} -d {folder.stem}) and give the folder")
    if (folder / _MANY_LANGS).is_file():
        raise InputError(
            str(folder), "a model of ELMoForManyLangs: a different network, in PyTorch files, which cannot be read"
        )
    usual = folder / models.OPTIONS_FILE
    options = [usual] if usual.is_file() else sorted(folder.glob("*_options.json"))
    if not options:
        return None
    known_weights = [path for path in (folder / models.WEIGHTS_FILE, folder / _NLPL_WEIGHTS) if path.is_file()]
    weights = known_weights[:1] or sorted(folder.glob("*_weights*.hdf5"))
    if len(options) > 1 or len(weights) > 1:
        names = ", ".join(path.name for path in [*options, *weights])
        raise InputError(str(folder), f"the files of several models ({names}): give the two files of one model")
    return models.Files(options[0], weights[0] if weights else folder / models.WEIGHTS_FILE)


def _check_not_forked() -> None:
    from elmo_tf import extras  # noqa: PLC0415 - see the top

    extras.check_not_forked()


def frozen(bilm: "BiLM") -> "BiLM":
    """Makes all weights of a network not trainable; returns it."""
    bilm.trainable = False
    return bilm


def network(source: "Path | Source | config_lib.ModelConfig | BiLM", trainable: bool = False) -> "BiLM":
    """Returns the network of `source`, without a softmax.

    Args:
        source: as for `find`, or what it returned; or sizes, for random weights; or a network, which is copied unless
            it and the result are frozen.
        trainable: whether it will be trained; otherwise it is frozen.

    Raises:
        InputError: as for `find`, or if a file is damaged.
    """
    from elmo_tf.model.fast import BiLM  # noqa: PLC0415 - see the top
    from elmo_tf.model.variables import relative_names  # noqa: PLC0415

    if isinstance(source, config_lib.ModelConfig):
        bilm = BiLM(source)
    elif not isinstance(source, BiLM):
        described = source if isinstance(source, Source) else find(source)
        return described.trainable_network() if trainable else described.network()
    elif not (trainable or source.trainable_variables):
        return source
    else:
        bilm = BiLM.from_weights(source.config, relative_names(source), product_dtype=source.product_dtype)
    return bilm if trainable else frozen(bilm)


def _published(name: str, options: pathlib.Path, weights: pathlib.Path) -> Published:
    config, tokenizer = read_options(options).model, read_tokenizer(options)
    return Published(name, config, tokenizer, path=weights.parent, options=options, weights_file=weights)
