"""Globs for files on this machine. Each folder is entered once, so links neither repeat files nor loop."""

import collections
import glob
import os
from collections.abc import Iterable, Iterator


def match(pattern: str, skipped: set[str]) -> Iterator[str]:
    """Yields the files that a path or glob matches, and every file in the folders that it matches, at any depth.

    `**` stands for folders of any depth. Names that begin with a dot match only where the pattern contains the dot.
    Folders that were already entered by another path are added to `skipped`.
    """
    matched = [pattern] if os.path.exists(pattern) else list(_glob(pattern, skipped))
    yield from filter(os.path.isfile, matched)
    for _, files in _walk(filter(os.path.isdir, matched), skipped):
        yield from files


def _glob(pattern: str, skipped: set[str]) -> Iterator[str]:
    """Like `glob.iglob`, which follows links to a parent folder until the operating system refuses."""
    names = pattern.split(os.sep)
    if "**" not in names:
        yield from glob.iglob(pattern)
        return
    depth = names.index("**")
    rest = names[depth + 1 :]
    head = os.sep.join([*names[:depth], ""])
    for folder, files in _walk(glob.iglob(head) if head else [os.curdir], skipped):
        if rest:
            yield from _glob(os.path.join(glob.escape(folder), *rest), skipped)
        else:
            yield from files


def _walk(roots: Iterable[str], skipped: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields each folder at or below the roots and the files directly in it, without hidden ones; links come last."""
    seen: dict[tuple[int, int], str] = {}  # device and inode -> path
    folders = collections.deque(sorted(roots, key=lambda root: os.path.islink(root.rstrip(os.sep))))
    while folders:
        folder = folders.popleft()
        try:
            status, entries = os.stat(folder), list(os.scandir(folder))
        except OSError:  # deleted meanwhile, or no permission; `glob` skips it as well
            continue
        path = os.path.abspath(folder)
        if (earlier := seen.setdefault((status.st_dev, status.st_ino), path)) is not path:
            if earlier != path:
                skipped.add(path)
            continue
        visible = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
        yield folder, [entry.path for entry in visible if os.path.isfile(entry)]
        for entry in visible:
            if os.path.isdir(entry):  # `entry.is_dir` raises for a link to itself
                (folders.append if entry.is_symlink() else folders.appendleft)(entry.path)
