"""The models published for ELMo: one table of names, addresses, sizes and checksums."""

import dataclasses
import os

from elmo_tf.errors import InputError, suggestion

# The start of the table's addresses; the environment variable names a mirror that takes its place.
ADDRESS = "https://allennlp.s3.amazonaws.com/models/elmo"
MIRROR_VARIABLE = "ELMO_TF_MIRROR"

# Names of a model's two files on this machine.
OPTIONS_FILE = "options.json"
WEIGHTS_FILE = "weights.hdf5"

_NOT_STATED = "not stated"
_NEWS = "1 Billion Word, 0.8 G tokens of news"


@dataclasses.dataclass(frozen=True)
class PublishedModel:
    """A model that has a name.

    Attributes:
        name: what users write.
        about: the text it was trained on.
        language: of that text.
        parameters: number of weights, without the softmax.
        dim: width of a vector, twice the projection.
        options: path of its `options.json` below `ADDRESS`; empty: the files come with this package.
        weights: path of its `weights.hdf5`.
        size: bytes of `weights`; None: unknown.
        sha256: of `weights`, in hexadecimal, as published by a third party; None: unknown.
        license: as far as it is known.
    """

    name: str
    about: str
    language: str
    parameters: int
    dim: int
    options: str = ""
    weights: str = ""
    size: int | None = None
    sha256: str | None = None
    license: str = _NOT_STATED

    @property
    def comes_with_package(self) -> bool:
        """Whether its files come with this package."""
        return not self.weights

    @property
    def urls(self) -> dict[str, str]:
        """The addresses of the two files, by their names on this machine; empty if they come with this package."""
        if self.comes_with_package:
            return {}
        base = os.environ.get(MIRROR_VARIABLE, ADDRESS).rstrip("/")
        return {OPTIONS_FILE: f"{base}/{self.options}", WEIGHTS_FILE: f"{base}/{self.weights}"}

    @property
    def checked(self) -> str:
        """What is known of the weights file, besides the name and shape of every array in it."""
        return "SHA-256" if self.sha256 else "size" if self.size else "arrays"


def _of_allennlp(name: str, about: str, size_name: str, parameters: int, dim: int, **known) -> PublishedModel:
    """Returns a row for a model with the address that AllenNLP's own models have."""
    stem = f"{size_name}/elmo_{size_name}"
    return PublishedModel(
        name, about, "English", parameters, dim, f"{stem}_options.json", f"{stem}_weights.hdf5", **known
    )


# The sizes and checksums were read in public sources; each checksum comes from one third party.
MODELS = (
    PublishedModel(
        "books",
        "public-domain books and textbooks",
        "English",
        2_996_432,
        256,
        size=5_693_448,
        sha256="9eb5c464ec21415144756bd387eb1be25c7be20bebaaaf27185d12c3ee808947",
        license="Apache-2.0",
    ),
    _of_allennlp(
        "small",
        _NEWS,
        "2x1024_128_2048cnn_1xhighway",
        13_593_296,
        256,
        size=54_402_456,
        sha256="747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229",
    ),
    _of_allennlp("medium", _NEWS, "2x2048_256_2048cnn_1xhighway", 28_027_728, 512),
    _of_allennlp(
        "original",
        _NEWS,
        "2x4096_512_2048cnn_2xhighway",
        93_600_848,
        1024,
        size=374_434_792,
        sha256="a6b92b9ccbb13fe489faacd2221c795d4bebe84b75f8aded9d85ea464fa5c994",
    ),
    _of_allennlp(
        "original-5.5B", "Wikipedia and news, 5.5 G tokens", "2x4096_512_2048cnn_2xhighway_5.5B", 93_600_848, 1024
    ),
    PublishedModel(
        "pubmed",
        "PubMed",
        "English",
        93_600_848,
        1024,
        "contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_options.json",
        "contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_weights_PubMed_only.hdf5",
    ),
    PublishedModel(
        "pt-wikipedia",
        "Wikipedia",
        "Portuguese",
        93_600_848,
        1024,
        "contributed/pt/wikipedia/options.json",
        "contributed/pt/wikipedia/elmo_pt_weights.hdf5",
    ),
    PublishedModel(
        "pt-brwac",
        "brWaC, a corpus of web pages",
        "Portuguese",
        93_600_848,
        1024,
        "contributed/pt/brwac/options.json",
        "contributed/pt/brwac/elmo_pt_weights_dgx1.hdf5",
    ),
)

# Collections that are not in the table, and why.
_OTHER_FORMATS = {
    "elmoformanylangs": "PyTorch files (token_embedder.pkl, encoder.pkl) of another network, which has word embeddings "
    "and a character vocabulary of its own",
    "nlpl": "in its older list, models of ELMoForManyLangs, which are PyTorch files of another network; import later "
    "ones from their files: elmo-tf import --options options.json --weights FILE.hdf5",
}


def is_name(value: object) -> bool:
    """Whether `value` is the name of a model in the table."""
    return isinstance(value, str) and value in {model.name for model in MODELS}


def find(name: str) -> PublishedModel:
    """Returns the model called `name`.

    Raises:
        InputError: if there is none, with the names that there are; or with the reason, for collections of models in
            another format.
    """
    for model in MODELS:
        if model.name == name:
            return model
    if reason := _OTHER_FORMATS.get(name.lower()):
        raise InputError(name, "a model in the format of bilm-tf (HDF5 and options.json)", reason)
    raise InputError(name, expected_names(), "no such model" + suggested(name))


def expected_names() -> str:
    """Returns what an error expects for a name."""
    return f"one of the models {', '.join(model.name for model in MODELS)}"


def suggested(name: object) -> str:
    """Returns what an error adds to a wrong name: a similar one, if any."""
    return suggestion(str(name), [model.name for model in MODELS])
