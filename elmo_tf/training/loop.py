"""`train`: checks its arguments and runs a training."""

import os
from collections.abc import Callable

import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.training import devices
from elmo_tf.training.preparation import check_patience
from elmo_tf.training.run import Run
from elmo_tf.workdir.folder import Workdir
from elmo_tf.workdir.metrics_file import MetricsLine


def train(
    config: Config,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
    profile: bool = False,
    on_record: Callable[[MetricsLine], None] | None = None,
) -> Workdir:
    """Trains a BiLM on `data`, resuming from the newest intact checkpoint of `workdir`, if any.

    Checkpoints are made every `train.checkpoint_steps` steps or `train.checkpoint_minutes` minutes, and evaluations on
    the first `train.eval_tokens` tokens of `heldout` every `train.eval_steps` steps, with a checkpoint each. At the end
    there is a checkpoint, and an evaluation on all of `heldout`.

    Args:
        config: model and recipe; in an existing workdir, the model must be the same, and the recipe is replaced.
        data: a folder of records to train on.
        workdir: for everything that training writes; made if it does not exist.
        heldout: a folder of records to evaluate on.
        steps: total number of steps, those of earlier runs included; None: `train.epochs` passes over `data`.
        strategy: the devices; None: one replica on each visible GPU, or one on the CPU. All processes of a
            `MultiWorkerMirroredStrategy` call this with the same arguments; the first of them writes.
        profile: whether to trace some steps for TensorBoard.
        on_record: called with each line of `metrics.jsonl`, a dictionary with the losses of a step or an evaluation;
            training waits for it. Steps that a resumed run repeats are passed again. An exception that it raises
            becomes a warning. Only the first of several workers calls it.

    Returns:
        the workdir, with a checkpoint of the last step.

    Raises:
        InputError: if the folders do not fit each other or the configuration, the workdir is in use, the memory is not
            sufficient, or a loss is not finite.
        OSError: if the last checkpoint cannot be written, or another worker has ended.
        KeyboardInterrupt: on Ctrl-C or SIGTERM, after the current step and a checkpoint.

    Examples:

    >>> config = elmo_tf.override(elmo_tf.preset("tiny"), ["train.learning_rate=0.01"])
    >>> workdir = elmo_tf.train(config, "data/train", "runs/mine", heldout="data/heldout", steps=2)
    >>> sorted(path.name for path in workdir.path.iterdir() if path.name[0] != ".")
    ['checkpoints', 'config.json', 'logs', 'metrics.jsonl', 'vocab.txt']
    """
    if steps is not None and steps < 0:
        raise InputError("steps", "at least 0", steps)
    strategy = strategy or devices.all_gpus()
    records = record_folder.open_folder(data)
    heldout_records = None if heldout is None else record_folder.open_folder(heldout)
    check_patience(config, heldout)
    run_class = Run
    if devices.num_workers(strategy) > 1:
        from elmo_tf.training.several import SharedRun as run_class  # noqa: PLC0415 - not read on one machine
    return run_class(config, records, workdir, heldout_records, steps, strategy, profile, on_record).train()
