"""The description of the vectors, and the final report."""

import os
from typing import Any

from elmo_tf.beam import report
from elmo_tf.beam.embed import numbering
from elmo_tf.beam.embed.config import EmbedConfig
from elmo_tf.beam.embed.embed_task import Settings
from elmo_tf.corpus import sentences
from elmo_tf.display import table, with_count
from elmo_tf.errors import printable
from elmo_tf.records import record_folder, vector_files

_MAX_INPUTS_SHOWN = 10  # in the final report


def describe(
    config: EmbedConfig, settings: Settings, numbered: numbering.LineNumbers, sizes: dict[int, int], sha256: str
) -> dict[str, Any]:
    """Returns the contents of `info.json`, given the bytes of each shard and the model's checksum."""
    text = settings.text
    shards = [
        {
            "name": record_folder.shard_name(number, len(sizes)),
            "first_line": int(numbered.first_lines[number]),
            "lines": int(numbered.lines[number]),
            "tokens": int(numbered.tokens[number]),
            "bytes": size,
        }
        for number, size in sorted(sizes.items())
        if size
    ]
    return {
        "format_version": vector_files.FORMAT_VERSION,
        "layers": config.layers,
        "dtype": config.dtype,
        "precision": config.precision,
        "token_shape": settings.layout.token_shape,
        "lines": int(numbered.lines.sum()),
        "tokens": int(numbered.tokens.sum()),
        "model_sha256": sha256,
        "tokenizer": text.tokenizer,
        "line": text.line,
        **({"pool": config.pool} if config.pool else {}),
        **({"identifiers": True} if text.has_ids else {}),
        "irregular": numbered.irregular,
        "inputs": numbering.inputs(numbered),
        "versions": report.versions(),
        "shards": shards,
    }


def summary(info: dict[str, Any], output: str, seconds: float) -> str:
    """Returns the final report."""
    shards = info.get("shards", [])
    size = info.get("bytes") or sum(shard["bytes"] for shard in shards) or os.path.getsize(output)
    files = f", {with_count(len(shards), 'file')}" if shards else ""
    shape, pool = " x ".join(f"{length:,}" for length in info["token_shape"]), info.get("pool")
    unit = "line" if info["line"] == sentences.SENTENCE else "sentence"
    layers = info["layers"] if isinstance(info["layers"], str) else f"layer {info['layers']}"
    rows = [
        ("output", f"{printable(output)}: {report.megabytes(size)}{files}"),
        (f"{unit}s", f"{info['lines']:,}, numbered from 0"),
        ("tokens", f"{info['tokens']:,}"),
        (f"per {unit}" if pool else "per token", f"{pool or ''} {layers}: {shape}, {info['dtype']}".lstrip()),
    ]
    inputs = info["inputs"]
    if len(inputs) > 1:
        rows += [
            (f"from {unit}", f"{source['first_line']:,}: {printable(source['name'])}")
            for source in inputs[:_MAX_INPUTS_SHOWN]
        ]
    if len(inputs) > _MAX_INPUTS_SHOWN:
        rows.append(("", f"and {len(inputs) - _MAX_INPUTS_SHOWN:,} more files"))
    return "\n".join(
        [
            *table(rows),
            report.describe_irregular(info["irregular"]),
            f"{info['tokens']:,} tokens in {seconds:,.1f} s, {info['tokens'] / seconds:,.0f} tokens/s",
        ]
    )
