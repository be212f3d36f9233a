"""Workdirs from published weights and from bilm-tf's checkpoints, and published files from workdirs."""

import itertools
import os
import pathlib

import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, damage_reported, unreadable
from elmo_tf.files import staging
from elmo_tf.model.fast import BiLM
from elmo_tf.published import arrays, card
from elmo_tf.published import weights as published_weights
from elmo_tf.published.options import read_options
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training.optimizer import Optimizer
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir, new_workdir, open_workdir

_SLOT = "/Adagrad"  # suffix of the accumulators' names in TF1
_SOFTMAX = "lm/softmax/"  # prefix of the arrays with a row for each word
_WHOLE = "a complete checkpoint"
_SCOPE = "lm/"  # prefix of the network and its accumulators; the others are counters


def import_checkpoint(
    prefix: str | os.PathLike, options: str | os.PathLike, vocab: str | os.PathLike, workdir: str | os.PathLike
) -> Workdir:
    """Makes a workdir from a training checkpoint of bilm-tf: weights, softmax, Adagrad's accumulators, the step.

    Args:
        prefix: of the checkpoint's files, without `.index`.
        options: the `options.json` that it was trained with.
        vocab: the vocabulary that it was trained with, its first three lines `<S>`, `</S>`, `<UNK>` in any order.
        workdir: the folder to make.

    Raises:
        InputError: if a file is damaged, the files do not match or the workdir exists; then nothing is written.
    """
    try:
        content = pathlib.Path(vocab).read_bytes()
    except OSError as error:
        raise unreadable(vocab, error) from None
    words, lines = vocabulary_lib.from_published(content, str(vocab))
    source, step = _open_checkpoint(prefix)
    rows = next(iter(source.shapes.get("lm/softmax/W", ())), len(words))
    if rows != len(words):
        raise InputError(str(vocab), f"{len(words)} words, but lm/softmax/W in the checkpoint has {rows} rows")
    config = read_options(options, vocab_size=rows)
    expected = _expected_shapes(config.model, rows)
    arrays.stored_names(source, expected)  # before the network takes memory
    bilm = BiLM(config.model, rows)
    optimizer = optimizers.from_config(config.train, bilm)
    with damage_reported(_WHOLE, prefix):
        published_weights.assign(_with_our_order(source, lines), expected, _variables(bilm, optimizer))
    return save_new(workdir, config, bilm, vocabulary=words, optimizer=optimizer, step=step)


def dump_weights(
    workdir: str | os.PathLike, output: str | os.PathLike, checkpoint: str = checkpoints.LATEST, softmax: bool = False
) -> pathlib.Path:
    """Writes the network of a workdir's checkpoint as `options.json` and `weights.hdf5` in the new folder `output`.

    With `softmax`, also writes `softmax.hdf5` and `vocab.txt`. `checkpoint` is as for `checkpoints.load`. The model's
    card, `README.md`, is beside them.

    Raises:
        InputError: if there is no checkpoint, or no softmax to write, or `output` is in use.
    """
    opened = open_workdir(workdir)
    if softmax and opened.vocabulary is None:
        raise InputError(str(opened.path), "this model has no softmax")
    bilm, progress = checkpoints.restore(opened, checkpoint)
    words, facts = opened.vocabulary if softmax else None, card.trained(opened, progress)
    return published_weights.dump(bilm, output, words, opened.tokenizer, facts)


def save_new(
    workdir: str | os.PathLike,
    config: config_lib.Config,
    bilm: BiLM,
    *,
    vocabulary: vocabulary_lib.Vocabulary | None = None,
    tokenizer: str = "whitespace",
    optimizer: Optimizer | None = None,
    step: int = 0,
) -> Workdir:
    """Makes a workdir with a checkpoint of the given weights; raises `InputError` if the folder is in use.

    If that fails, nothing is left.
    """
    with new_workdir(workdir, config, vocabulary, tokenizer) as new:
        slots = None if optimizer is None else optimizer.slots
        checkpoints.save(new, bilm, slots, Progress(step))
    return open_workdir(workdir)


def _open_checkpoint(prefix: str | os.PathLike) -> tuple[arrays.StoredArrays, int]:
    """Returns the arrays of the network and the accumulators, and the step."""
    if not pathlib.Path(f"{prefix}.index").is_file():
        raise InputError(str(prefix), f"not the prefix of a checkpoint's files: there is no {prefix}.index")
    staging.check_for_tensorflow(prefix)
    with damage_reported(_WHOLE, prefix):
        reader = tf.train.load_checkpoint(os.fspath(prefix))
        shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
        if shapes.get("global_step") != ():
            raise InputError(str(prefix), "the checkpoint has no number global_step")
        step = int(reader.get_tensor("global_step"))
    shapes = {name: shape for name, shape in shapes.items() if name.startswith(_SCOPE)}
    return arrays.StoredArrays(prefix, shapes, reader.get_tensor), step


def _expected_shapes(config: config_lib.ModelConfig, rows: int) -> arrays.Shapes:
    """Returns the shapes of the weights and accumulators of a checkpoint whose softmax has `rows` words, by name."""
    width = config.lstm.projection_dim
    shapes_by_name = config.weight_shapes() | {"softmax/kernel": (rows, width), "softmax/bias": (rows,)}
    shape_of: arrays.Shapes = {}
    for name in itertools.starmap(arrays.published_names, shapes_by_name.items()):
        shape_of |= {name.checkpoint: name.shape, name.checkpoint + _SLOT: name.shape}
    return shape_of


def _with_our_order(source: arrays.StoredArrays, lines: list[int]) -> arrays.StoredArrays:
    """Returns the checkpoint with the softmax's first rows, those of the special tokens, in our order."""

    def read(name: str) -> np.ndarray:
        array = source.read(name)
        if name.startswith(_SOFTMAX):
            array[: len(lines)] = array[lines]
        return array

    return source._replace(read=read)


def _variables(bilm: BiLM, optimizer: Optimizer) -> dict[str, tf.Variable]:
    """Returns the network's variables and Adagrad's accumulators by their names in the checkpoint."""
    variables: dict[str, tf.Variable] = {}
    accumulators = optimizer.slots["accumulators"]
    for (variable, name), accumulator in zip(published_weights.names(bilm), accumulators, strict=True):
        variables |= {name.checkpoint: variable, name.checkpoint + _SLOT: accumulator}
    return variables
