"""What `info.json` says of a folder of records: nothing that another run of the same command would say otherwise."""

import argparse
import collections
import os
import platform
from typing import Any

import apache_beam as beam

import elmo_tf
from elmo_tf.data import char_ids, records, vocabulary
from pipelines import corpora, sentences, shards


def describe(
    arguments: argparse.Namespace,
    settings: sentences.Settings,
    files: list[corpora.TextFile],
    words: vocabulary.Vocabulary,
) -> dict[str, Any]:
    """Returns the part of `info.json` that both splits share."""
    return {
        "seed": settings.seed,
        "tokenizer": settings.tokenizer,
        "max_chars_per_token": char_ids.MAX_CHARS_PER_TOKEN,
        "heldout_fraction": settings.heldout_fraction,
        "inputs": [{"name": os.path.basename(file.path), "bytes": file.size} for file in files],
        "vocabulary": {
            "size": len(words),
            "sha256": words.sha256(),
            "source": os.path.basename(arguments.vocab) if arguments.vocab else "counted",
            "min_count": None if arguments.vocab else arguments.min_count or 1,
            "max_vocab": arguments.max_vocab,
        },
        "versions": {
            "elmo_tf": elmo_tf.__version__,
            "apache_beam": beam.__version__,
            "python": platform.python_version(),
        },
    }


def of_split(split: str, results: list[dict[str, Any]], about: dict[str, Any], num_shards: int) -> dict[str, Any]:
    """Returns the contents of a split's `info.json`; `dropped` is what the whole input lost, in either split."""
    written = sorted(
        (shard for result in results for shard in result["shards"] if shard["split"] == split),
        key=lambda shard: shard["number"],
    )
    dropped = collections.Counter()
    for result in results:
        dropped.update(result["dropped"])
    described = [
        {
            "name": records.shard_name(shard["number"], num_shards),
            **{name: shard[name] for name in ("sentences", "tokens", "bytes", "sha256")},
        }
        for shard in written
    ]
    totals = {name: sum(shard[name] for shard in written) for name in shards.COUNTED}
    start = {"format_version": records.FORMAT_VERSION, "split": split}
    return {**start, **totals, "dropped": dict(sorted(dropped.items())), **about, "shards": described}
