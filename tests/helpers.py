"""What several tests need: a micro network and a records folder of a few sentences."""

import contextlib
import functools
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorboard import default, program
from tensorboard.plugins.hparams import metadata as hparams_metadata

from elmo_tf.config import CharCNNConfig, Config, LSTMConfig, ModelConfig, TrainConfig
from elmo_tf.records import record_folder, wire
from elmo_tf.text import char_ids
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir, new_workdir, open_workdir

ROOT = pathlib.Path(__file__).parents[1]

# Everything that the presets have, in a few thousand parameters.
MICRO = ModelConfig(
    CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 6), (3, 8)), num_highway=2),
    LSTMConfig(units=24, projection_dim=8, num_layers=2),
)

# For graphs of which the network is the smaller part: they are built in half of the time.
ONE_LAYER = ModelConfig(
    CharCNNConfig(embedding_dim=4, filters=((1, 4),), num_highway=0),
    LSTMConfig(units=8, projection_dim=4, num_layers=1),
)

# Nothing depends on timing, so that each run writes the same files.
_RECIPE = TrainConfig(
    batch_size=2, unroll_steps=5, num_sampled=4, checkpoint_steps=100, eval_tokens=0, log_steps=2, look_steps=0
)
MICRO_CONFIG = Config(MICRO, _RECIPE)


def new_untrained(path: pathlib.Path, model: ModelConfig, words: vocabulary_lib.Vocabulary | None = None) -> Workdir:
    """Makes a workdir with a checkpoint of random weights."""
    with new_workdir(path, Config(model, _RECIPE), words) as workdir:
        checkpoints.save(workdir, workdir.new_bilm(), None, Progress(0))
    return open_workdir(path)


def slow(*values: object):
    """Values of a parametrized test that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


@functools.cache
def _has_package_index() -> bool:
    command = (sys.executable, "-m", "pip", "install", "--retries", "0", "--dry-run", "--ignore-installed", "six")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def require_package_index() -> None:
    """Skips a test where pip cannot fetch packages; whether they can be installed is the test's own matter."""
    if not _has_package_index():
        pytest.skip("needs a package index")


def run_python(
    *arguments: object, check: bool = True, env: dict[str, str | None] | None = None, **options
) -> subprocess.CompletedProcess:
    """Runs Python in a process of its own, in the root of this checkout or in `cwd`.

    `env` is added to this process's variables; those that are None there are left out.
    """
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | (env or {})
    environment = {name: value for name, value in variables.items() if value is not None}
    options = {"capture_output": True, "text": True, "cwd": ROOT} | options
    return subprocess.run([sys.executable, *map(str, arguments)], check=check, env=environment, **options)


def descendants(pid: int) -> list[int]:
    """Returns the ids of a process's children, their children and so on."""
    children: list[int] = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        # Threads may end meanwhile.
        with contextlib.suppress(OSError):
            children.extend(map(int, path.read_text().split()))
    return children + [pid for child in children for pid in descendants(child)]


def char_ids_of(window, direction: str) -> np.ndarray:
    """Returns the character ids of a window's inputs, int32 `(batch_size, unroll_steps, max_chars_per_token)`."""
    return window.char_ids[getattr(window, f"{direction}_words")]


def write_records(
    folder: str | os.PathLike, sentences: list[str], vocabulary: list[str] | None = None, num_shards: int = 2
) -> record_folder.Records:
    """Writes a finished records folder and opens it.

    Args:
        folder: where; made if it is not there.
        sentences: words between spaces; consecutive ones share a shard.
        vocabulary: words after the special tokens; None: all of the sentences', by count.
        num_shards: TFRecord files.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    split = [sentence.encode().split() for sentence in sentences]
    tokens = [token for sentence in split for token in sentence]
    if vocabulary is None:
        words = vocabulary_lib.from_counts([(token, tokens.count(token)) for token in set(tokens)])
    else:
        words = vocabulary_lib.Vocabulary([*vocabulary_lib.SPECIAL_TOKENS, *(word.encode() for word in vocabulary)])
    (folder / record_folder.VOCABULARY_FILE).write_bytes(words.to_bytes())
    shards = []
    for number, rows in enumerate(np.array_split(np.arange(len(split)), num_shards)):
        content = b"".join(wire.frame(example(split[row], words)) for row in rows)
        name = record_folder.shard_name(number, num_shards)
        (folder / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        shards.append({"name": name, "sentences": len(rows), "bytes": len(content), "sha256": digest})
    info = {
        "format_version": record_folder.FORMAT_VERSION,
        "sentences": len(split),
        "tokens": len(tokens),
        "max_chars_per_token": char_ids.MAX_CHARS_PER_TOKEN,
        "vocabulary": {"size": len(words), "sha256": words.sha256()},
        "shards": shards,
    }
    (folder / record_folder.INFO_FILE).write_text(json.dumps(info))
    (folder / record_folder.MARKER_FILE).touch()
    return record_folder.open_folder(folder)


def example(tokens: list[bytes], words: vocabulary_lib.Vocabulary) -> bytes:
    """Returns a sentence as the record that preprocessing makes of it."""
    cut = [token[: char_ids.MAX_CHARS_PER_TOKEN - char_ids.NUM_MARKS] for token in tokens]
    ids = [vocabulary_lib.BEGIN_ID, *words.ids(tokens), vocabulary_lib.END_ID]
    return wire.encode_example(b"".join(map(wire.varint, ids)), b"".join(cut), bytes(map(len, cut)))


def sentences_of(folder: record_folder.Records) -> list[tuple[list[int], list[bytes]]]:
    """Returns token ids and stored words of each sentence in a folder, as TensorFlow reads it."""
    sentences = []
    for record in tf.data.TFRecordDataset(list(map(str, folder.shards))).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        text, lengths = (feature[name].bytes_list.value[0] for name in ("char_ids", "char_lengths"))
        ranges = itertools.pairwise(itertools.accumulate(lengths, initial=0))
        sentences.append((list(feature["token_ids"].int64_list.value), [text[start:end] for start, end in ranges]))
    return sentences


def batch_char_ids(sentences: list[list[bytes]], max_length: int | None = None) -> np.ndarray:
    """Returns sentences as a batch of character ids, int32 `(batch, max_length, 50)`, padded with 0."""
    if max_length is None:
        max_length = max(map(len, sentences))
    ids = np.zeros((len(sentences), max_length, char_ids.MAX_CHARS_PER_TOKEN), np.int32)
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence)] = char_ids.encode_tokens(sentence)
    return ids


def tensorboard(logdir: pathlib.Path) -> str:
    """Starts TensorBoard in this process, on loopback, and returns its address."""
    board = program.TensorBoard(plugins=default.get_plugins())
    board.configure(argv=["", "--logdir", str(logdir), "--port", "0", "--host", "127.0.0.1", "--load_fast", "false"])
    return board.launch()


def answered(address: str, is_complete: Callable[[Any], bool]) -> Any:
    """Returns what TensorBoard answers at an address as JSON, once it has read the files."""
    for _ in range(60):
        with urllib.request.urlopen(address) as answer:
            content = json.load(answer)
        if is_complete(content):
            break
        time.sleep(0.5)
    return content


def hparams_of(run: pathlib.Path) -> dict[str, object]:
    """Returns the hyperparameters in the event files of a run, as TensorBoard's HParams read them."""
    for file in run.glob("events.*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if value.tag == hparams_metadata.SESSION_START_INFO_TAG:
                    start = hparams_metadata.parse_session_start_info_plugin_data(value.metadata.plugin_data.content)
                    return {name: getattr(kind, kind.WhichOneof("kind")) for name, kind in start.hparams.items()}
    return {}


def flip(path: pathlib.Path) -> None:
    """Changes one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def two_cpus() -> tf.distribute.Strategy:
    """Returns a strategy with two replicas, on the two logical CPUs of `conftest.py`.

    Not the default reduction: TensorFlow gives the collectives of every strategy of a process the same keys.
    """
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice())
