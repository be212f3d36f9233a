"""What the jobs' reports share: irregular text, sizes, versions of the software."""

import collections
import platform
from collections.abc import Iterable, Mapping
from typing import Any

import apache_beam as beam

import elmo_tf
from elmo_tf.files import json_file


def versions() -> dict[str, str]:
    """Returns the versions of the software."""
    return {"elmo_tf": elmo_tf.__version__, "apache_beam": beam.__version__, "python": platform.python_version()}


def info_file(info: Mapping[str, Any]) -> bytes:
    """Returns the content of `info.json`."""
    return json_file.dumps(info, indent=1).encode() + b"\n"


def irregular(counts: Iterable[Mapping[str, int]], rules: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Returns how often each of the `rules` for irregular text applied in all tasks, as JSON."""
    totals = sum(map(collections.Counter, counts), collections.Counter[str]())
    return {name: {"count": totals[name], "rule": rule} for name, rule in rules.items()}


def describe_irregular(rules: dict[str, dict[str, Any]], in_lines: bool = True) -> str:
    """Returns a text about irregular input, with the rules that applied in lines of their own or in one."""
    applied = [
        f"{name.replace('_', ' ')}: {rule['count']:,}, {rule['rule']}" for name, rule in rules.items() if rule["count"]
    ]
    if in_lines and applied:
        return "\n  ".join(["irregular:", *applied])
    return f"irregular: {'; '.join(applied) or 'nothing'}"


def megabytes(size: int) -> str:
    """Returns a number of bytes as megabytes or kilobytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
