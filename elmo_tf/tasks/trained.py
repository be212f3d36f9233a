"""A trained system on disk: a `.keras` file, its configuration, and what it scored."""

import json
import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras

from elmo_tf import config as config_lib
from elmo_tf import tasks
from elmo_tf.errors import InputError, renamed
from elmo_tf.files import json_file, staging
from elmo_tf.tasks.judging import Judge
from elmo_tf.tasks.system import Example, System

_log = logging.getLogger("elmo_tf")

CONFIG, MODEL, SCORES = "config.json", "model.keras", "scores.json"
_SEEDS = json_file.Object({"best": json_file.Text(r"seed_\d+")})


class Trained:
    """A trained system, in memory.

    Args:
        system: with its recipe and labels.
        network: the trained Keras model, which takes tokens.
    """

    def __init__(self, system: System, network: keras.Model):
        self.system = system
        self.network = network
        self._judge = Judge(system, network)

    def predict(self, sentences: Sequence[Any], tokenizer: str | None = None) -> list[dict[str, Any]]:
        """Returns what the system says of each sentence: the same as a line of `elmo-tf task NAME predict`.

        Args:
            sentences: lists of tokens; for pairs of sentences, pairs of these; for semantic roles, pairs of these and
                the index of the predicate; for questions, pairs of a paragraph and a question as raw text; for
                documents, lists of lists of tokens, or texts.
            tokenizer: "unicode" for `ner` and `sentiment`, whose sentences are raw text then; the results say in
                `offsets` the characters at which each token begins and ends. None: the sentences are as above.

        Raises:
            InputError: if one of them is something else, or has no token.
        """
        if tokenizer is not None:
            return self._predict_raw(sentences, tokenizer)
        return self.answer([self.system.example_of(one) for one in sentences])

    def _predict_raw(self, texts: Sequence[str], tokenizer: str) -> list[dict[str, Any]]:
        if tokenizer != "unicode" or self.system.name not in tasks.RAW_TEXT:
            expected = f"unicode, for {' or '.join(tasks.RAW_TEXT)}"
            raise InputError("tokenizer", expected, f"{tokenizer!r} for {self.system.name}")
        from elmo_tf.text import raw_text  # noqa: PLC0415 - needs the extra [text]

        words = raw_text.split_texts(texts)
        found = self.predict([[word.text for word in sentence] for sentence in words])
        offsets = [[[word.start, word.end] for word in sentence] for sentence in words]
        return [one | {"offsets": places} for one, places in zip(found, offsets, strict=True)]

    def answer(self, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Returns the same of examples of the system's own class."""
        answers = self._judge.answers(examples)
        return [self.system.to_json(example, answer) for example, answer in zip(examples, answers, strict=True)]

    def evaluate(self, data: str | os.PathLike) -> dict[str, Any]:
        """Returns the scores on a file with labels: `task`, `metric`, `score` in percent, `examples`, all scores.

        Raises:
            InputError: if the file cannot be read.
        """
        with renamed(path="data"):
            items = self.system.read(data, self.system.recipe)
        examples = self.system.examples(items, training=False)
        self._warn_of_labels(data, self.system.labels_of(examples))
        return described(self.system, self._judge.scores(examples)) | {"examples": len(examples)}

    def _warn_of_labels(self, data: str | os.PathLike, labels: Sequence[str]) -> None:
        if unknown := sorted(set(labels) - set(self.system.labels)):
            _log.warning(
                "warning: the system was not trained on these labels of %s: %s; it knows %s",
                *(data, ", ".join(unknown), ", ".join(self.system.labels)),
            )


def described(system: System, scores: dict[str, float]) -> dict[str, Any]:
    """Returns scores with the task's name, and the one that counts as `score`."""
    return {"task": system.name, "metric": system.metric, "score": scores[system.metric]} | scores


def load(workdir: str | os.PathLike, task: str | None = None) -> Trained:
    """Returns a trained system.

    Args:
        workdir: of `elmo-tf task NAME train`. Of several seeds, the one with the best dev score.
        task: the task it has to be for; None: any.

    Raises:
        InputError: if there is none, it is not complete or for another task.
    """
    folder = pathlib.Path(workdir)
    if not (folder / CONFIG).exists() and (folder / SCORES).exists():
        folder /= json_file.read(folder / SCORES, _SEEDS, "workdir")["best"]
    schema = {
        "task": json_file.OneOf(tuple(tasks.SYSTEMS)),
        "recipe": json_file.Object({}),
        "labels": json_file.ListOf(json_file.Text()),
    }
    values = json_file.read(folder / CONFIG, json_file.Object(schema), "workdir")
    if task not in (None, values["task"]):
        raise InputError("workdir", f"a system for {task}", f"one for {values['task']}: {workdir}")
    if not (folder / SCORES).exists():
        raise InputError("workdir", "a training that has ended", f"an unfinished one: {workdir}")
    kind = tasks.system_class(values["task"])
    recipe_class = type(next(iter(kind.recipes.values())))
    recipe = config_lib.from_dict(values["recipe"], recipe_class, source=str(folder / CONFIG))
    try:
        network = keras.models.load_model(folder / MODEL, compile=False)
    except (OSError, ValueError) as error:
        raise InputError("workdir", f"a Keras model in {MODEL}", f"{str(error).splitlines()[0]}: {folder}") from None
    return Trained(kind(recipe, values["labels"]), network)


def save_network(network: keras.Model, folder: pathlib.Path) -> None:
    """Writes the network to a folder, completely or not at all."""
    staged = folder / f".incomplete.{MODEL}"
    # Of a run that was killed; Keras would follow a link.
    staged.unlink(missing_ok=True)
    network.save(staged)
    staging.sync(staged)
    os.replace(staged, folder / MODEL)


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes a JSON file, completely or not at all."""
    staging.write_file(path, json.dumps(value, indent=1).encode() + b"\n")
