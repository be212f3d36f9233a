"""Which parts of a held-out text a training evaluates."""

import hashlib
from typing import NamedTuple

from elmo_tf.config import Config, TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.records.record_folder import Records


class Part(NamedTuple):
    """The first windows of a held-out text.

    Perplexities can be compared if they have the same `id`: it depends on the text, on the number of windows, and on
    how the text is divided into streams and windows.
    """

    id: str
    windows: int | None  # None: the whole text


def parts(records: Records, config: TrainConfig) -> list[Part]:
    """Returns the part that each evaluation takes and, unless it is the same, the whole text, which the last one adds.

    Args:
        records: the held-out text.
        config: `eval_tokens`, rounded up to windows of `batch_size` streams of `unroll_steps` tokens, is the part.
    """
    shape = config.batch_size, config.unroll_steps
    whole = Part(text_id(records, *shape), None)
    tokens_per_window = config.batch_size * config.unroll_steps
    windows = -(-config.eval_tokens // tokens_per_window)
    if 0 < windows * tokens_per_window < num_tokens(records):
        return [Part(text_id(records, windows, *shape), windows), whole]
    return [whole]


def num_tokens(records: Records) -> int:
    """Returns how many tokens each direction predicts in a text: its words, and a boundary for each sentence."""
    return records.info["tokens"] + records.info["sentences"]


def text_id(records: Records, *more: int) -> str:
    """Returns a checksum of the text of `records`, and of what else is given."""
    shards = [shard["sha256"] for shard in records.info["shards"]]
    return hashlib.sha256(" ".join([*shards, *map(str, more)]).encode()).hexdigest()


def check_patience(config: Config, heldout: object | None) -> None:
    """Raises `InputError` if `train.patience` is set and there is no held-out text."""
    if config.train.patience and heldout is None:
        raise InputError("train.patience", "`heldout` with it", "none")
