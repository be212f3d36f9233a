"""A workdir: the folder of a training.

WORKDIR/config.json                     the Config, and the tokenizer of the text
        vocab.txt                       the softmax's words; absent if there is no softmax
        checkpoints/step-00000500/      see `checkpoints` and `checkpoint_files`
        metrics.jsonl                   every step's losses, every evaluation; see `metrics_file`
        logs/                           TensorBoard
        .lock                           held by the run that trains here; see `files.lock`

TensorFlow is only imported to build a network.
"""

import contextlib
import dataclasses
import os
import pathlib
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.files import json_file, staging, stores
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.workdir import metrics_file

if TYPE_CHECKING:  # imports readers of records, which opening a model does not need
    from elmo_tf.model.fast import BiLM
    from elmo_tf.records.record_folder import Records

CONFIG_FILE = "config.json"
VOCABULARY_FILE = "vocab.txt"


@dataclasses.dataclass(frozen=True)
class Workdir:
    """A folder that `new_workdir` made; an `os.PathLike`."""

    path: pathlib.Path  # of the folder
    config: config_lib.Config  # of the model and its training
    vocabulary: vocabulary_lib.Vocabulary | None  # of the softmax; None: the model has none
    tokenizer: str = "whitespace"  # of the text that it was trained on

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def logs(self) -> pathlib.Path:
        """TensorBoard's log folder."""
        return self.path / "logs"

    @property
    def metrics(self) -> pathlib.Path:
        """The file of every step's losses and every evaluation."""
        return self.path / metrics_file.FILE

    def new_bilm(self, product_dtype: str = "float32", with_softmax: bool = True) -> "BiLM":
        """Returns a new network of this configuration; it has a softmax if there is a vocabulary.

        Raises:
            InputError: if the weights are larger than this machine's memory.
        """
        from elmo_tf.model.fast import BiLM  # noqa: PLC0415 - it imports TensorFlow

        vocab_size = len(self.vocabulary) if self.vocabulary and with_softmax else None
        check_memory(self.config, vocab_size, str(self.path / CONFIG_FILE))
        bilm = BiLM(self.config.model, vocab_size, product_dtype)
        if bilm.softmax is not None and self.config.train.initial_softmax == "log_uniform":
            bilm.softmax.start_log_uniform()
        return bilm

    def check_records(self, *texts: "Records | None") -> None:
        """Raises `InputError`, naming the folder, if the network cannot read one of the texts."""
        if self.vocabulary is None:
            raise InputError(str(self.path), "this model has no softmax; elmo-tf finetune adds one")
        needed = self.config.model.char_cnn.max_chars_per_token
        for records in filter(None, texts):
            if self.vocabulary.sha256() != records.vocabulary.sha256():
                # A new workdir will get the vocabulary of the first text.
                folders = (self.path, *(text.path for text in texts if text and text is not records))
                files = [folder / VOCABULARY_FILE for folder in folders]
                vocabulary = next((file for file in files if file.exists()), files[0])
                problem = (
                    f"these records have a different vocabulary, of {len(records.vocabulary):,} words; the model has "
                    f"{len(self.vocabulary):,}: use elmo-tf preprocess --vocab {shlex.quote(str(vocabulary))}"
                )
                raise InputError(str(records.path), problem)
            if records.info.max_chars_per_token < needed:
                characters = records.info.max_chars_per_token
                problem = f"these records have {characters} characters per token, but the model needs {needed}"
                raise InputError(str(records.path), problem)


@contextlib.contextmanager
def new_workdir(
    workdir: str | os.PathLike,
    config: config_lib.Config,
    vocabulary: vocabulary_lib.Vocabulary | None,
    tokenizer: str = "whitespace",
) -> Iterator[Workdir]:
    """Yields a new workdir to fill; it appears at `workdir` when the block ends without an error.

    Raises:
        InputError: if `workdir` is in use, or cannot be made.
    """
    staging.check_for_tensorflow(workdir)
    with staging.new_folder(workdir) as folder:
        new = Workdir(folder, config, vocabulary, tokenizer)
        (folder / CONFIG_FILE).write_bytes(_to_json(new))
        if vocabulary is not None:
            (folder / VOCABULARY_FILE).write_bytes(vocabulary.to_bytes())
        yield new


def check_memory(config: config_lib.Config, vocab_size: int | None, source: str = "config") -> None:
    """Raises `InputError`, naming `source`, if the weights alone are larger than this machine's memory."""
    count = config.model.num_parameters(vocab_size)
    needed, memory = 4 * count, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # bytes
    if needed > memory:
        sizes = f"{needed / 1e9:,.1f} GB, and this machine has {memory / 1e9:,.1f} GB of memory"
        raise InputError(source, f"the model is too large: its {count:,} parameters take {sizes}")


def is_workdir(path: str | os.PathLike) -> bool:
    """Whether there is a workdir at `path`."""
    return (pathlib.Path(path) / CONFIG_FILE).is_file()


def update_config(workdir: Workdir) -> None:
    """Replaces `config.json`, atomically, if the configuration or the tokenizer has changed."""
    file, content = workdir.path / CONFIG_FILE, _to_json(workdir)
    if file.read_bytes() != content:
        stores.write(file, content)


def open_workdir(workdir: str | os.PathLike) -> Workdir:
    """Opens an existing workdir; raises `InputError` if there is none, or one of its files is damaged."""
    folder = pathlib.Path(workdir)
    staging.check_for_tensorflow(folder)
    if not is_workdir(folder):
        problem = f"not a workdir of elmo-tf train: it has no {CONFIG_FILE}" if folder.exists() else "no such folder"
        raise InputError(str(workdir), problem)
    file = folder / CONFIG_FILE
    values = json_file.read(file, dict)
    if isinstance(task := values.get("task"), str) and "recipe" in values:
        name = task if task.isidentifier() else "NAME"
        problem = (
            f"a workdir of `elmo-tf task {name}`; use `elmo-tf task {name} predict` or `elmo-tf task {name} export`"
        )
        raise InputError(str(workdir), problem)
    tokenizer = values.pop("tokenizer", None)
    config = config_lib.from_dict(values, source=str(file))
    config_lib.check_complete(values, str(file))
    if tokenizer is None:
        raise InputError(str(file), "no key tokenizer")
    json_file.convert(tokenizer, config_lib.Tokenizer, f"{file}: tokenizer")
    source = folder / VOCABULARY_FILE
    vocabulary = vocabulary_lib.read(source) if source.exists() else None
    return Workdir(folder.absolute(), config, vocabulary, tokenizer)  # the current folder may change


def _to_json(workdir: Workdir) -> bytes:
    values = config_lib.to_dict(workdir.config) | {"tokenizer": workdir.tokenizer}
    return (json_file.dumps(values, indent=2) + "\n").encode()
