"""The models published for ELMo: a table of names, addresses, sizes and checksums; and their files on this machine."""

import dataclasses
import os
import pathlib
from typing import NamedTuple

import h5py

from elmo_tf.errors import InputError, suggestion
from elmo_tf.files import intact
from elmo_tf.published.options import read_options

# Prefix of the table's addresses; the environment variable gives a mirror to use instead.
ADDRESS = "https://allennlp.s3.amazonaws.com/models/elmo"
MIRROR_VARIABLE = "ELMO_TF_MIRROR"
HOME_VARIABLE = "ELMO_TF_HOME"
HUB_SCHEME = "hf://"

# Names of a model's two files on this machine.
OPTIONS_FILE = "options.json"
WEIGHTS_FILE = "weights.hdf5"
# Beside them in a folder with a softmax, which published files never have.
SOFTMAX_FILE = "softmax.hdf5"
VOCABULARY_FILE = "vocab.txt"

_PACKAGED = pathlib.Path(__file__).parent  # has a folder for each model that comes with this package
_NEWS = "1 Billion Word, 0.8 G tokens of news"


class Files(NamedTuple):
    """The two files of a model."""

    options: pathlib.Path
    weights: pathlib.Path


@dataclasses.dataclass(frozen=True)
class PublishedModel:
    """A named model."""

    name: str
    about: str  # the text it was trained on
    parameters: int  # number of weights, without the softmax
    dim: int  # width of a vector, twice the projection
    options: str = ""  # path of its `options.json` below `ADDRESS`; empty: the files come with this package
    weights: str = ""  # path of its `weights.hdf5`
    size: int | None = None  # bytes of `weights`; None: unknown
    sha256: str | None = None  # of `weights`, in hexadecimal, as published by a third party; None: unknown
    license: str = "not stated"  # as far as known
    language: str = "English"  # of the text
    tokenizer: str = "whitespace"  # how sentences are split; in `tokenizers.TOKENIZERS`
    task: str = ""  # of `elmo-tf task`, if it is a trained system

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
        """What is known about the weights file, besides the name and shape of every array in it."""
        return "SHA-256" if self.sha256 else "size" if self.size else "arrays"

    @property
    def is_local(self) -> bool:
        """Whether its files are on this machine."""
        return all(path.is_file() for path in self.paths)

    @property
    def paths(self) -> Files:
        """Its files on this machine, or where they will be."""
        folder = (_PACKAGED if self.comes_with_package else home()) / self.name
        return Files(folder / OPTIONS_FILE, folder / WEIGHTS_FILE)

    def files(self) -> Files:
        """Returns its files, fetched first if they are not on this machine.

        An interrupted download resumes; a wrong file is not kept; a second process waits for the first. Existing files,
        such as manual copies, are also compared with the table.

        Raises:
            InputError: if a file cannot be fetched or written, is damaged, or differs from the table.
        """
        paths = self.paths
        folder = paths.weights.parent
        if not self.is_local and not self.comes_with_package:
            self._fetch_missing(folder)
        try:
            intact.check(paths.weights, self.size, self.sha256)
        except InputError as error:
            # The files stay: a user may have put them there.
            remedy = f"delete {folder} and the next use fetches it again"
            if self.comes_with_package:
                remedy = "install elmo_tf again"
            raise InputError(self.name, f"the model is damaged: {error}; {remedy}") from None
        return paths

    def _fetch_missing(self, folder: pathlib.Path) -> None:
        """Fetches the files that are not in the folder, after waiting for other processes that write there."""
        from elmo_tf import extras  # noqa: PLC0415 - local files do not need it

        with extras.explain_missing_extra():
            from elmo_tf.files import lock  # noqa: PLC0415 - it imports filelock, which local models do not need

        try:
            folder.mkdir(parents=True, exist_ok=True)
            with lock.locked(folder, wait=True):
                for name, url in self.urls.items():
                    if not (folder / name).exists():
                        self._fetch(url, folder / name)
        except OSError as error:
            problem = f"the folder cannot be written ({error.strerror}); {HOME_VARIABLE} names another"
            raise InputError(str(folder), problem) from None

    def _fetch(self, url: str, path: pathlib.Path) -> None:
        """Fetches a file, and removes it if it is not what its name says, such as a network's login page."""
        from elmo_tf.files import download  # noqa: PLC0415 - it imports Python's HTTPS, a tenth of a second

        expected = (self.size, self.sha256) if path.name == WEIGHTS_FILE else (None, None)
        try:
            download.download(url, *expected, path)
            if path.name == OPTIONS_FILE:
                read_options(path)
            elif not h5py.is_hdf5(path):
                raise InputError(str(path), "not an HDF5 file")
        except InputError as error:
            path.unlink(missing_ok=True)
            urls = " and ".join(map(download.without_credentials, self.urls.values()))
            by_hand = f"copy the files of {urls} into {path.parent} as {OPTIONS_FILE} and {WEIGHTS_FILE}"
            raise InputError(self.name, f"{error}; try again, or {by_hand}") from None


def _allennlp(size: str, folder: str = "", weights: str = "weights") -> tuple[str, str]:
    """Returns the paths of the two files as AllenNLP names them, by the network's size."""
    stem = f"{folder or size}/elmo_{size}"
    return f"{stem}_options.json", f"{stem}_{weights}.hdf5"


_ORIGINAL = "2x4096_512_2048cnn_2xhighway"
_PT = "contributed/pt"
# Sizes and checksums were read in public sources; each checksum comes from a single third party.
MODELS = (
    PublishedModel(
        "english",
        "old and modern English prose",
        7_053_008,
        256,
        size=13_292_897,
        sha256="9e6585b29887627af7d5c7b99b30451044df8d161453dcf50ceed73ba5b80464",
        license="CC BY-SA 4.0",
        tokenizer="penn",
    ),
    PublishedModel(
        "english-ner",
        "persons, places, organizations",
        1_000_564,
        256,
        size=2_225_859,
        sha256="c535a5198ccd9fdd80ac3bc791804dfb4aefdb37ed047d3da3bce184c1a4c31e",
        license="CC BY-SA 4.0",
        task="ner",
    ),
    PublishedModel(
        "small",
        _NEWS,
        13_593_296,
        256,
        *_allennlp("2x1024_128_2048cnn_1xhighway"),
        size=54_402_456,
        sha256="747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229",
    ),
    PublishedModel("medium", _NEWS, 28_027_728, 512, *_allennlp("2x2048_256_2048cnn_1xhighway")),
    PublishedModel(
        "original",
        _NEWS,
        93_600_848,
        1024,
        *_allennlp(_ORIGINAL),
        size=374_434_792,
        sha256="a6b92b9ccbb13fe489faacd2221c795d4bebe84b75f8aded9d85ea464fa5c994",
    ),
    PublishedModel(
        "original-5.5B", "Wikipedia and news, 5.5 G tokens", 93_600_848, 1024, *_allennlp(f"{_ORIGINAL}_5.5B")
    ),
    PublishedModel(
        "pubmed", "PubMed", 93_600_848, 1024, *_allennlp(_ORIGINAL, "contributed/pubmed", "weights_PubMed_only")
    ),
    PublishedModel(
        "pt-wikipedia",
        "Wikipedia",
        93_600_848,
        1024,
        f"{_PT}/wikipedia/options.json",
        f"{_PT}/wikipedia/elmo_pt_weights.hdf5",
        language="Portuguese",
    ),
    PublishedModel(
        "pt-brwac",
        "brWaC, a corpus of web pages",
        93_600_848,
        1024,
        f"{_PT}/brwac/options.json",
        f"{_PT}/brwac/elmo_pt_weights_dgx1.hdf5",
        language="Portuguese",
    ),
)


def home() -> pathlib.Path:
    """Returns the folder of all models: `$ELMO_TF_HOME`, or `elmo_tf` in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = pathlib.Path(os.environ.get(HOME_VARIABLE) or f"{cache}/elmo_tf")
    try:
        return folder.expanduser()
    except RuntimeError:  # neither HOME nor a user entry, as in some containers
        raise InputError(HOME_VARIABLE, "not set, and there is no home folder; set it to a folder for models") from None


def is_name(value: object) -> bool:
    """Whether `value` is the name of a model in the table."""
    return isinstance(value, str) and value in {model.name for model in MODELS}


def is_hub_address(value: object) -> bool:
    """Whether `value` is an address on Hugging Face's hub, which `elmo_tf.published.hub` fetches."""
    return isinstance(value, str) and value.startswith(HUB_SCHEME)


def is_system(value: object) -> bool:
    """Whether `value` is the name of a trained system, which has no vectors."""
    return is_name(value) and bool(find(str(value)).task)


def find(name: str) -> PublishedModel:
    """Returns the model called `name`; raises `InputError`, listing known names, if not found."""
    for model in MODELS:
        if model.name == name:
            return model
    raise InputError(name, f"no model of this name{suggested(name)} (expected {expected_names()})")


def expected_names() -> str:
    """Returns the `expected` part of an error about an unknown model: the names of those that give vectors."""
    return f"one of the models {', '.join(model.name for model in MODELS if not model.task)}"


def suggested(name: object) -> str:
    """Returns what an error about an unknown name suggests: a similar name, if any."""
    return suggestion(str(name), [model.name for model in MODELS])
