"""Keras's `compile` and `fit` for the language model, with the windows, losses, gradients and clip of `loop.py`.

The optimizer, its learning rate, the batch size and the length are Keras's; the rest of the recipe is `config.train`.
"""

import os
import pathlib
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from elmo_tf import config as config_lib
from elmo_tf import precision
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.records import record_folder
from elmo_tf.records.windows import Window, Windows
from elmo_tf.text import char_ids as char_ids_lib
from elmo_tf.text import vocabulary as vocabulary_lib
from elmo_tf.training import optimizer as optimizers
from elmo_tf.training.step import replica_gradients
from elmo_tf.workdir import folder


def windows(
    data: str | os.PathLike,
    batch_size: int,
    unroll_steps: int = 20,
    seed: int = 0,
    heldout: bool = False,
    max_chars_per_token: int = char_ids_lib.MAX_CHARS_PER_TOKEN,
) -> tf.data.Dataset:
    """Returns a dataset of windows of text for a `LanguageModel`; each continues the rows of the one before.

    Args:
        data: a folder of records.
        batch_size: streams of sentences, the rows of a window, of all replicas together.
        unroll_steps: tokens of a stream per window, as the model's `train.unroll_steps`.
        seed: shuffles the sentences, differently in each pass over the text; as `train.seed` of `train`.
        heldout: False: the dataset is endless, and an epoch of `fit` is one pass over the text unless it is given
            `steps_per_epoch`. True, for `evaluate` and `validation_data`: one pass in the order of the files, with
            every token once; the last windows are padded.
        max_chars_per_token: as the model's `model.char_cnn.max_chars_per_token`.
    """
    if min(batch_size, unroll_steps) < 1:
        raise InputError("batch_size, unroll_steps", "at least 1", f"{batch_size}, {unroll_steps}")
    records = record_folder.open_folder(data)
    order, epochs = (None, 1) if heldout else (seed, None)
    cut = Windows(records, batch_size, unroll_steps, max_chars_per_token, order, epochs)

    def rows():
        # A row has its own tokens, because replicas divide the rows among them.
        for window, _ in cut:
            words = np.stack([window.forward_words, window.backward_words], 1)
            yield window._replace(char_ids=window.char_ids[words], mask=window.mask.astype(np.int32))

    ids = tf.TensorSpec((batch_size, unroll_steps), tf.int32)
    char_ids = tf.TensorSpec((batch_size, 2, unroll_steps, max_chars_per_token), tf.int32)
    dataset = tf.data.Dataset.from_generator(rows, output_signature=Window(char_ids, *[ids] * 6))
    if not heldout:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    dataset = dataset.prefetch(4)
    dataset.records = records
    dataset.steps_per_epoch = None if heldout else -(-records.num_tokens // (batch_size * unroll_steps))
    return dataset


class MeanLoss(keras.metrics.Mean):
    """The mean of losses, and its exponential."""

    def result(self):
        mean = super().result()
        return {"loss": mean, "perplexity": tf.exp(mean)}


@keras.saving.register_keras_serializable("elmo_tf")
class LanguageModel(keras.Model):
    """A biLM and its softmax, to be trained by Keras's `fit` on the dataset of `elmo_tf.windows`.

    The gradient is that of the mean of both directions' losses times `unroll_steps`, summed over the replicas and
    clipped once, as in `elmo_tf.train`; an optimizer needs no clip of its own, nor `compile` a loss. `loss` is the mean
    of the directions' nats per token: in `fit` with dropout and against `num_sampled` words, in `evaluate` against all.

    The LSTM states after a window are the model's own state, from which the next window starts: Keras has no argument
    for them. Each replica has those of its rows. They are zero when `fit` begins and are never saved; `evaluate` has
    its own. Everywhere else in this package, states are arguments and results.

    Args:
        config: the model's sizes and, in `train`, the recipe except optimizer, learning rate, batch size and length.
        vocabulary: the folder of records whose words the softmax predicts.
        tokenizer: of the text; None: as in the records.

    Examples:
        >>> config = elmo_tf.preset("tiny")
        >>> data = elmo_tf.windows("data/train", batch_size=64, unroll_steps=config.train.unroll_steps)
        >>> model = elmo_tf.LanguageModel(config, "data/train")
        >>> model.compile(keras.optimizers.Adagrad(0.2, initial_accumulator_value=1.0))
        >>> history = model.fit(data, epochs=1, verbose=0)
        >>> sorted(history.history)
        ['loss', 'perplexity']
    """

    def __init__(
        self,
        config: config_lib.Config,
        vocabulary: str | os.PathLike | vocabulary_lib.Vocabulary,
        tokenizer: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(dtype="float32", **kwargs)
        self.supports_jit = False  # as `BiLM`
        if isinstance(vocabulary, vocabulary_lib.Vocabulary):  # of a file
            records, path = None, pathlib.Path()
        else:
            records = record_folder.open_folder(vocabulary)
            path, vocabulary, tokenizer = records.path, records.vocabulary, tokenizer or records.info.tokenizer
        folder.check_memory(config, len(vocabulary))
        # Describes this training as a workdir would.
        self.described = folder.Workdir(path, precision.resolved(config), vocabulary, tokenizer or "whitespace")
        self.described.check_records(records)
        self.bilm = self.described.new_bilm(self.described.config.train.precision)
        self.train_states, self.test_states = self._new_states(), self._new_states()
        self.mean_loss = MeanLoss()
        self.built = True

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """Only the mean loss with its perplexity."""
        return [self.mean_loss]

    def get_config(self):
        about = self.described
        config = {"config": config_lib.to_dict(about.config), "vocabulary": about.vocabulary.to_bytes().decode()}
        return config | {"tokenizer": about.tokenizer, "name": self.name}

    @classmethod
    def from_config(cls, config):
        words = vocabulary_lib.from_bytes(config["vocabulary"].encode(), "vocabulary")
        return cls(**config | {"config": config_lib.from_dict(config["config"]), "vocabulary": words})

    def fit(self, x=None, *, steps_per_epoch=None, **options):
        """Trains like Keras's `fit`, from zero states, on a dataset of `elmo_tf.windows`; `x` is the dataset."""
        steps_per_epoch = steps_per_epoch or getattr(x, "steps_per_epoch", None)
        self._begin(x, self.train_states, "steps_per_epoch", steps_per_epoch)
        return super().fit(x, steps_per_epoch=steps_per_epoch, **{"shuffle": False} | options)

    def evaluate(self, x=None, *, steps=None, **options):
        """Evaluates like Keras's `evaluate`, from zero states, on a dataset of `elmo_tf.windows(..., heldout=True)`."""
        self._begin(x, self.test_states, "steps", steps)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Your input ran out of data")  # Keras does not know where it ends
            return super().evaluate(x, steps=steps, **options)

    def train_step(self, window):
        config, count = self.described.config.train, self.distribute_strategy.num_replicas_in_sync
        window, num_streams = _with_table(window), count * window.mask.shape[0]
        seed = tf.stack([config.seed, tf.cast(self.optimizer.iterations, tf.int32)])
        variables = [variable.value for variable in self.trainable_variables]
        before = tf.nest.map_structure(tf.convert_to_tensor, self.train_states)
        forward, backward, gradients, states = replica_gradients(
            self.bilm, variables, window, before, config, seed, num_streams
        )
        summed, _ = optimizers.summed_and_clipped(gradients, config.clip_norm)
        # Keras's optimizer will sum over the replicas again, and would add squares of a row's duplicates.
        shares = [tf.convert_to_tensor(gradient) / count for gradient in summed]
        self.optimizer.apply(shares, self.trainable_variables)
        nats = 0.5 * (forward + backward) * (num_streams * config.unroll_steps)
        return self._finish(window, nats, self.train_states, states)

    def test_step(self, window):
        window = _with_table(window)
        states = tf.nest.map_structure(tf.convert_to_tensor, self.test_states)
        losses, states = self.bilm.language_model_losses(window, states)
        return self._finish(window, 0.5 * tf.reduce_sum(losses), self.test_states, states)

    def trained(self) -> tuple[folder.Workdir, BiLM, int]:
        """Returns what `elmo_tf.export` needs: config and words, the network outside of any strategy, steps made."""
        bilm = self.described.new_bilm()  # with float32 products
        for variable, value in zip(bilm.weights, self.bilm.weights, strict=True):
            variable.assign(value.numpy())
        return self.described, bilm, int(self.optimizer.iterations.numpy()) if self.optimizer else 0

    def _new_states(self) -> Any:
        """Returns variables for a biLM's states, separate on each replica, still without rows."""
        own, first = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.ONLY_FIRST_REPLICA
        return tf.nest.map_structure(
            lambda zero: tf.Variable(zero, False, shape=(None, zero.shape[1]), synchronization=own, aggregation=first),
            self.bilm.zero_states(0),
        )

    def _begin(self, x: Any, variables: Any, name: str, steps: int | None) -> None:
        """Checks a dataset and the number of its windows to take, and sets the states to zero."""
        if not isinstance(spec := getattr(x, "element_spec", None), Window):
            raise InputError("x", "a dataset of elmo_tf.windows", type(x).__name__)
        if steps is None and x.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise InputError(name, "this dataset has no end; set a number, or use elmo_tf.windows(..., heldout=True)")
        config, count = self.described.config, self.distribute_strategy.num_replicas_in_sync
        batch_size, unroll_steps = spec.mask.shape
        if batch_size % count:
            raise InputError("batch_size", f"a multiple of {count}, the number of replicas", batch_size)
        if unroll_steps != config.train.unroll_steps:
            raise InputError("unroll_steps", f"{config.train.unroll_steps}, as in the model's recipe", unroll_steps)
        if (max_chars := spec.char_ids.shape[-1]) != (needed := config.model.char_cnn.max_chars_per_token):
            raise InputError("max_chars_per_token", f"{needed}, as in the model", max_chars)
        self.described.check_records(getattr(x, "records", None))  # a dataset derived from it lacks them
        zeros = self.bilm.zero_states(batch_size // count)
        tf.nest.map_structure(lambda variable, zero: variable.assign(zero), variables, zeros)

    def _finish(self, window: Window, nats: tf.Tensor, variables: Any, states: Any) -> dict[str, tf.Tensor]:
        """Keeps the states after a window; returns the metrics, with its sum of nats, the mean of both directions."""
        tf.nest.map_structure(lambda variable, state: variable.assign(state), variables, states)
        tokens = tf.reduce_sum(tf.cast(window.mask, tf.float32))
        self.mean_loss.update_state(tf.math.divide_no_nan(nats, tokens), sample_weight=tokens)
        return self.mean_loss.result()


def _with_table(window: Window) -> Window:
    """Returns a replica's rows of a dataset's window as the network takes them."""
    words = tf.stack([window.forward_words, window.backward_words], 1)
    distinct, indices = tf.unique(tf.reshape(words, (-1,)))
    # The first of equal tokens represents all of them.
    first = tf.math.unsorted_segment_min(tf.range(tf.size(indices)), indices, tf.size(distinct))
    forward, backward = tf.unstack(tf.reshape(tf.gather(first, indices), words.shape), axis=1)
    table = tf.reshape(window.char_ids, (-1, window.char_ids.shape[-1]))
    return window._replace(
        char_ids=table, forward_words=forward, backward_words=backward, mask=tf.cast(window.mask, tf.bool)
    )
