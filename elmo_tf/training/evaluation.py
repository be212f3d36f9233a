"""Perplexity on held-out text: the full softmax, every token, each direction."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from elmo_tf.display import with_count
from elmo_tf.errors import explain_out_of_memory
from elmo_tf.files.progress import ProgressLine
from elmo_tf.records import record_folder
from elmo_tf.records.blocks import decode_examples
from elmo_tf.records.windows import Window, Windows, prefetch
from elmo_tf.text.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID
from elmo_tf.training import devices
from elmo_tf.training.workers import Alone, Workers

if TYPE_CHECKING:
    from elmo_tf.model.fast import BiLM

_STOP_CHECK_INTERVAL = 20  # windows between collective stop checks


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    Perplexities are exp of the mean nats per token; `perplexity` is exp of the mean of both directions' means.
    """

    forward_perplexity: float  # of each token, given what precedes it
    backward_perplexity: float  # given what follows it
    perplexity: float  # of both directions
    tokens: int  # predicted by each direction: the words and one boundary per sentence
    unknown_rate: float  # share of these that are `<UNK>`
    words: int  # tokens of the text, without boundaries, as `preprocess` counts them
    streams: int  # number of streams of sentences; the LSTM state is carried along each
    unroll_steps: int  # tokens per window

    def summary(self) -> str:
        """Returns the perplexities and what they depend on, for a line of the log."""
        directions = f"forward {self.forward_perplexity:.1f}, backward {self.backward_perplexity:.1f}"
        return (
            f"held-out perplexity {self.perplexity:.1f} ({directions}), "
            f"{with_count(self.streams, 'stream')} of {with_count(self.unroll_steps, 'token')} per window"
        )


class Evaluator:
    """Evaluates one network repeatedly; its graph is built once.

    The streams are divided among the replicas, each of which carries its streams' states along. The number of replicas
    changes neither the number of streams nor, except for rounding, the result.

    Args:
        bilm: a network with a softmax; each call uses its weights at that time.
        strategy: the replicas that have the network; None: no strategy.
        interrupted: asked between windows; once it returns True, the results of `parts` are empty.
        workers: the processes that divide the streams; the chief shows the progress.
    """

    def __init__(
        self,
        bilm: "BiLM",
        strategy: tf.distribute.Strategy | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        workers: Alone | Workers | None = None,
    ):
        self._bilm = bilm
        self._strategy = strategy or tf.distribute.get_strategy()
        self._interrupted = interrupted
        self._workers = workers or Alone()
        self._losses = tf.function(
            lambda window, states: self._strategy.run(bilm.language_model_losses, args=(window, states)),
            autograph=False,
        )

    def parts(
        self, records: record_folder.Records, counts: Sequence[int | None], batch_size: int, unroll_steps: int
    ) -> list[Evaluation]:
        """Evaluates on parts of `records`, which all start at its first sentence, in one pass.

        Args:
            records: the held-out text.
            counts: windows of each part, in ascending order; None, only as the last one: all.
            batch_size: number of streams. A stream that ends gets the next sentence, and its LSTM state is carried on.
            unroll_steps: tokens per window. Sentences are assigned to streams window by window; so with several
                streams both numbers decide which sentences follow each other, and change the result a little.
        """
        if not counts:
            return []
        sums, sums_of_parts = np.zeros(5), []  # of this process; of all
        max_windows, line = counts[-1], ProgressLine(at_once=False)
        tokens_per_window = batch_size * unroll_steps
        total = records.num_tokens if max_windows is None else min(records.num_tokens, max_windows * tokens_per_window)
        with contextlib.closing(self._window_sums(records, batch_size, unroll_steps)) as windows:
            for number, window_sums in enumerate(itertools.islice(windows, max_windows), 1):
                sums += window_sums
                sums_of_parts += [self._total(sums) for count in counts if count == number]
                if self._workers.is_chief and line.due():
                    done = min(total, number * tokens_per_window)
                    line.show(f"evaluating {done:,}/{total:,} tokens, sentence boundaries included")
                if self._workers.any_every(_STOP_CHECK_INTERVAL, number, self._interrupted()):
                    line.clear()
                    return []
        line.clear()
        if self._workers.any(self._interrupted()):
            return []
        # The text may have ended before that many windows.
        sums_of_parts += [self._total(sums) for _ in counts[len(sums_of_parts) :]]
        return [_evaluation(sums, batch_size, unroll_steps) for sums in sums_of_parts]

    def _total(self, sums: np.ndarray) -> np.ndarray:
        """Returns the sums over all streams, given those over the streams of this process."""
        return self._workers.gathered(sums).sum(axis=0)

    def _window_sums(
        self, records: record_folder.Records, batch_size: int, unroll_steps: int
    ) -> Generator[np.ndarray, None, None]:
        """Yields this process's sums over each window: nats forward and backward, tokens, words, unknown ones."""
        rows = -(-batch_size // self._strategy.num_replicas_in_sync)  # of each replica
        local_rows = devices.local_rows(self._strategy, rows)
        streams = range(min(local_rows.start, batch_size), min(local_rows.stop, batch_size))
        zeros = tf.nest.map_structure(np.asarray, self._bilm.zero_states(len(local_rows)))
        states = devices.distribute(self._strategy, devices.rows_of(zeros), rows, local_rows.start)
        max_chars = self._bilm.config.char_cnn.max_chars_per_token
        every_window = iter(Windows(records, batch_size, unroll_steps, max_chars, epochs=1, rows=streams))

        def stops_waiting() -> bool:
            return self._workers.count == 1 and self._interrupted()  # several workers stop at the same window

        with contextlib.closing(prefetch(every_window, interrupted=stops_waiting)) as windows:
            for window, _ in windows:
                padded = _pad_rows(window, len(local_rows))
                inputs = devices.distribute(self._strategy, padded.part, rows, local_rows.start)
                losses, states = self._losses(inputs, states)
                yield np.array([*map(self._nats, losses), *_counts(window)])

    def _nats(self, losses: Any) -> float:
        local = self._strategy.experimental_local_results(losses)
        return sum(np.sum(value.numpy(), dtype=np.float64) for value in local)


def _pad_rows(window: Window, rows: int) -> Window:
    """Returns the window with masked rows at its end, `rows` in all."""
    missing = rows - len(window.mask)
    return Window(*(np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)]) for array in window))


def _counts(window: Window) -> tuple[int, int, int]:
    """Returns how many tokens, words and unknown words a window predicts in each direction."""
    tokens, words = window.mask.sum(), (window.mask & (window.forward_targets != END_ID)).sum()
    return int(tokens), int(words), int((window.forward_targets == UNKNOWN_ID).sum())


def _evaluation(sums: np.ndarray, batch_size: int, unroll_steps: int) -> Evaluation:
    tokens, words, unknown = map(int, sums[2:])
    forward, backward = sums[:2] / tokens
    return Evaluation(
        forward_perplexity=float(np.exp(forward)),
        backward_perplexity=float(np.exp(backward)),
        perplexity=float(np.exp((forward + backward) / 2)),
        tokens=tokens,
        unknown_rate=unknown / tokens,
        words=words,
        streams=batch_size,
        unroll_steps=unroll_steps,
    )


def evaluate(
    bilm: "BiLM",
    records: record_folder.Records,
    batch_size: int = 32,
    unroll_steps: int = 20,
    strategy: tf.distribute.Strategy | None = None,
) -> Evaluation:
    """Evaluates `bilm` on all of `records`; arguments as for `Evaluator` and `Evaluator.parts`.

    Raises:
        InputError: if memory runs out.
    """
    with explain_out_of_memory("batch_size", "set fewer streams"):
        return Evaluator(bilm, strategy).parts(records, [None], batch_size, unroll_steps)[0]


def unigram_perplexity(records: record_folder.Records, heldout: record_folder.Records) -> float:
    """Returns the perplexity on `heldout` of word frequencies in `records`, each count plus 1.

    The model predicts the same tokens as a forward language model: the words and `</S>`.
    """

    def counts(folder: record_folder.Records) -> np.ndarray:
        total = np.zeros(len(folder.vocabulary), np.int64)
        for shard in folder.shards:
            if records := record_folder.read_shard(shard):
                total += np.bincount(decode_examples(records, len(total)).token_ids, minlength=len(total))
        total[BEGIN_ID] = 0
        return total

    seen, predicted = counts(records) + 1, counts(heldout)
    return float(np.exp(-(predicted * np.log(seen / seen.sum())).sum() / predicted.sum()))
