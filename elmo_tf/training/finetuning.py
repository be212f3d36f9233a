"""Fine-tuning: training a language model further on other text, with that text's vocabulary."""

import logging
import os
import pathlib
from collections.abc import Callable, Iterable

import keras
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf import precision
from elmo_tf.errors import InputError, explain_out_of_memory
from elmo_tf.model.fast import BiLM
from elmo_tf.model.variables import relative_names
from elmo_tf.published import models
from elmo_tf.records import record_folder
from elmo_tf.text.vocabulary import Vocabulary
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training import workers
from elmo_tf.training.loop import MEMORY_SETTINGS, train
from elmo_tf.training.preparation import check_patience
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir, is_workdir, new_workdir, open_workdir
from elmo_tf.workdir.metrics_file import MetricsLine

_log = logging.getLogger("elmo_tf")


def finetune(
    source: str | os.PathLike,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    assignments: Iterable[str] = (),
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
    on_record: Callable[[MetricsLine], None] | None = None,
) -> Workdir:
    """Trains the newest model of the workdir `source` further on `data`, in another workdir.

    The network starts from `source`'s weights, the optimizer from its initial values. The softmax gets the vocabulary
    of `data`: rows of words that `source` has are copied, the others are random. With the same `workdir` it resumes.

    Args:
        source: a workdir with a checkpoint, with a softmax or without.
        data: as for `train`; so are `workdir`, `heldout`, `steps`, `strategy` and `on_record`.
        assignments: `key=value` changes to the configuration of `source`, except its `train.steps`.

    Returns:
        the workdir, with a checkpoint of the last step.

    Raises:
        InputError: as `train`.
    """
    if models.is_name(source) and not is_workdir(source):
        raise InputError(str(source), f"a model's name; make a workdir from it: elmo-tf import {source} --workdir DIR")
    opened = open_workdir(source)
    if pathlib.Path(source).resolve() == pathlib.Path(workdir).resolve():
        raise InputError(str(workdir), "this is the folder of the source; give a new workdir")
    existing = open_workdir(workdir) if is_workdir(workdir) else None
    config = (existing or opened).config
    if existing is None and config.train.steps is not None:
        config = config_lib.with_length(config, epochs=config_lib.TrainConfig().epochs)  # not the source's steps
    config = config_lib.override(config, assignments)
    check_patience(config, heldout)
    writes = strategy is None or workers.of(strategy).is_chief  # another worker may see what the first has just made
    if existing is not None:
        if existing.config.model != opened.config.model:
            raise InputError(str(workdir), f"its model's sizes differ from those of {source}; give a new workdir")
        if writes:
            _log.info("resuming the training in %s; %s is not read again", workdir, source)
    config_lib.check_same_model(opened.config, config)
    if existing is None and writes:
        records = record_folder.open_folder(data)
        if records.info.tokenizer != opened.tokenizer:
            _log.warning(
                "warning: %s splits text with the tokenizer %s, but the new model will use %s, like these records; "
                "elmo-tf preprocess --tokenizer %s keeps it",
                source,
                opened.tokenizer,
                records.info.tokenizer,
                opened.tokenizer,
            )
        target = Workdir(pathlib.Path(workdir), config, records.vocabulary, records.info.tokenizer)
        heldout_records = None if heldout is None else record_folder.open_folder(heldout)
        target.check_records(records, heldout_records)
        with explain_out_of_memory(*MEMORY_SETTINGS):
            _make_workdir(opened, target)
    return train(config, data, workdir, heldout, steps, strategy, on_record)


def _make_workdir(source: Workdir, target: Workdir) -> None:
    """Makes `target`, with a checkpoint of step 0."""
    config = target.config
    keras.utils.set_random_seed(config.train.seed)
    with new_workdir(target.path, precision.resolved(config), target.vocabulary, target.tokenizer) as new:
        bilm = new.new_bilm()
        _copy_weights(checkpoints.restore(source)[0], source.vocabulary, bilm, new.vocabulary)
        optimizer = optimizers.from_config(config.train, bilm)
        checkpoints.save(new, bilm, optimizer.slots, Progress(0))


def _copy_weights(source: BiLM, source_words: Vocabulary | None, target: BiLM, words: Vocabulary | None) -> None:
    """Copies the weights of `source` to `target`; of the softmax, the rows of the words that both have."""
    weights = relative_names(source)
    for name, variable in relative_names(target).items():
        if not name.startswith("softmax/"):
            variable.assign(weights[name])
    if words is None:
        return
    if source_words is None:
        _log.info("the source has no softmax: all %s words get a new row", f"{len(words):,}")
        return
    row_of = {word: row for row, word in enumerate(source_words.tokens)}
    shared = [(row, row_of[word]) for row, word in enumerate(words.tokens) if word in row_of]
    rows, source_rows = (list(numbers) for numbers in zip(*shared, strict=True))
    for variable, stored in zip(target.softmax.weights, source.softmax.weights, strict=True):
        variable.value.scatter_update(tf.IndexedSlices(tf.gather(stored.value, source_rows), rows))
    _log.info("softmax: copied the rows of %s of %s words; the others are new", f"{len(shared):,}", f"{len(words):,}")
