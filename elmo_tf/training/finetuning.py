"""Going on with a trained language model on other text, and so with another vocabulary."""

import logging
import os
import pathlib
from collections.abc import Iterable

import keras
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.bilm.model import BiLM
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.text.vocabulary import Vocabulary
from elmo_tf.training import checkpoints
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training.evaluation import check_records
from elmo_tf.training.loop import train
from elmo_tf.training.workers import Workers

_log = logging.getLogger("elmo_tf")


def finetune(
    source: str | os.PathLike,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    assignments: Iterable[str] = (),
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
    profile: bool = False,
) -> checkpoints.Workdir:
    """Trains the newest model of the workdir `source` on `data`, in a workdir of its own.

    The network starts from `source`'s weights, the optimizer's values anew. The softmax gets the vocabulary of `data`:
    rows of words that `source` knew are carried over, the others drawn. Run again with the same `workdir`, it resumes.

    Args:
        source: a workdir with a checkpoint, with a softmax or without.
        assignments: `key=value` changes to the configuration of `source`.
        data, workdir, heldout, steps, strategy, profile: as for `train`.

    Raises:
        InputError: as `train`.
    """
    opened = checkpoints.open_workdir(source, "--from")
    if pathlib.Path(source).resolve() == pathlib.Path(workdir).resolve():
        raise InputError(f"--workdir: expected another folder than --from, found the same: {workdir}")
    begun = checkpoints.open_workdir(workdir) if checkpoints.exists(workdir) else None
    config = config_lib.override((begun or opened).config, assignments)
    config_lib.check_same_model(opened.config, config, "--set")
    if begun is None and (strategy is None or Workers(strategy).is_chief):
        records = record_folder.open_folder(data)
        check_records(config.model, records.vocabulary, records, "--data")
        if heldout is not None:
            heldout_records = record_folder.open_folder(heldout, "--heldout")
            check_records(config.model, records.vocabulary, heldout_records, "--heldout")
        _begin(opened, config, records.vocabulary, workdir)
    return train(config, data, workdir, heldout, steps, strategy, profile)


def _begin(source: checkpoints.Workdir, config: config_lib.Config, words: Vocabulary, path: str | os.PathLike) -> None:
    """Makes the workdir at `path` with a checkpoint of step 0."""
    keras.utils.set_random_seed(config.train.seed)
    with checkpoints.new_workdir(path, config, words) as new:
        bilm = new.new_bilm()
        _carry_over(source.trained_bilm("--from"), source.vocabulary, bilm, words)
        variables = [variable.value for variable in bilm.trainable_variables]
        optimizer = optimizers.from_config(config.train, variables)
        checkpoints.save(new, bilm, optimizer, checkpoints.Progress())


def _carry_over(source: BiLM, known: Vocabulary | None, target: BiLM, words: Vocabulary) -> None:
    """Gives `target` the weights of `source`, and of its softmax the rows of the words that both have."""
    weights = {variable.path: variable for variable in source.trainable_variables}
    for variable in target.trainable_variables:
        if not variable.path.startswith("softmax/"):
            variable.assign(weights[variable.path])
    if known is None:
        _log.info("the source has no softmax: a fresh one for %s words", f"{len(words):,}")
        return
    places = {word: number for number, word in enumerate(known.tokens)}
    shared = [(number, places[word]) for number, word in enumerate(words.tokens) if word in places]
    own, theirs = (list(numbers) for numbers in zip(*shared, strict=True))
    for variable, rows in zip(target.softmax.weights, source.softmax.weights, strict=True):
        variable.value.scatter_update(tf.IndexedSlices(tf.gather(rows.value, theirs), own))
    _log.info("softmax: %s of %s words carried over, the others are new", f"{len(shared):,}", f"{len(words):,}")
