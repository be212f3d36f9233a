"""Perplexity on held-out text: the full softmax, every token, each direction."""

import contextlib
import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from elmo_tf.errors import InputError, memory_explained
from elmo_tf.files.progress import ProgressLine, counted
from elmo_tf.model.bilm import BiLM
from elmo_tf.records import record_folder
from elmo_tf.records.windows import Window, Windows, prefetch
from elmo_tf.text.vocabulary import END_ID, UNKNOWN_ID
from elmo_tf.training import coordination, replicas
from elmo_tf.workdir.folder import Workdir

_ASK_EVERY = 20  # windows between collective stop checks


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    Perplexities are exp of the mean nats per token; `perplexity` is exp of the mean of both directions' means.
    """

    forward_perplexity: float
    backward_perplexity: float
    perplexity: float
    tokens: int  # predicted by each direction: the words and one boundary per sentence
    unknown_rate: float  # share of these that are <UNK>
    words: int  # tokens of the text, without boundaries, as `preprocess` counts them
    streams: int  # number of streams of sentences; the LSTM state is carried along each
    unroll_steps: int  # tokens per window

    def summary(self) -> str:
        """Returns the perplexities and what they depend on, for a line of the log."""
        directions = f"forward {self.forward_perplexity:.1f}, backward {self.backward_perplexity:.1f}"
        return (
            f"held-out perplexity {self.perplexity:.1f} ({directions}), "
            f"{counted(self.streams, 'stream')} of {counted(self.unroll_steps, 'token')} per window"
        )


class Evaluator:
    """Evaluates one network repeatedly; its graph is built once.

    The streams are divided among the replicas, each of which carries its streams' states along. Neither the number of
    streams nor, but for rounding, the result depends on the number of replicas.

    Args:
        bilm: a network with a softmax; each call uses its weights at that time.
        strategy: the replicas that have the network; None: no strategy. All its workers must make the same calls.
    """

    def __init__(self, bilm: BiLM, strategy: tf.distribute.Strategy | None = None):
        self._bilm = bilm
        self._strategy = strategy or tf.distribute.get_strategy()
        self._workers = coordination.of(self._strategy)
        self._losses = tf.function(
            lambda window, states: self._strategy.run(bilm.language_model_losses, args=(window, states)),
            autograph=False,
        )

    def parts(
        self,
        records: record_folder.Records,
        counts: Sequence[int | None],
        batch_size: int,
        unroll_steps: int,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> list[Evaluation]:
        """Evaluates on parts of `records`, which all start at its first sentence, in one pass.

        Args:
            records: the held-out text.
            counts: windows of each part, in ascending order; None, only as the last one: all.
            batch_size: number of streams. A stream that ends gets the next sentence, and its LSTM state is carried on.
            unroll_steps: tokens per window. Sentences are assigned to streams window by window; so with several
                streams both numbers decide which sentences follow each other, and change the result a little.
            interrupted: asked between windows; once it returns True on any worker, the result is empty.
        """
        if not counts:
            return []
        sums, found = np.zeros(5), []
        most, line = counts[-1], ProgressLine(at_once=False)
        total = num_tokens(records) if most is None else min(num_tokens(records), most * batch_size * unroll_steps)
        stopped = False
        with contextlib.closing(self._summed(records, batch_size, unroll_steps, interrupted)) as windows:
            for number, window_sums in enumerate(itertools.islice(windows, most), 1):
                sums += window_sums
                found += [self._workers.gathered(sums).sum(axis=0) for count in counts if count == number]
                if self._workers.is_chief and line.due():
                    done = min(total, number * batch_size * unroll_steps)
                    line.show(f"evaluating {done:,}/{total:,} tokens, sentence boundaries included")
                stopped = self._workers.any_every(_ASK_EVERY, number, interrupted())
                if stopped:
                    break
        if self._workers.is_chief:
            line.clear()
        if stopped or self._workers.any(interrupted()):
            return []
        # The text may have ended before that many windows.
        found += [self._workers.gathered(sums).sum(axis=0) for _ in counts[len(found) :]]
        return [_evaluation(sums, batch_size, unroll_steps) for sums in found]

    def _summed(
        self,
        records: record_folder.Records,
        batch_size: int,
        unroll_steps: int,
        interrupted: Callable[[], bool],
    ) -> Iterator[np.ndarray]:
        """Yields this process's sums over each window: nats forward and backward, tokens, words, unknown ones."""
        rows = -(-batch_size // self._strategy.num_replicas_in_sync)  # of each replica
        mine = replicas.local_rows(self._strategy, rows)
        cut = range(min(mine.start, batch_size), min(mine.stop, batch_size))
        zeros = tf.nest.map_structure(np.asarray, self._bilm.zero_states(len(mine)))
        states = replicas.distribute(self._strategy, zeros, rows, mine.start)
        max_chars = self._bilm.config.char_cnn.max_chars_per_token
        made = iter(Windows(records, batch_size, unroll_steps, max_chars, epochs=1, rows=cut))
        # Several workers stop at the same window, or one would wait for the others.
        asked = interrupted if self._workers.is_alone else lambda: False
        with contextlib.closing(prefetch(made, interrupted=asked)) as windows:
            for window, _ in windows:
                filled = _with_rows(window, len(mine))
                losses, states = self._losses(replicas.distribute(self._strategy, filled, rows, mine.start), states)
                yield np.array([*map(self._nats, losses), *_counts(window)])

    def _nats(self, losses) -> float:
        local = self._strategy.experimental_local_results(losses)
        return sum(np.sum(value.numpy(), dtype=np.float64) for value in local)


def _with_rows(window: Window, rows: int) -> Window:
    """Returns the window with masked rows at its end, `rows` in all."""
    missing = rows - len(window.mask)
    if not missing:
        return window
    return Window(*(np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)]) for array in window))


def _counts(window: Window) -> tuple[int, int, int]:
    """Returns how many tokens, words and unknown words a window predicts in each direction."""
    tokens, words = window.mask.sum(), (window.mask & (window.forward_targets != END_ID)).sum()
    return int(tokens), int(words), int((window.forward_targets == UNKNOWN_ID).sum())


def _evaluation(sums: np.ndarray, batch_size: int, unroll_steps: int) -> Evaluation:
    tokens, words, unknown = map(int, sums[2:])
    forward, backward = sums[:2] / tokens
    perplexities = (float(np.exp(value)) for value in (forward, backward, (forward + backward) / 2))
    return Evaluation(*perplexities, tokens, unknown / tokens, words, batch_size, unroll_steps)


def evaluate(
    bilm: BiLM,
    records: record_folder.Records,
    batch_size: int = 32,
    unroll_steps: int = 20,
    strategy: tf.distribute.Strategy | None = None,
) -> Evaluation:
    """Evaluates `bilm` on all of `records`; arguments as for `Evaluator` and `Evaluator.parts`.

    Raises:
        InputError: if the memory is not sufficient.
    """
    with memory_explained("batch_size", "fewer streams"):
        return Evaluator(bilm, strategy).parts(records, [None], batch_size, unroll_steps)[0]


def num_tokens(records: record_folder.Records) -> int:
    """Returns how many tokens each direction predicts in a text: its words, and a boundary for each sentence."""
    return records.info.tokens + records.info.sentences


def text_id(records: record_folder.Records, *more: int) -> str:
    """Returns a checksum of the text of `records` and of the given numbers."""
    shards = [shard.sha256 for shard in records.info.shards]
    return hashlib.sha256(" ".join([*shards, *map(str, more)]).encode()).hexdigest()


def check_records(workdir: Workdir, *texts: record_folder.Records | None) -> None:
    """Raises `InputError`, naming one of the folders, if a workdir's network cannot read one of the texts."""
    if workdir.vocabulary is None:
        raise InputError(str(workdir.path), "a model with a softmax", "one without; elmo-tf finetune adds one")
    needed = workdir.config.model.char_cnn.max_chars_per_token
    for records in filter(None, texts):
        if workdir.vocabulary.sha256() != records.vocabulary.sha256():
            raise InputError(
                str(records.path),
                f"records made with the model's vocabulary of {len(workdir.vocabulary):,} words "
                "(elmo-tf preprocess --vocab)",
                f"another one of {len(records.vocabulary):,}",
            )
        if records.info.max_chars_per_token < needed:
            found = records.info.max_chars_per_token
            raise InputError(str(records.path), f"records with at least {needed} characters per token", found)
