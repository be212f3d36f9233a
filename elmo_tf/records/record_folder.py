"""The folder that preprocessing writes: TFRecord shards, `vocab.txt`, `info.json` and a marker.

One `tf.train.Example` per sentence: `token_ids` (int64 list, with `<S>` and `</S>`), `char_ids` (bytes: the bytes of
each inner token, end to end) and `char_lengths` (bytes: a uint8 per token). Any TFRecord reader can read the shards.
"""

import hashlib
import os
import pathlib
from typing import Annotated, NamedTuple

import msgspec

from elmo_tf.errors import InputError
from elmo_tf.files import intact, json_file
from elmo_tf.files.json_file import Count
from elmo_tf.records import wire
from elmo_tf.text import vocabulary as vocabulary_lib

FORMAT_VERSION = 1
INFO_FILE = "info.json"
VOCABULARY_FILE = "vocab.txt"
MARKER_FILE = "_SUCCESS"  # written last: a folder without it is unfinished
# Matches the names from `shard_name`.
ShardName = Annotated[str, msgspec.Meta(pattern=r"\Ashard-[0-9]+-of-[0-9]+\.tfrecord\Z")]
_Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class ShardInfo(msgspec.Struct, frozen=True):
    """A shard in `info.json`."""

    name: ShardName
    sentences: Count
    bytes: Count
    sha256: _Sha256


class VocabularyInfo(msgspec.Struct, frozen=True):
    """The vocabulary in `info.json`."""

    sha256: _Sha256


class Info(msgspec.Struct, frozen=True):
    """The part of `info.json` that readers use; the rest is for people."""

    format_version: Annotated[int, msgspec.Meta(ge=FORMAT_VERSION, le=FORMAT_VERSION)]
    sentences: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    tokens: Count
    max_chars_per_token: Annotated[int, msgspec.Meta(ge=3, le=257)]
    vocabulary: VocabularyInfo
    shards: list[ShardInfo]
    tokenizer: str = "whitespace"


class Records(NamedTuple):
    """A finished folder."""

    path: pathlib.Path
    info: Info
    vocabulary: vocabulary_lib.Vocabulary

    @property
    def shards(self) -> list[pathlib.Path]:
        """The TFRecord files, in order."""
        return [self.path / shard.name for shard in self.info.shards]

    @property
    def num_tokens(self) -> int:
        """The tokens that each direction predicts in an epoch: the words, and a boundary for each sentence."""
        return self.info.tokens + self.info.sentences

    def text_id(self, *numbers: int) -> str:
        """Returns a checksum of the text and of the given numbers."""
        digests = [shard.sha256 for shard in self.info.shards]
        return hashlib.sha256(" ".join([*digests, *map(str, numbers)]).encode()).hexdigest()


def shard_name(number: int, count: int) -> str:
    """Returns the file name of shard `number` of `count`."""
    return f"shard-{number:05d}-of-{count:05d}.tfrecord"


def is_record_file(name: str) -> bool:
    """Whether `name` is a name in a folder of records, other than the marker."""
    return name in (INFO_FILE, VOCABULARY_FILE) or (name.startswith("shard-") and name.endswith(".tfrecord"))


def open_folder(path: str | os.PathLike) -> Records:
    """Returns the finished folder at `path`, after checks of its marker, `info.json`, vocabulary and shard sizes.

    Raises:
        InputError: if it is not a finished folder of records, or a file has changed.
    """
    folder = pathlib.Path(path)
    if not (folder / MARKER_FILE).is_file():
        unfinished = f"not a finished folder of elmo-tf preprocess: it has no {MARKER_FILE} marker"
        raise InputError(str(folder), unfinished if folder.exists() else "no such folder")
    file = folder / INFO_FILE
    info = json_file.read(file, Info)
    in_shards = sum(shard.sentences for shard in info.shards)
    if in_shards != info.sentences:
        raise InputError(str(file), f"the shards add up to {in_shards} sentences, `sentences` says {info.sentences}")
    source = folder / VOCABULARY_FILE
    vocabulary = vocabulary_lib.read(source)
    if vocabulary.sha256() != info.vocabulary.sha256:
        raise InputError(str(source), f"its checksum differs from {INFO_FILE}")
    records = Records(folder.absolute(), info, vocabulary)  # the current folder may change
    for shard, described in zip(records.shards, info.shards, strict=True):
        intact.check_regular(shard)
        if (size := shard.stat().st_size) != described.bytes:
            raise InputError(str(shard), f"is {size:,} bytes, {INFO_FILE} says {described.bytes:,}")
    return records


def read_shard(path: str | os.PathLike) -> list[bytes]:
    """Returns the records of a TFRecord file, their checksums verified; raises `InputError` if it is damaged."""
    try:
        with open(path, "rb") as file:
            return list(wire.read_frames(file))
    except wire.DamagedError as error:
        raise InputError(str(path), f"damaged: {error}") from None
