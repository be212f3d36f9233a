"""From files to a trained system in a workdir: what `elmo-tf task NAME train` does."""

import dataclasses
import hashlib
import logging
import math
import os
import pathlib
import re
import statistics
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from elmo_tf import config as config_lib
from elmo_tf import sources, tasks
from elmo_tf.bilm.packed import PackedBiLM
from elmo_tf.errors import InputError, renamed
from elmo_tf.files import json_file, lock
from elmo_tf.tasks import fitting, trained
from elmo_tf.tasks.judging import Judge
from elmo_tf.tasks.recipe import Recipe, chosen
from elmo_tf.tasks.system import Example, System
from elmo_tf.tasks.token_vectors import Tokens, TokenVectors, WordTable, encoded, word_table

_log = logging.getLogger("elmo_tf")


@dataclasses.dataclass(frozen=True)
class Data:
    """Examples to train on, to choose the epoch by, and to test on."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]
    whole: list[Example]  # those of the training data as they would be judged: sentences without their phrases


def train(
    task: str,
    train: str | os.PathLike,
    dev: str | os.PathLike,
    workdir: str | os.PathLike,
    test: str | os.PathLike | None = None,
    elmo: sources.Path | None = None,
    glove: str | os.PathLike | None = None,
    fraction: float = 1.0,
    seeds: int = 1,
    assignments: Sequence[str] = (),
) -> dict[str, Any]:
    """Trains a system, or resumes what a killed run left in `workdir`.

    Args:
        task: one of `elmo_tf.tasks.SYSTEMS`.
        train, dev, test: files in a format of the task. The best epoch is that of the highest score on `dev`.
        workdir: a folder for the trained system. Several seeds have folders `seed_N` in it.
        elmo: where the biLM comes from, as for `elmo_tf.ELMo`; None: a baseline without ELMo.
        glove: a text file of word vectors; None: vectors are learned.
        fraction: the part of the training data to use, the same for every seed.
        seeds: runs, with the seeds `fit.seed`, `fit.seed` + 1, ...
        assignments: `key=value` for the recipe; `recipe=small` is one for little data.

    Returns:
        `task`, `metric`, `score` (of `test`, without one of `dev`), `dev`, `test`, `train_examples`; of several seeds
        the mean of the scores, and each of them in `scores`.

    Raises:
        InputError: about one of the arguments.
    """
    if not 0 < fraction <= 1:
        raise InputError("fraction", "above 0, at most 1", fraction)
    if seeds < 1:
        raise InputError("seeds", "at least 1", seeds)
    kind = tasks.system_class(task)
    recipe = chosen(kind.recipes, assignments)
    data = _read(kind, recipe, {"train": train, "dev": dev, "test": test}, fraction)
    table = word_table(recipe, _texts(kind, data.whole), _texts(kind, [*data.dev, *data.test]), glove)
    bilm = None
    if elmo is not None and recipe.elmo.place != "none":
        with renamed(source="elmo"):
            bilm = sources.network(elmo)
    paths = {"train": train, "dev": dev, "test": test, "glove": glove, "elmo": elmo}
    about = {name: None if value is None else str(value) for name, value in paths.items()} | {"fraction": fraction}
    run = _Run(kind, data, table, bilm, about)
    folder = pathlib.Path(workdir)
    if seeds == 1:
        return run.train(recipe, folder)
    found = {}
    _check_several(folder)
    _make(folder)
    with renamed(folder="workdir"), lock.locked(folder):
        # Once more: another run may have begun there meanwhile.
        _check_several(folder)
        for number in range(seeds):
            seeded = dataclasses.replace(recipe, fit=dataclasses.replace(recipe.fit, seed=recipe.fit.seed + number))
            found[f"seed_{seeded.fit.seed}"] = run.train(seeded, folder / f"seed_{seeded.fit.seed}")
        results = _together(found)
        trained.write_json(folder / trained.SCORES, results)
    return results


def _read(kind: type[System], recipe: Recipe, paths: dict[str, Any], fraction: float) -> Data:
    """Returns the examples of the files that are given, of the training data a part."""
    found = {}
    for name, path in paths.items():
        items: list[Any] = []
        if path is not None:
            with renamed(path=name):
                items = kind.read(path, recipe)
        if name == "train":
            order = np.random.default_rng(0).permutation(len(items))
            items = [items[place] for place in sorted(order[: math.ceil(fraction * len(items))])]
            found["whole"] = kind.examples(items, training=False)
        found[name] = kind.examples(items, training=name == "train")
    _log.info("%s", ", ".join(f"{len(found[name]):,} examples of {name}" for name in paths if found[name]))
    if not found["train"]:
        raise InputError("train", "at least one example to train on", f"none: {paths['train']}")
    known = set(kind.labels_of(found["train"]))
    for name in ("dev", "test"):
        for label in sorted(set(kind.labels_of(found[name])) - known) if found[name] else ():
            _log.warning("warning: %s has the label %s, which the training data does not have", name, label)
    return Data(**found)


def _texts(kind: type[System], examples: Sequence[Example]) -> list[Tokens]:
    """Returns the examples' token sequences; one that several share, as the frames of a sentence do, is there once."""
    return list({id(tokens): tokens for one in examples for tokens in kind.texts(one)}.values())


class _Run:
    """What the runs of several seeds share."""

    def __init__(
        self, kind: type[System], data: Data, table: WordTable, bilm: PackedBiLM | None, about: dict[str, Any]
    ):
        self._kind, self._data, self._table, self._bilm, self._about = kind, data, table, bilm, about
        self._checksums = _checksums(data, table, bilm)
        self._known = None

    def train(self, recipe: Recipe, folder: pathlib.Path) -> dict[str, Any]:
        """Trains one system in its folder, or returns what it scored if it is complete."""
        system = self._kind(recipe, self._kind.labels_of(self._data.train))
        config = {
            "task": system.name,
            "recipe": config_lib.to_dict(recipe),
            "labels": system.labels,
            "data": self._about,
            "checksums": self._checksums,
        }
        _check(folder, config)
        _make(folder)
        with renamed(folder="workdir"), lock.locked(folder):
            # Once more: another run may have begun there meanwhile.
            _check(folder, config)
            if not (folder / trained.CONFIG).exists():
                trained.write_json(folder / trained.CONFIG, config)
            if (folder / trained.SCORES).exists():
                _log.info("already trained: %s", folder)
                (folder / fitting.FILE).unlink(missing_ok=True)
                return json_file.read(folder / trained.SCORES, json_file.Object({}), "workdir")
            keras.utils.set_random_seed(recipe.fit.seed)
            network = self._network(system, folder)
            history = fitting.fit(system, network, self._data.train, self._data.dev, folder)
            trained.save_network(network, folder)
            results = self._results(system, network, history)
            trained.write_json(folder / trained.SCORES, results)
            (folder / fitting.FILE).unlink(missing_ok=True)
        return results

    def _network(self, system: System, folder: pathlib.Path) -> keras.Model:
        vectors = TokenVectors(system.recipe, self._table, self._bilm)
        if vectors.elmo is not None and system.recipe.elmo.remember:
            if self._known is None:
                every = [*self._data.train, *self._data.dev, *self._data.test]
                vectors.elmo.remember((encoded(tokens) for one in every for tokens in system.texts(one)), folder)
                self._known = vectors.elmo.known_sentences
            vectors.elmo.known_sentences = self._known
        return system.network(vectors)

    def _results(self, system: System, network: keras.Model, history: fitting.History) -> dict[str, Any]:
        best = fitting.best_epoch(history, system.metric)
        dev, test = history[best]["dev"], None
        if self._data.test:
            test = Judge(system, network).scores(self._data.test)
        described = trained.described(system, dev if test is None else test)
        return {name: described[name] for name in ("task", "metric", "score")} | {
            "dev": dev,
            "test": test,
            "train_examples": len(self._data.train),
            "epochs": len(history),
            "best_epoch": best + 1,
            "seconds": round(sum(epoch["seconds"] for epoch in history)),
            "history": history,
        }


def _checksums(data: Data, table: WordTable, bilm: PackedBiLM | None) -> dict[str, str | None]:
    """Returns what says that a run's data are the same, wherever the files are."""
    parts = {name: map(_bytes, getattr(data, name)) for name in ("train", "dev", "test")}
    parts["words"] = [_bytes(table.words), table.vectors.tobytes()]
    if bilm is not None:
        parts["elmo"] = [np.asarray(one).tobytes() for one in bilm.weights]
    found = {}
    for name, pieces in parts.items():
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        found[name] = digest.hexdigest()
    return found | ({"elmo": None} if bilm is None else {})


def _bytes(value: Any) -> bytes:
    return repr(value).encode("utf-8", "surrogatepass")


def _check(folder: pathlib.Path, config: dict[str, Any]) -> None:
    """Checks that a folder has nothing, or an earlier state of the same run."""
    path = folder / trained.CONFIG
    if not path.exists():
        if _others(folder):
            raise InputError("workdir", "a new folder, or one of an earlier run", f"other files: {folder}")
        return
    wanted, there = (_flat(one) for one in (config, json_file.read(path, json_file.Object({}), "workdir")))
    # Where files are does not matter, what they say does.
    for name, value in wanted.items():
        if there.get(name) == value or (name.startswith("data.") and name != "data.fraction"):
            continue
        if name.startswith("checksums."):
            same = f"the same {name.removeprefix('checksums.')} as before"
            raise InputError("workdir", f"a new folder, or {same}", f"another content: {folder}")
        expected = f"a new folder, or one of a run with {name} = {value}"
        raise InputError("workdir", expected, f"{there.get(name)}: {folder}")


def _check_several(folder: pathlib.Path) -> None:
    """Checks that a folder has nothing but the runs of several seeds."""
    there = _others(folder)
    runs = {name for name in there if re.fullmatch(r"seed_\d+", name)}
    if there - runs - {trained.SCORES} or (trained.SCORES in there and not runs):
        raise InputError("workdir", "a new folder, or one of a run with several seeds", f"other files: {folder}")


def _others(folder: pathlib.Path) -> set[str]:
    """Returns the names in a folder, without those that begin with a dot: locks, and what a kill left half-written."""
    there = folder.iterdir() if folder.is_dir() else ()
    return {path.name for path in there if not path.name.startswith(".")}


def _make(folder: pathlib.Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("workdir", "a folder that can be made", f"{error.strerror}: {folder}") from None


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def _together(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the results of several seeds as one."""
    first = next(iter(found.values()))
    scores = {name: one["score"] for name, one in found.items()}
    metric = first["metric"]
    return {
        "task": first["task"],
        "metric": metric,
        "score": round(statistics.mean(scores.values()), 4),
        "deviation": round(statistics.stdev(scores.values()), 4),
        "scores": scores,
        "best": max(found, key=lambda name: found[name]["dev"][metric]),
        "train_examples": first["train_examples"],
        "best_epoch": round(statistics.mean(one["best_epoch"] for one in found.values()), 1),
        "seconds": sum(one["seconds"] for one in found.values()),
    }
