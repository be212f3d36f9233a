"""TensorBoard's files."""

import contextlib
import functools
import logging
import os
import pathlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.files import staging

_log = logging.getLogger("elmo_tf")


class Board:
    """Writes TensorBoard's files; when that fails, it warns once and training continues.

    Args:
        logs: TensorBoard's log folder, made if it does not exist.
    """

    def __init__(self, logs: str | os.PathLike):
        self._logs = pathlib.Path(logs)
        self._failed = False
        self._profiling = False
        self._writer = tf.summary.create_noop_writer()
        with self._guarded():
            self._writer = tf.summary.create_file_writer(str(logs))

    def configuration(self, config: config_lib.Config, step: int) -> None:
        """Shows the configuration as a table of keys and values."""
        values = {name: functools.reduce(getattr, name.split("."), config) for name in sorted(config_lib.keys())}
        lines = ["| key | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in values.items())]
        with self._writing():
            tf.summary.text("configuration", "\n".join(lines), step)

    def scalars(self, group: str, values: dict[str, float], step: int) -> None:
        """Adds a point to the curve of each value."""
        with self._writing():
            for name, value in values.items():
                tf.summary.scalar(f"{group}/{name}", value, step)

    def histograms(self, group: str, values: dict[str, np.ndarray], step: int) -> None:
        """Adds a histogram of each array."""
        with self._writing():
            for name, array in values.items():
                tf.summary.histogram(f"{group}/{name}", array, step)

    def words(self, words: list[bytes], vectors: np.ndarray) -> None:
        """Replaces the projector's vectors and their words."""
        tensor = "".join("\t".join(f"{value:.5g}" for value in row) + "\n" for row in vectors)
        config = (
            'embeddings { tensor_name: "token vectors" '
            'tensor_path: "token_vectors.tsv" metadata_path: "token_vectors_words.tsv" }\n'
        )
        with self._guarded():
            staging.write_file(self._logs / "token_vectors.tsv", tensor.encode())
            staging.write_file(self._logs / "token_vectors_words.tsv", b"\n".join(words) + b"\n")
            staging.write_file(self._logs / "projector_config.pbtxt", config.encode())

    def start_profile(self) -> None:
        """Starts TensorFlow's profiler."""
        tf.profiler.experimental.start(str(self._logs))
        self._profiling = True

    def stop_profile(self) -> None:
        """Writes the profile, if one was started."""
        if self._profiling:
            self._profiling = False
            with self._guarded():
                tf.profiler.experimental.stop()
                _log.info("profile written to %s", self._logs / "plugins" / "profile")

    def flush(self) -> None:
        """Writes what is buffered."""
        with self._guarded():
            self._writer.flush()

    def close(self) -> None:
        """Writes what is left."""
        self.stop_profile()
        with self._guarded():
            self._writer.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._guarded(), self._writer.as_default():
            yield

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            if not self._failed:
                _log.warning("warning: TensorBoard's files in %s cannot be written: %s", self._logs, error)
            self._failed = True
