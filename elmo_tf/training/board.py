"""TensorBoard's files."""

import contextlib
import logging
import operator
import os
import pathlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf.files import stores

_log = logging.getLogger("elmo_tf")

# Descriptions of TensorBoard's cards, by tag or by group.
_DESCRIPTIONS = {
    "configuration": "The settings of the run.",
    "learning/loss_forward_nats": "Forward loss: mean nats per training token, with sampled softmax.",
    "learning/loss_backward_nats": "Backward loss: mean nats per training token, with sampled softmax.",
    "learning/perplexity_sampled_softmax": "exp of the mean of both losses: of training text and with sampled softmax, "
    "so it cannot be compared with the held-out perplexity.",
    "learning/epoch": "Passes over the training text so far.",
    "learning/tokens_per_second": "Training tokens per second, without evaluations.",
    "optimizer/gradient_norm_before_clip": "Global norm of the gradients.",
    "optimizer/gradient_norm_after_clip": "The same, but at most train.clip_norm.",
    "optimizer/learning_rate": "The learning rate of the step.",
    "heldout/perplexity": "Held-out perplexity with the full softmax: exp of the mean of both directions' losses.",
    "heldout/forward_perplexity": "Held-out perplexity of the forward direction, with the full softmax.",
    "heldout/backward_perplexity": "Held-out perplexity of the backward direction, with the full softmax.",
    "sampled_against_full_softmax": "Loss of one training window, without dropout, with the sampled or the full "
    "softmax, in nats per token.",
    "update_to_weight": "Norm of this step's change of the layer's weights, divided by the norm of the weights.",
    "weight_histograms": "The layer's weights; of a large layer, a sample.",
    "output_histograms": "The layer's outputs for one training window, without dropout.",
}


def _description(tag: str) -> str:
    return _DESCRIPTIONS.get(tag) or _DESCRIPTIONS[tag.partition("/")[0]]


class Board:
    """Writes TensorBoard's files; if that fails, it warns once and training continues.

    Args:
        run: the folder of a run, made if it does not exist; TensorBoard names the run by its path.
    """

    def __init__(self, run: str | os.PathLike):
        self._run = pathlib.Path(run)
        self._failed = False
        self._profiling = False
        self._writer = tf.summary.create_noop_writer()
        with self._warn_once():
            self._writer = tf.summary.create_file_writer(str(self._run))

    def configuration(self, config: config_lib.Config, step: int) -> None:
        """Shows the configuration as a table of keys and values."""
        values = {name: operator.attrgetter(name)(config) for name in sorted(config_lib.keys())}
        lines = ["| key | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in values.items())]
        with self._writing():
            tf.summary.text("configuration", "\n".join(lines), step, _description("configuration"))

    def scalars(self, group: str, values: dict[str, float], step: int) -> None:
        """Adds a point to the curve of each value."""
        with self._writing():
            for name, value in values.items():
                tag = f"{group}/{name}"
                tf.summary.scalar(tag, value, step, _description(tag))

    def histograms(self, group: str, values: dict[str, np.ndarray], step: int) -> None:
        """Adds a histogram of each array."""
        with self._writing():
            for name, array in values.items():
                tf.summary.histogram(f"{group}/{name}", array, step, description=_description(group))

    def words(self, words: list[bytes], vectors: np.ndarray) -> None:
        """Replaces the projector's vectors and their words."""
        tensor = "".join("\t".join(f"{value:.5g}" for value in row) + "\n" for row in vectors)
        config = (
            'embeddings { tensor_name: "token vectors" '
            'tensor_path: "token_vectors.tsv" metadata_path: "token_vectors_words.tsv" }\n'
        )
        with self._warn_once():
            stores.write(self._run / "token_vectors.tsv", tensor.encode())
            stores.write(self._run / "token_vectors_words.tsv", b"\n".join(words) + b"\n")
            stores.write(self._run / "projector_config.pbtxt", config.encode())

    def start_profile(self) -> None:
        """Starts TensorFlow's profiler."""
        with self._warn_once():  # another profiler may be active
            tf.profiler.experimental.start(str(self._run))
            self._profiling = True

    def stop_profile(self) -> None:
        """Writes the profile, if profiling was started."""
        if self._profiling:
            self._profiling = False
            with self._warn_once():
                tf.profiler.experimental.stop()
                _log.info("profile written to %s", self._run / "plugins" / "profile")

    def flush(self) -> None:
        """Writes buffered events."""
        with self._warn_once():
            self._writer.flush()

    def close(self) -> None:
        """Writes and closes the files."""
        self.stop_profile()
        with self._warn_once():
            self._writer.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._warn_once(), self._writer.as_default():
            yield

    @contextlib.contextmanager
    def _warn_once(self) -> Iterator[None]:
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            if not self._failed:
                _log.warning("warning: TensorBoard's files in %s cannot be written: %s", self._run, error)
            self._failed = True
