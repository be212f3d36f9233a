"""The contents of `info.json`, which are the same for every run of the same command."""

import os
from collections.abc import Iterable
from typing import Any

from elmo_tf.beam.preprocess import shards
from elmo_tf.beam.preprocess.config import PreprocessConfig
from elmo_tf.beam.running import report
from elmo_tf.beam.running.journal import Result
from elmo_tf.beam.text import corpora, sentences
from elmo_tf.files.progress import counted
from elmo_tf.records import record_folder
from elmo_tf.text import char_ids, vocabulary

_ROWS = ("", "folder", "sentences", "tokens", "unknown", "cut at 48 bytes", "like <S> or </S>", "records")


def describe(
    config: PreprocessConfig,
    settings: sentences.Settings,
    corpus: list[corpora.TextFile],
    words: vocabulary.Vocabulary,
    types: int | None,
    read: Iterable[Result],
) -> dict[str, Any]:
    """Returns the part of `info.json` that both splits share.

    `types` is the number of distinct words of the training split, None if they were not counted; `read` are the results
    of the tasks that read the text.
    """
    return {
        "seed": settings.seed,
        "tokenizer": settings.tokenizer,
        "line": settings.line,
        "shuffled": config.shuffle,
        "max_chars_per_token": char_ids.MAX_CHARS_PER_TOKEN,
        "heldout_fraction": settings.heldout_fraction,
        "irregular": report.irregular(read, sentences.rules(settings)),
        "inputs": [{"name": os.path.basename(file.path), "bytes": file.size} for file in corpus],
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


def of_split(split: str, written: Iterable[shards.Statistics], about: dict[str, Any]) -> dict[str, Any]:
    """Returns the `info.json` of a split, given the statistics of all shards and what both splits share."""
    ours = sorted((shard for shard in written if shard.split == split), key=lambda shard: shard.number)
    described = [
        {
            "name": os.path.basename(shard.path),
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
    columns = [
        (
            split,
            # A name that is not UTF-8 has characters that a log file in UTF-8 cannot take.
            os.fsencode(folder).decode(errors="replace"),
            f"{one['sentences']:,}",
            f"{one['tokens']:,}",
            f"{one['unknown_tokens'] / one['tokens']:.2%}",
            f"{one['cut_tokens']:,} tokens",
            f"{one['reserved_tokens']:,} tokens",
            f"{report.megabytes(one['bytes'])}, {counted(len(one['shards']), 'file')}",
        )
        for (split, one), folder in zip(infos.items(), folders, strict=True)
    ]
    size = sum(file["bytes"] for file in first["inputs"])
    return "\n".join(
        [
            *report.table([*zip(_ROWS, *columns, strict=True)]),
            f"vocabulary: {words['size'] - len(vocabulary.SPECIAL_TOKENS):,} words{types}, and <S>, </S>, <UNK>",
            f"input: {counted(len(first['inputs']), 'file')}, {report.megabytes(size)}; "
            + report.describe_irregular(first["irregular"]),
            f"{total:,} tokens in {seconds:,.1f} s, {total / seconds:,.0f} tokens/s",
        ]
    )
