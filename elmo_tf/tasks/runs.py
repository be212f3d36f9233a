"""From files to a trained system in a workdir: what `elmo-tf task NAME train` does."""

import dataclasses
import hashlib
import logging
import math
import os
import pathlib
import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from elmo_tf import config as config_lib
from elmo_tf import sources
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.display import with_count
from elmo_tf.errors import InputError
from elmo_tf.files import json_file, lock, staging
from elmo_tf.files.pipes import copied_if_pipe
from elmo_tf.model.cached_layers import CachedLayers
from elmo_tf.tasks import fitting, systems, trained
from elmo_tf.tasks.batching import Predictor
from elmo_tf.tasks.recipe import Recipe, chosen
from elmo_tf.tasks.system import Example, System
from elmo_tf.tasks.token_vectors import TokenVectors, WordTable, encoded, word_table

_log = logging.getLogger("elmo_tf")

# Examples by the name of their file: `train`, `dev`, `test`; `train_unfiltered`: all training items.
_Data = dict[str, list[Example]]


def train(
    task: str,
    train: str | os.PathLike,
    dev: str | os.PathLike,
    workdir: str | os.PathLike,
    test: str | os.PathLike | None = None,
    elmo: sources.Path | keras.layers.Layer | None = None,
    glove: str | os.PathLike | Sequence[str | os.PathLike] | None = None,
    fraction: float = 1.0,
    seeds: int = 1,
    assignments: Sequence[str] = (),
    reading: Reading = DEFAULT,
) -> dict[str, Any]:
    """Trains a system, or resumes an interrupted run.

    Args:
        task: a name in `systems.SYSTEMS`.
        train: a file in a format of the task.
        dev: another one; the best epoch has the highest score on it.
        workdir: a folder for the trained system. Several seeds have folders `seed_N` in it.
        test: another file, scored once at the end.
        elmo: the biLM, as for `elmo_tf.ELMo`; or another model of tokens, a Keras layer as for `MixedLayers`; None: a
            baseline without either.
        glove: a text file of word vectors, or several, whose vectors stand side by side; None: vectors are learned.
        fraction: the part of the training data to use, the same for every seed.
        seeds: number of runs, with the seeds `fit.seed`, `fit.seed` + 1, ...
        assignments: `key=value` for the recipe; `recipe=small` chooses the recipe for little data.
        reading: how files are read. Running text is split by the tokenizer of `elmo`, unless that is `whitespace`.

    Returns:
        `task`, `metric`, `score` (on `test` if given, else on `dev`), `dev`, `test`, `train_examples`, and `glove`, of
        each file of word vectors its name, its numbers and the words found in it; for several seeds the mean of the
        scores, and each of them in `scores`.

    Raises:
        InputError: naming the file, the folder or the argument that cannot be used.
    """
    if not 0 < fraction <= 1:
        raise InputError("fraction", "above 0, at most 1", fraction)
    if seeds < 1:
        raise InputError("seeds", "at least 1", seeds)
    kind, folder = systems.system_class(task), pathlib.Path(workdir)
    recipe = chosen(kind.recipes, assignments)
    elmo = None if recipe.elmo.place == "none" else elmo
    if isinstance(elmo, str | os.PathLike) and (tokenizer := sources.find(elmo).tokenizer) != "whitespace":
        reading = dataclasses.replace(reading, tokenizer=tokenizer)
    paths = {"train": train, "dev": dev, "test": test}
    system = kind(recipe, reading=reading)
    data = _read(system, paths, fraction)
    # Distinct token sequences: the frames of a sentence share theirs.
    texts = {
        name: list({id(tokens): tokens for example in examples for tokens in system.texts(example)}.values())
        for name, examples in data.items()
    }
    gloves = [glove] if isinstance(glove, str | os.PathLike) else list(glove or ())
    table = word_table(recipe, texts["train_unfiltered"], texts["dev"] + texts["test"], gloves, reading.strict)
    for file in table.files:
        _log.info("%s: vectors of %d numbers for %s", file["file"], file["dim"], with_count(file["words"], "word"))
    bilm = elmo if elmo is None or isinstance(elmo, keras.layers.Layer) else sources.network(elmo)
    data_paths = {name: None if path is None else str(path) for name, path in (paths | {"elmo": elmo}).items()}
    runs = _Runs(system, data, table, bilm, data_paths | {"glove": [*map(str, gloves)], "fraction": fraction})
    return runs.train(recipe, folder) if seeds == 1 else runs.train_several(recipe, folder, seeds)


def _read(system: System, paths: dict[str, Any], fraction: float) -> _Data:
    """Returns the examples of the given files, with only a fraction of the training data."""
    data: _Data = {}
    for name, path in paths.items():
        items = []
        if path is not None:
            with copied_if_pipe(path) as file:
                items = system.read(file)
        if name == "train":
            order = np.random.default_rng(0).permutation(len(items))
            items = [items[index] for index in sorted(order[: math.ceil(fraction * len(items))])]
            data["train_unfiltered"] = system.examples(items, training=False)
        data[name] = system.examples(items, training=name == "train")
    _log.info("%s", ", ".join(f"{len(data[name]):,} examples of {name}" for name in paths if data[name]))
    if not data["train"]:
        raise InputError(str(paths["train"]), "has no example to train on")
    for name in ("dev", "test"):
        trained.check_labels(system, system.labels_of(data["train"]), data[name], name)
    return data


class _Runs:
    """The runs of several seeds, with shared data, words and biLM."""

    def __init__(
        self,
        system: System,
        data: _Data,
        table: WordTable,
        bilm: keras.layers.Layer | None,
        data_paths: dict[str, Any],
    ):
        self._kind, self._reading, self._labels = type(system), system.reading, system.labels_of(data["train"])
        self._data, self._table, self._bilm, self._data_paths = data, table, bilm, data_paths
        # Checksums of the data itself, so that files may be moved.
        self._checksums: dict[str, str | None] = {name: _checksum(data[name]) for name in ("train", "dev", "test")}
        self._checksums["words"] = _checksum([table.words, table.vectors.tobytes()])
        weights = None if bilm is None else (np.asarray(weight).tobytes() for weight in bilm.weights)
        self._checksums["elmo"] = None if weights is None else _checksum(weights)
        self._cached_layers: CachedLayers | None = None  # of all sentences; computed by the first run

    def train(self, recipe: Recipe, folder: pathlib.Path) -> dict[str, Any]:
        """Trains a system in its folder, or returns its scores if it is complete."""
        system = self._kind(recipe, self._labels, self._reading)
        config = {
            "task": system.name,
            "recipe": config_lib.to_dict(recipe),
            "labels": system.labels,
            "reading": dataclasses.asdict(self._reading),
            "data": self._data_paths,
            "checksums": self._checksums,
        }
        _check(folder, config)
        with staging.created_folder(folder, folder), lock.locked(folder):
            if not (folder / trained.CONFIG).exists():
                trained.write_json(folder / trained.CONFIG, config)
            if (folder / trained.SCORES).exists():
                _log.info("already trained: %s", folder)
                results = json_file.read(folder / trained.SCORES, dict[str, Any])
            else:
                keras.utils.set_random_seed(recipe.fit.seed)
                network = self._network(system, folder)
                about = {name: self._data_paths[name] for name in ("elmo", "fraction")}
                history = fitting.fit(system, network, self._data["train"], self._data["dev"], folder, about)
                trained.save_network(network, folder)
                results = self._results(system, network, history)
                trained.write_json(folder / trained.SCORES, results)
            (folder / fitting.FILE).unlink(missing_ok=True)
        return results

    def train_several(self, recipe: Recipe, folder: pathlib.Path, seeds: int) -> dict[str, Any]:
        """Trains a system for each seed in a separate folder; returns the mean of the results, and the best seed."""
        results = {}
        _check_several(folder)
        with staging.created_folder(folder, folder), lock.locked(folder):
            for seed in range(recipe.fit.seed, recipe.fit.seed + seeds):
                seeded = dataclasses.replace(recipe, fit=dataclasses.replace(recipe.fit, seed=seed))
                results[f"seed_{seed}"] = last = self.train(seeded, folder / f"seed_{seed}")
            scores = {name: result["score"] for name, result in results.items()}
            combined = {name: last[name] for name in ("task", "metric", "train_examples", "glove") if name in last} | {
                "score": round(statistics.mean(scores.values()), 4),
                "deviation": round(statistics.stdev(scores.values()), 4),
                "scores": scores,
                "best": max(results, key=lambda name: results[name]["dev"][last["metric"]]),
                "best_epoch": round(statistics.mean(result["best_epoch"] for result in results.values()), 1),
                "seconds": sum(result["seconds"] for result in results.values()),
            }
            trained.write_json(folder / trained.SCORES, combined)
        return combined

    def _network(self, system: System, folder: pathlib.Path) -> keras.Model:
        vectors = TokenVectors(system.recipe, self._table, self._bilm)
        if vectors.elmo is not None and system.recipe.elmo.remember:
            examples = (example for name in ("train", "dev", "test") for example in self._data[name])
            texts = (encoded(tokens) for example in examples for tokens in system.texts(example))
            vectors.elmo.remember(self._cached_layers or texts, folder)
            self._cached_layers = vectors.elmo.cached_layers
        return system.network(vectors)

    def _results(self, system: System, network: keras.Model, history: fitting.History) -> dict[str, Any]:
        best = fitting.best_epoch(history, system.metric)
        dev = history[best]["dev"]
        test = Predictor(system, network).scores(self._data["test"]) if self._data["test"] else None
        return {
            "task": system.name,
            "metric": system.metric,
            "score": (test or dev)[system.metric],
            "dev": dev,
            "test": test,
            **system.notes(self._data["test"] or self._data["dev"]),
            "train_examples": len(self._data["train"]),
            **({"glove": list(self._table.files)} if self._table.files else {}),
            "epochs": len(history),
            "best_epoch": best + 1,
            "seconds": round(sum(epoch["seconds"] for epoch in history)),
            "history": history,
        }


def _checksum(pieces: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece if isinstance(piece, bytes) else repr(piece).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _check(folder: pathlib.Path, config: dict[str, Any]) -> None:
    """Rejects a folder that contains anything but an earlier state of the same run."""
    if not _names(folder):
        return
    path, checksums = folder / trained.CONFIG, "checksums."
    stored = _flat(json_file.read(path, dict[str, Any])) if path.exists() else {}
    if "task" not in stored:
        raise InputError(str(folder), "has files that do not belong to a run; choose a new folder")
    # Report a changed fraction or changed data first; they cause other differences.
    values = _flat(config)
    for name in sorted(values, key=lambda name: (name != "data.fraction", not name.startswith(checksums))):
        # Paths are not compared, only checksums.
        is_compared = name == "data.fraction" or not name.startswith(("data.", "reading."))
        if is_compared and stored.get(name) != values[name]:
            if name.startswith(checksums):
                reasons = "other data, word vectors or reading options"
                problem = f"differs from that of the run in {folder} ({reasons}); choose a new folder"
                raise InputError(name.removeprefix(checksums), problem)
            raise InputError(str(folder), f"has a run with another {name} ({stored.get(name)}); choose a new folder")


def _check_several(folder: pathlib.Path) -> None:
    """Rejects a folder that contains anything but the runs of several seeds."""
    names = _names(folder)
    runs = {name for name in names if re.fullmatch(r"seed_\d+", name)}
    if names - runs - {trained.SCORES} or (trained.SCORES in names and not runs):
        raise InputError(str(folder), "has files that do not belong to a run with several seeds; choose a new folder")


def _names(folder: pathlib.Path) -> set[str]:
    """Returns the names in a folder, except those with a leading dot: locks and unfinished files."""
    return {path.name for path in folder.iterdir() if path.name[0] != "."} if folder.is_dir() else set()


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
