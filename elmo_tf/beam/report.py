"""Shared by the jobs' reports: irregular text, sizes, software versions."""

import collections
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam

import elmo_tf
from elmo_tf.corpus import corpora
from elmo_tf.errors import printable
from elmo_tf.files import json_file

MAX_NAMED = 3  # files, for each rule

Irregular = dict[str, collections.Counter[str]]  # for each file with irregular text, how often each rule applied


def versions() -> dict[str, str]:
    """Returns the versions of the software."""
    return {"elmo_tf": elmo_tf.__version__, "apache_beam": beam.__version__, "python": platform.python_version()}


def info_file(info: Mapping[str, Any]) -> bytes:
    """Returns the content of `info.json`."""
    return json_file.dumps(info, indent=1).encode() + b"\n"


def irregular(tasks: Iterable[Irregular], rules: dict[str, str], paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns how often each of the `rules` for irregular text applied, in all and in its first files, as JSON.

    `paths` are all files of the text, in its order.
    """
    counts: Irregular = collections.defaultdict(collections.Counter)
    for task in tasks:
        for path, applied in task.items():
            counts[path].update(applied)
    names = dict(zip(paths, corpora.short_names(paths), strict=True))
    described = {}
    for name, rule in rules.items():
        files = {names[path]: counts[path][name] for path in paths if path in counts and counts[path][name]}
        first = dict(list(files.items())[:MAX_NAMED])
        described[name] = {"count": sum(files.values()), "rule": rule, "files": first}
    return described


def describe_irregular(rules: dict[str, dict[str, Any]], in_lines: bool = True) -> str:
    """Describes irregular input: the rules that applied, one per line or all in one line."""
    applied = [
        f"{name.replace('_', ' ')}: {rule['count']:,}, {rule['rule']}{_first_files(rule) if in_lines else ''}"
        for name, rule in rules.items()
        if rule["count"]
    ]
    if in_lines and applied:
        return "\n  ".join(["irregular:", *applied])
    return f"irregular: {'; '.join(applied) or 'nothing'}"


def _first_files(rule: dict[str, Any]) -> str:
    """Returns a line with the first files to which a rule applied, with counts."""
    files = [f"{printable(name)}: {count:,}" for name, count in rule["files"].items()]
    more = ["..."] if sum(rule["files"].values()) < rule["count"] else []
    return f"\n    {', '.join(files + more)}"


def megabytes(size: int) -> str:
    """Returns a number of bytes as megabytes or kilobytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
