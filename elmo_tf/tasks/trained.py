"""A trained system on disk: a `.keras` file, its configuration, and its scores."""

import dataclasses
import logging
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import keras
import msgspec
import numpy as np

from elmo_tf import config as config_lib
from elmo_tf.annotated.reading_options import DEFAULT, Reading
from elmo_tf.errors import InputError, damage_reported, suggestion
from elmo_tf.files import hdf5_file, intact, json_file, staging, stores
from elmo_tf.files.pipes import copied_if_pipe
from elmo_tf.published import models
from elmo_tf.tasks.batching import Predictor, rounded
from elmo_tf.tasks.system import Classifier, Example, System
from elmo_tf.tasks.systems import RAW_TEXT, SYSTEMS, system_class
from elmo_tf.tasks.token_vectors import TokenVectors, WordTable
from elmo_tf.text import tokenizers

_log = logging.getLogger("elmo_tf")

_MAX_LABEL_CHARS = 30  # characters of a label in a message
_INCOMPLETE = "training is incomplete; run `elmo-tf task NAME train` again"
CONFIG, MODEL, SCORES = "config.json", "model.keras", "scores.json"


class _Config(msgspec.Struct, frozen=True):
    task: str
    recipe: dict[str, Any]
    labels: list[str]
    reading: Reading = DEFAULT


class _SeveralSeeds(msgspec.Struct, frozen=True):
    best: Annotated[str, msgspec.Meta(pattern=r"\Aseed_\d+\Z")]


class PublishedOptions(msgspec.Struct, frozen=True):
    """The `options.json` of a published system; `weights.hdf5` has the words, and the trained arrays by number."""

    task: str
    elmo: str  # name of the biLM
    recipe: dict[str, Any]
    labels: list[str]


class Trained:
    """A trained system, in memory.

    Args:
        system: with its recipe and labels.
        network: the trained Keras model, which takes tokens.
        others: more networks of the system with the same labels, to predict from the mean of all probabilities.
    """

    def __init__(self, system: System, network: keras.Model, *others: keras.Model):
        self.system = system
        self.network = network
        self._others = others
        self._predictor = Predictor(system, network, *others)

    def predict(self, sentences: Iterable[Any], tokenizer: str | None = None) -> list[dict[str, Any]]:
        """Returns the prediction for each sentence, as in a line of `elmo-tf task NAME predict`.

        Args:
            sentences: for `ner` and `sentiment`, texts or lists of tokens; for pairs of sentences, pairs of
                these; for semantic roles, pairs of a list of tokens and the index of the predicate; for questions,
                pairs of a paragraph and a question as raw text; for documents, lists of lists of tokens, or texts.
            tokenizer: a name in `tokenizers.TOKENIZERS`, for texts of `ner` and `sentiment`; None: the system's own.

        Returns:
            a prediction for each sentence, empty for one without tokens. For a text, `offsets` has the characters at
            which each token begins and ends.

        Raises:
            InputError: if a sentence has another form.
        """
        if isinstance(sentences, str | bytes) or not isinstance(sentences, Iterable):
            raise InputError("sentences", "a list of sentences, [sentence] for a single one", repr(sentences))
        sentences, splits_texts = list(sentences), self.system.name in RAW_TEXT
        texts = [index for index, text in enumerate(sentences) if splits_texts and isinstance(text, str)]
        if tokenizer is not None and (tokenizer not in tokenizers.TOKENIZERS or not splits_texts):
            expected = f"one of {', '.join(tokenizers.TOKENIZERS)}, for {' or '.join(RAW_TEXT)}"
            raise InputError("tokenizer", expected, f"{tokenizer!r} for {self.system.name}")
        if tokenizer is not None and len(texts) < len(sentences):
            tokenized = next(sentence for sentence in sentences if not isinstance(sentence, str))
            raise InputError("sentences", "texts, which the tokenizer splits", repr(tokenized))
        words = tokenizers.words_of_each([sentences[i] for i in texts], tokenizer or self.system.reading.tokenizer)
        for index, of_text in zip(texts, words, strict=True):
            sentences[index] = [word.text for word in of_text]
        predictions = self.predict_examples([self.system.example_of(sentence) for sentence in sentences])
        for index, of_text in zip(texts, words, strict=True):
            predictions[index]["offsets"] = [[word.start, word.end] for word in of_text]
        return predictions

    def predict_examples(self, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Like `predict`, for examples of the system's own class."""
        pairs = zip(examples, self._predictor.predict(examples), strict=True)
        return [self.system.to_json(example, prediction) for example, prediction in pairs]

    def export(self, output: str | os.PathLike) -> pathlib.Path:
        """Writes a SavedModel that TensorFlow alone can load, as `elmo-tf task NAME export` does.

        Args:
            output: the model's folder; the new version's number is the highest in it plus 1.

        Returns:
            the new version's folder.

        Raises:
            InputError: if TensorFlow alone cannot run the system, as with `coreference`, or it has several networks.
            OSError: if the model cannot be written, or gives other answers in a fresh process. Then nothing is left.
        """
        from elmo_tf.tasks import serving  # noqa: PLC0415 - needed only here

        if self._others:
            raise InputError("workdir", "only one network can be exported")
        return serving.export(self.system, self.network, output)

    def evaluate(self, data: str | os.PathLike, confusion: bool = False) -> dict[str, Any]:
        """Returns the scores on a file with labels, in percent.

        Args:
            data: a file in a format of the task.
            confusion: whether to count, for each gold class, how often each class was predicted; for `sentiment` and
                `entailment`.

        Returns:
            `task`, `metric`, `score`, `examples` and all scores; `most_frequent`, the most frequent answer of the file
            and the score of always giving that; `by_label`, the `precision`, `recall`, `f1` and `count` of each type or
            class; and `confusion`, if requested.

        Raises:
            InputError: naming the file, if it cannot be read.
        """
        if confusion and not isinstance(self.system, Classifier):
            raise InputError("confusion", f"{self.system.name} has no classes")
        with copied_if_pipe(data) as file:
            examples = self.system.examples(self.system.read(file), training=False)
        check_labels(self.system, self.system.labels, examples, data)
        predictions, metric = self._predictor.predict(examples), self.system.metric
        scores = rounded(self.system.scores(examples, predictions))
        summary = {"task": self.system.name, "metric": metric, "score": scores[metric]}
        summary |= scores | self.system.notes(examples) | {"examples": len(examples)}
        if most_frequent := self.system.most_frequent(examples):
            summary["most_frequent"] = most_frequent | {metric: round(most_frequent[metric], 4)}
        if counts := self.system.by_label(examples, predictions):
            summary["by_label"] = {
                label: rounded(count.scores()) | {"count": int(count.gold)} for label, count in counts.items()
            }
        if confusion and isinstance(self.system, Classifier):
            summary["confusion"] = self.system.confusion(examples, predictions)
        return summary


def load(workdir: str | os.PathLike, task: str | None = None, **reading: Any) -> Trained:
    """Returns a trained system.

    Args:
        workdir: of `elmo-tf task NAME train`. If it has several seeds, the best by dev score is loaded. Or the name
            of a published system, such as `english-ner`, unless a folder has that name.
        task: the required task of the system; None: any.
        **reading: fields of `Reading` that differ from those of the training.

    Raises:
        InputError: naming the folder or a file in it that does not exist, is incomplete or is for another task.
    """
    folder = pathlib.Path(workdir)
    if not folder.exists():
        if not models.is_system(workdir):
            systems = suggestion(str(workdir), [model.name for model in models.MODELS if model.task])
            raise InputError(str(workdir), f"no such folder, and no system of this name{systems}")
        return _load_published(str(workdir), task, dataclasses.replace(DEFAULT, **reading))
    if not (folder / CONFIG).exists() and (folder / SCORES).exists():
        folder /= json_file.read(folder / SCORES, _SeveralSeeds).best
    if any(folder.glob(f"seed_*/{CONFIG}")):
        raise InputError(str(workdir), _INCOMPLETE)
    if not (folder / CONFIG).exists() or "task" not in json_file.read(folder / CONFIG, dict):
        raise InputError(str(workdir), "not a workdir of elmo-tf task NAME train")
    config = json_file.read(folder / CONFIG, _Config)
    _check_task(workdir, config.task, task)
    if not (folder / SCORES).exists():
        raise InputError(str(workdir), _INCOMPLETE)
    system = _system(config, dataclasses.replace(config.reading, **reading), folder / CONFIG)
    intact.check_regular(folder / MODEL)
    with damage_reported("a complete Keras model", folder / MODEL):
        with hdf5_file.open_keras_weights(folder / MODEL):
            pass  # Keras itself follows links to other files
        return Trained(system, keras.models.load_model(folder / MODEL, compile=False))


def _load_published(name: str, task: str | None, reading: Reading) -> Trained:
    """Returns a system that comes with this package. Its biLM is stored only once: `english-ner` reads `english`."""
    model = models.find(name)
    _check_task(name, model.task, task)
    files = model.files()
    options = json_file.read(files.options, PublishedOptions)
    system = _system(options, reading, files.options)
    with hdf5_file.open_file(files.weights) as file:
        words = WordTable(file["words"].asstr()[()].tolist(), np.zeros((0, 0), np.float32))
        network = system.network(TokenVectors(system.recipe, words, options.elmo))
        for number, variable in enumerate(network.trainable_variables):
            variable.assign(file[str(number)][()])
    return Trained(system, network)


def _system(stored: _Config | PublishedOptions, reading: Reading, source: object) -> System:
    kind = system_class(stored.task)
    recipe_class = type(kind.paper_recipe())
    return kind(config_lib.from_dict(stored.recipe, recipe_class, source=str(source)), stored.labels, reading)


def _check_task(workdir: str | os.PathLike, trained_for: str, task: str | None) -> None:
    if trained_for not in ([task] if task else SYSTEMS):
        wanted = task or " or ".join(SYSTEMS)
        raise InputError(str(workdir), f"contains a system for {trained_for}, not for {wanted}")


def load_together(workdirs: Sequence[str | os.PathLike], task: str | None = None, **reading: Any) -> Trained:
    """Returns a system that predicts from the mean of the probabilities of the systems in all workdirs.

    Raises:
        InputError: as `load`, or naming a workdir whose task or labels are not those of the first.
    """
    first, *others = (load(workdir, task, **reading) for workdir in workdirs)
    for workdir, other in zip(workdirs[1:], others, strict=True):
        if (other.system.name, other.system.labels) != (first.system.name, first.system.labels):
            raise InputError(str(workdir), f"its task or labels differ from those of {workdirs[0]}")
    return Trained(first.system, first.network, *(other.network for other in others))


def check_labels(system: System, trained_labels: Sequence[str], examples: Sequence[Example], source: Any) -> None:
    """Warns about labels absent from the training data, which are never predicted.

    Raises:
        InputError: if the training data has none of the labels.
    """
    labels = set(system.labels_of(examples))
    unknown = labels - set(trained_labels)
    if unknown and system.predicts_labels and unknown >= labels - {"O"}:
        unknown_labels, known_labels = (_some(sorted(names)) for names in (unknown, set(trained_labels) - {"O"}))
        problem = f"none of its labels ({unknown_labels}) is in the training data, which has {known_labels}"
        raise InputError(str(source), f"{problem}: is the label in another column, or is this a file for another task?")
    if unknown:
        _log.warning("warning: labels of %s that the training data lacks: %s", source, ", ".join(sorted(unknown)))


def _some(labels: Sequence[str]) -> str:
    """Returns the first labels for a message."""
    names = (name if len(name) <= _MAX_LABEL_CHARS else f"{name[:_MAX_LABEL_CHARS]}..." for name in labels[:3])
    shown = list(map(repr, names))
    return ", ".join(shown + ["..."] * (len(labels) > 3)) or "none"


def save_network(network: keras.Model, folder: pathlib.Path) -> None:
    """Writes the network to a folder, completely or not at all."""
    staged = folder / f".incomplete.{MODEL}"
    # A killed run may have left it; Keras would follow a link.
    staged.unlink(missing_ok=True)
    network.save(staged)
    staging.sync(staged)
    os.replace(staged, folder / MODEL)


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes a JSON file, completely or not at all."""
    stores.write(path, json_file.dumps(value, indent=1).encode() + b"\n")
