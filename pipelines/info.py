"""What `info.json` says of a folder of records: nothing that another run of the same command would say otherwise."""

import argparse
import collections
import os
import platform
from collections.abc import Iterable, Sequence, Sized
from typing import Any

import apache_beam as beam

import elmo_tf
from elmo_tf.data import char_ids, records, vocabulary
from pipelines import corpora, sentences, shards


def describe(
    arguments: argparse.Namespace,
    settings: sentences.Settings,
    corpus: list[corpora.TextFile],
    words: vocabulary.Vocabulary,
    types: int | None,
    irregular: Iterable[dict[str, int]],
) -> dict[str, Any]:
    """Returns the part of `info.json` that both splits share.

    Args:
        arguments: of the command.
        settings: what turned text into sentences.
        corpus: what was read.
        words: the vocabulary.
        types: distinct words of the training split; None if they were not counted.
        irregular: how often each of `lines.RULES` was applied, of each task.
    """
    totals = collections.Counter()
    for counts in irregular:
        totals.update(counts)
    return {
        "seed": settings.seed,
        "tokenizer": settings.tokenizer,
        "line": settings.line,
        "shuffled": arguments.shuffle,
        "max_chars_per_token": char_ids.MAX_CHARS_PER_TOKEN,
        "heldout_fraction": settings.heldout_fraction,
        "irregular": {name: {"count": totals[name], "rule": rule} for name, rule in sentences.rules(settings).items()},
        "inputs": [
            {
                "name": os.path.basename(file.path),
                "bytes": file.size,
                **({"members": file.members} if file.members else {}),
            }
            for file in corpus
        ],
        "vocabulary": {
            "size": len(words),
            "types": types,
            "sha256": words.sha256(),
            "source": os.path.basename(arguments.vocab) if arguments.vocab else "counted",
            "min_count": None if arguments.vocab else arguments.min_count or 1,
            "max_vocab": arguments.max_vocab,
        },
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Returns which software is at work."""
    return {
        "elmo_tf": elmo_tf.__version__,
        "apache_beam": beam.__version__,
        "python": platform.python_version(),
    }


def of_split(split: str, written: Iterable[dict[str, Any]], about: dict[str, Any], num_shards: int) -> dict[str, Any]:
    """Returns the contents of a split's `info.json`, given the statistics of all shards and what both splits share."""
    ours = sorted((shard for shard in written if shard["split"] == split), key=lambda shard: shard["number"])
    described = [
        {
            "name": records.shard_name(shard["number"], num_shards),
            **{name: shard[name] for name in ("sentences", "tokens", "bytes", "sha256")},
        }
        for shard in ours
    ]
    totals = {name: sum(shard[name] for shard in ours) for name in shards.COUNTED}
    return {"format_version": records.FORMAT_VERSION, "split": split, **totals, **about, "shards": described}


def summary(infos: dict[str, dict[str, Any]], folders: Iterable[str], seconds: float) -> str:
    """Returns the table that is shown at the end, given each split's `info.json` and folder, in the same order."""
    first = infos[sentences.TRAIN]
    words, total = first["vocabulary"], sum(one["tokens"] for one in infos.values())
    types = "" if words["types"] is None else f" of {words['types']:,} in the text"
    rows = [
        ("", *infos),
        ("folder", *folders),
        ("sentences", *(f"{one['sentences']:,}" for one in infos.values())),
        ("tokens", *(f"{one['tokens']:,}" for one in infos.values())),
        ("unknown", *(f"{one['unknown_tokens'] / one['tokens']:.2%}" for one in infos.values())),
        ("cut at 48 bytes", *(f"{one['cut_tokens']:,} tokens" for one in infos.values())),
        ("like <S> or </S>", *(f"{one['reserved_tokens']:,} tokens" for one in infos.values())),
        ("records", *(f"{megabytes(one['bytes'])}, {number(one['shards'], 'file')}" for one in infos.values())),
    ]
    size = sum(file["bytes"] for file in first["inputs"])
    return "\n".join(
        [
            *table(rows),
            f"vocabulary: {words['size'] - len(vocabulary.SPECIAL_TOKENS):,} words{types}, and <S>, </S>, <UNK>",
            f"input: {number(first['inputs'], 'file')}, {megabytes(size)}; {describe_irregular(first['irregular'])}",
            f"{total:,} tokens in {seconds:,.1f} s, {total / seconds:,.0f} tokens/s",
        ]
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as lines with columns of even widths."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def describe_irregular(found: dict[str, dict[str, Any]]) -> str:
    """Returns in words what was irregular: a line for each rule that was applied."""
    applied = [
        f"\n  {name.replace('_', ' ')}: {one['count']:,}, {one['rule']}" for name, one in found.items() if one["count"]
    ]
    return "irregular:" + ("".join(applied) or " nothing")


def number(things: Sized, noun: str) -> str:
    """Returns how many there are, in words."""
    return f"{len(things):,} {noun}{'s' * (len(things) != 1)}"


def megabytes(size: int) -> str:
    """Returns a number of bytes in words."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
