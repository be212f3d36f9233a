"""The contents of `info.json`, which are the same for every run of the same command."""

import collections
import os
from collections.abc import Iterable
from typing import Any

from elmo_tf.files.progress import counted
from elmo_tf.pipelines.preprocess import shards
from elmo_tf.pipelines.preprocess.config import PreprocessConfig
from elmo_tf.pipelines.running import report
from elmo_tf.pipelines.text import corpora, sentences
from elmo_tf.records import record_folder
from elmo_tf.text import char_ids, vocabulary


def describe(
    config: PreprocessConfig,
    settings: sentences.Settings,
    corpus: list[corpora.TextFile],
    words: vocabulary.Vocabulary,
    types: int | None,
    irregular: Iterable[dict[str, int]],
) -> dict[str, Any]:
    """Returns the part of `info.json` that both splits share.

    Args:
        config: of the job.
        settings: how text became sentences.
        corpus: the files that were read.
        words: the vocabulary.
        types: distinct words of the training split; None if they were not counted.
        irregular: for each task, how often each of `lines.RULES` applied.
    """
    totals = collections.Counter()
    for counts in irregular:
        totals.update(counts)
    return {
        "seed": settings.seed,
        "tokenizer": settings.tokenizer,
        "line": settings.line,
        "shuffled": config.shuffle,
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
            "source": os.path.basename(config.vocab) if config.vocab else "counted",
            "min_count": None if config.vocab else config.min_count or 1,
            "max_vocab": config.max_vocab,
        },
        "versions": report.versions(),
    }


def of_split(
    split: str, written: Iterable[shards.Statistics], about: dict[str, Any], num_shards: int
) -> dict[str, Any]:
    """Returns the `info.json` of a split, given the statistics of all shards and what both splits share."""
    ours = sorted((shard for shard in written if shard.split == split), key=lambda shard: shard.number)
    described = [
        {
            "name": record_folder.shard_name(shard.number, num_shards),
            **{name: shard.counts[name] for name in ("sentences", "tokens", "bytes")},
            "sha256": shard.sha256,
        }
        for shard in ours
    ]
    totals = {name: sum(shard.counts[name] for shard in ours) for name in shards.COUNTED}
    return {"format_version": record_folder.FORMAT_VERSION, "split": split, **totals, **about, "shards": described}


def summary(infos: dict[str, dict[str, Any]], folders: Iterable[str], seconds: float) -> str:
    """Returns the final report, given each split's `info.json` and folder, in the same order."""
    first = infos[sentences.TRAIN]
    words, total = first["vocabulary"], sum(one["tokens"] for one in infos.values())
    types = "" if words["types"] is None else f" of {words['types']:,} in the text"
    rows = [
        ("", *infos),
        # A name that is not UTF-8 has characters that a log file in UTF-8 cannot take.
        ("folder", *(os.fsencode(folder).decode(errors="replace") for folder in folders)),
        ("sentences", *(f"{one['sentences']:,}" for one in infos.values())),
        ("tokens", *(f"{one['tokens']:,}" for one in infos.values())),
        ("unknown", *(f"{one['unknown_tokens'] / one['tokens']:.2%}" for one in infos.values())),
        ("cut at 48 bytes", *(f"{one['cut_tokens']:,} tokens" for one in infos.values())),
        ("like <S> or </S>", *(f"{one['reserved_tokens']:,} tokens" for one in infos.values())),
        (
            "records",
            *(f"{report.megabytes(one['bytes'])}, {counted(len(one['shards']), 'file')}" for one in infos.values()),
        ),
    ]
    size = sum(file["bytes"] for file in first["inputs"])
    return "\n".join(
        [
            *report.table(rows),
            f"vocabulary: {words['size'] - len(vocabulary.SPECIAL_TOKENS):,} words{types}, and <S>, </S>, <UNK>",
            f"input: {counted(len(first['inputs']), 'file')}, {report.megabytes(size)}; "
            + report.describe_irregular(first["irregular"]),
            f"{total:,} tokens in {seconds:,.1f} s, {total / seconds:,.0f} tokens/s",
        ]
    )
