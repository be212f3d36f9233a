"""The training loop: restore, step, log, evaluate, save."""

import contextlib
import dataclasses
import hashlib
import logging
import math
import os
import signal

import keras
import tensorflow as tf

from elmo_tf.config import Config, check_same_model
from elmo_tf.data import records as records_lib
from elmo_tf.data.windows import Position, Windows, prefetch
from elmo_tf.errors import InputError
from elmo_tf.training import checkpoints
from elmo_tf.training.evaluation import check_records, evaluate
from elmo_tf.training.monitor import Monitor
from elmo_tf.training.step import Trainer

_log = logging.getLogger("elmo_tf")


def train(
    config: Config,
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    heldout: str | os.PathLike | None = None,
    steps: int | None = None,
    strategy: tf.distribute.Strategy | None = None,
) -> checkpoints.Workdir:
    """Trains a BiLM on `data`, going on from the newest checkpoint of `workdir` if there is one.

    Checkpoints, and with `heldout` evaluations, come every `train.checkpoint_steps` and at the end.

    Args:
        config: model and recipe; an existing workdir takes over the recipe, its model has to be the same.
        data: a folder of records to train on.
        workdir: where everything is kept; made if it is not there.
        heldout: a folder of records to evaluate on.
        steps: steps in all, those made before included; None: `train.epochs` passes over `data`.
        strategy: where to run; None: one replica on each visible GPU, or one on the CPU.

    Returns:
        the workdir, with a checkpoint of the last step.

    Raises:
        InputError: if the folders do not fit each other or the configuration, or a loss is not finite.
        KeyboardInterrupt: on SIGINT or SIGTERM, once the step is finished and a checkpoint saved.
    """
    records = records_lib.open_folder(data)
    heldout_records = None if heldout is None else records_lib.open_folder(heldout, "--heldout")
    existing = checkpoints.open_workdir(workdir) if checkpoints.exists(workdir) else None
    if existing is not None:
        check_same_model(existing.config, config, "--preset, --set")
    vocabulary = records.vocabulary if existing is None else existing.vocabulary
    check_records(config.model, vocabulary, records, "--data")
    if heldout_records is not None:
        check_records(config.model, vocabulary, heldout_records, "--heldout")
    if existing is None:
        with checkpoints.new_workdir(workdir, config, vocabulary):
            pass
    opened = dataclasses.replace(checkpoints.open_workdir(workdir), config=config)
    keras.utils.set_random_seed(config.train.seed)
    trainer = Trainer(strategy or _all_gpus(), config.train, lambda: opened.new_bilm(config.train.precision))
    session = _Session(opened, trainer, records, heldout_records)
    session.restore()
    checkpoints.update_config(opened)
    session.run(math.ceil(config.train.epochs * session.steps_per_epoch) if steps is None else steps)
    return opened


@dataclasses.dataclass
class _Session:
    """A training in progress."""

    workdir: checkpoints.Workdir
    trainer: Trainer
    records: records_lib.Records
    heldout: records_lib.Records | None
    step: int = 0
    saved_step: int | None = None
    position: Position | None = None

    @property
    def tokens_per_step(self) -> int:
        return self.trainer.batch_size * self.trainer.config.unroll_steps

    @property
    def steps_per_epoch(self) -> float:
        """A pass predicts every word and one boundary a sentence."""
        return (self.records.info["tokens"] + self.records.info["sentences"]) / self.tokens_per_step

    @property
    def data_id(self) -> str:
        """Tells the records and the order of a checkpoint's position from others."""
        shards = [shard["sha256"] for shard in self.records.info["shards"]]
        return hashlib.sha256(" ".join([*shards, str(self.trainer.config.seed)]).encode()).hexdigest()

    def restore(self) -> None:
        """Goes back to the newest checkpoint, if there is one."""
        path = checkpoints.latest(self.workdir)
        if path is None:
            return
        progress = checkpoints.restore(path, self.trainer.bilm, self.trainer.optimizer)
        if progress.data_id not in (None, self.data_id):
            raise InputError(
                "--data, --set train.seed: expected the records and seed that the workdir was trained with so far, "
                f"found others: {self.records.path}; `elmo-tf finetune` goes on with other text"
            )
        if progress.states is not None:
            rows = progress.states[0][0][0].shape[0]
            if rows != self.trainer.batch_size:
                raise InputError(
                    f"--set train.batch_size, --gpus: expected {rows} streams in all, as in the checkpoint, found "
                    f"{self.trainer.config.batch_size} x {self.trainer.strategy.num_replicas_in_sync}"
                )
            self.trainer.set_states(progress.states)
        self.step = self.saved_step = progress.step
        self.position = progress.position

    def run(self, last_step: int) -> None:
        """Trains up to `last_step`, evaluating and saving on the way and at the end."""
        self._describe(last_step)
        config = self.trainer.config
        monitor = Monitor(
            self.workdir.logs, self.step, last_step, self.steps_per_epoch, self.tokens_per_step, config.log_steps
        )
        with contextlib.closing(monitor), _Interrupt() as interrupt, contextlib.closing(self._windows()) as windows:
            if self.saved_step is None and last_step == 0:
                self._save_and_evaluate(monitor)
            elif self.step >= last_step:
                _log.info("nothing to do: %s steps are made already; --steps sets another end", f"{self.step:,}")
            while self.step < last_step and not interrupt.requested:
                window, self.position = next(windows)
                monitor.record(self.trainer.step(window, self.step))
                self.step += 1
                if self.step % config.checkpoint_steps == 0 or self.step == last_step:
                    self._save_and_evaluate(monitor)
            if interrupt.requested:
                monitor.flush()
                if self.saved_step != self.step:
                    self._save()
                _log.info("stopped at step %s, checkpoint saved; the same command goes on from there", f"{self.step:,}")
                raise KeyboardInterrupt

    def _windows(self):
        """Yields windows for ever, and the position after each, from where training stands."""
        max_chars = self.workdir.config.model.char_cnn.max_chars_per_token
        config = self.trainer.config
        windows = Windows(
            self.records, self.trainer.batch_size, config.unroll_steps, max_chars, config.seed, position=self.position
        )
        return prefetch(iter(windows))

    def _save_and_evaluate(self, monitor: Monitor) -> None:
        monitor.flush()
        self._save()
        if self.heldout is not None:
            config = self.trainer.config
            monitor.record_evaluation(evaluate(self.trainer.bilm, self.heldout, config.batch_size, config.unroll_steps))
        monitor.resume_clock()

    def _save(self) -> None:
        progress = checkpoints.Progress(self.step, self.position, self.data_id, self.trainer.gathered_states())
        checkpoints.save(self.workdir, self.trainer.bilm, self.trainer.optimizer, progress)
        self.saved_step = self.step

    def _describe(self, last_step: int) -> None:
        parameters = sum(variable.shape.num_elements() for variable in self.trainer.variables)
        _log.info(
            "%s parameters (softmax included) on %d replica(s), %d x %d tokens a step; %s tokens in the corpus, "
            "%.1f steps an epoch; from step %s to %s; TensorBoard: tensorboard --logdir %s",
            f"{parameters:,}",
            self.trainer.strategy.num_replicas_in_sync,
            self.trainer.batch_size,
            self.trainer.config.unroll_steps,
            f"{self.records.info['tokens']:,}",
            self.steps_per_epoch,
            f"{self.step:,}",
            f"{last_step:,}",
            self.workdir.logs,
        )


class _Interrupt:
    """Turns the first SIGINT or SIGTERM into a request, so that no step is cut in two; the second has its usual way."""

    def __init__(self):
        self.requested = False
        self._before = {}

    def __enter__(self):
        with contextlib.suppress(ValueError):  # only the main thread may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number, _frame):
        self.requested = True
        signal.signal(number, self._before[number])


def _all_gpus() -> tf.distribute.Strategy:
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    return tf.distribute.MirroredStrategy(gpus or ["CPU:0"])
