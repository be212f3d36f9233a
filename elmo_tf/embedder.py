"""Vectors of sentences: what programs, Beam's workers, the probes and the command line use."""

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from elmo_tf import engines, sources
from elmo_tf.engines import Words
from elmo_tf.errors import InputError
from elmo_tf.text import tokenizers
from elmo_tf.text.batches import BATCH_TOKENS, batches, equal_items, pieces
from elmo_tf.text.tokenizers import Text, split_texts

if TYPE_CHECKING:  # what `encode` does not need is imported where it is used
    from elmo_tf.scoring import Context, Filled, Score, Surprisal

LAYERS = ("all", "top", "average", "sum", "mix")
Layers = str | int  # one of `LAYERS`, or a layer's number, 0 being the token layer
POOLS = ("mean", "max")

Progress = bool | Callable[[int, int], None] | None


class Encoded(NamedTuple):
    """The vectors of a sentence, and the tokens that they belong to."""

    tokens: list[str]  # as the tokenizer split it
    vectors: np.ndarray  # float32 `(tokens, dim)`; `(num_layers, tokens, dim)` for all layers


class Embedder:
    """A model in use; see `elmo_tf.load`. Several threads may use it at the same time.

    Args:
        source: where the model comes from: its sizes and its tokenizer; also an attribute.
        batch_tokens: the largest number of positions in a batch of several sentences.
        num_threads: for several processes on one machine: TensorFlow computes, with this many threads, and takes a
            GPU's memory as needed, unless it has computed before. None: TensorFlow's settings stay as they are.
        engine: what computes, as for `load`.

    Raises:
        InputError: if a file is damaged, or the engine or this CPU does not have the source's precision.
        ModuleNotFoundError: if TensorFlow or tensorflow-text is needed and not installed.
    """

    def __init__(
        self,
        source: sources.Source,
        batch_tokens: int = BATCH_TOKENS,
        num_threads: int | None = None,
        engine: engines.Name | None = None,
    ):
        if source.tokenizer == "unicode":
            from elmo_tf import extras  # noqa: PLC0415 - see the top

            extras.check_installed("tensorflow_text")
        self.source = source
        self._batch_tokens = batch_tokens
        self._engines = engines.Engines(source, engine, num_threads)
        self._engines.chosen()  # reads the model

    @property
    def engine(self) -> engines.Name:
        """What computes, `"numpy"` or `"tensorflow"`."""
        return self._engines.name

    def __repr__(self) -> str:
        return f"Embedder({self.source.name!r}: {self.source.num_layers} layers of {self.source.dim})"

    def without_memory(self) -> "Embedder":
        """Returns the same model, its weights shared, whose results depend, to the last bit, on its own calls alone.

        Otherwise, a token's vector is that of the first call with this token, where rounding depends on other tokens.
        """
        copied = copy.copy(self)
        copied._engines = self._engines.without_memory()
        return copied

    def encode(
        self,
        texts: Iterable[Text],
        layers: Layers = "mix",
        pool: Literal["mean", "max"] | None = None,
        progress: Progress = None,
        batch_size: int | None = None,
    ) -> list[Encoded] | np.ndarray:
        """Returns the vectors of each text, in the order of the texts.

        A text's vectors depend on that text alone. Texts of about the same length are computed together.

        Args:
            texts: any number of sentences, split by the model's tokenizer, or of lists of tokens.
            layers: `"mix"`, the ELMo vector with the model's own weights; the `"top"` layer; the `"average"` or the
                `"sum"` of all layers; the number of a layer, 0 being the token layer; or `"all"` layers.
            pool: None: a vector for each token. `"mean"` or `"max"`: a vector for each text, over its tokens; zeros
                for a text without tokens.
            progress: True: a bar on stderr; a new line every ten seconds where that is not a terminal, as in a
                notebook. A function: called after each batch with the number of texts done and the number of all texts.
            batch_size: the largest number of texts that are computed together. None: up to 2,048
                positions, padding included; that limit always applies.

        Returns:
            for each text its tokens and vectors, float32 `(tokens, dim)`; with `pool`, an array, float32 `(texts,
            dim)`. With all layers, `(num_layers, tokens, dim)` and `(texts, num_layers, dim)`.

        Raises:
            InputError: for another type or value of an argument.
        """
        check_layers(layers, self.source.num_layers)
        if batch_size is not None:
            check_count(batch_size, "batch_size")
        if pool is not None and pool not in POOLS:
            raise InputError("pool", f"None or one of {', '.join(POOLS)}", repr(pool))
        sentences = split_texts(texts, self.source.tokenizer)
        shape, report = self.source.shape(layers), _reporter(progress)
        done = sum(not sentence for sentence in sentences)

        def count(batch: list[int]) -> None:
            nonlocal done
            done += len(batch)
            if report:
                report(done, len(sentences))

        embedded = self.embed(sentences, layers, count, batch_size)
        if pool:
            pooled = np.zeros((len(sentences), *shape), np.float32)
            for index, vectors in embedded:
                pooled[index] = vectors.mean(-2) if pool == "mean" else vectors.max(-2)
            return pooled
        token_vectors = [np.zeros((*shape[:-1], 0, shape[-1]), np.float32)] * len(sentences)
        for index, vectors in embedded:
            token_vectors[index] = vectors.copy()  # so that the batch's memory can be freed, and equal texts share none
        tokens = ([token.decode(errors="replace") for token in sentence] for sentence in sentences)
        return [Encoded(*pair) for pair in zip(tokens, token_vectors, strict=True)]

    def score(self, texts: Iterable[Text], progress: Progress = None) -> "list[Score]":
        """Returns the log-probabilities of each text, in the order of the texts.

        Args:
            texts: as for `encode`; each is a sentence, which starts from the zero state.
            progress: as for `encode`.

        Raises:
            InputError: for another type of an argument, or if the source has no softmax.
        """
        from elmo_tf import scoring  # noqa: PLC0415 - see the top

        sentences = split_texts(texts, self.source.tokenizer)
        equal = equal_items(map(tuple, sentences))
        scores: dict[int, Score] = {}
        engine, report = self._engines.chosen(sum(map(len, sentences))), _reporter(progress)
        # Even a sentence without tokens has a boundary to predict.
        for batch in batches([len(sentences[indices[0]]) + 1 for indices in equal], self._batch_tokens):
            chosen = [equal[number] for number in batch]
            computed = scoring.score(engine, [sentences[indices[0]] for indices in chosen])
            for (first, *others), score in zip(chosen, computed, strict=True):
                scores |= {first: score, **{index: copy.deepcopy(score) for index in others}}
            if report:
                report(len(scores), len(sentences))
        return [scores[index] for index in range(len(sentences))]

    def surprisal(self, texts: Iterable[Text], context: "Context" = "sentence") -> "list[Surprisal]":
        """Returns the surprisal of each word (words are separated by white space); computed in NumPy.

            rows = pandas.DataFrame(model.surprisal(open("passages.txt")))

        Args:
            texts: the lines of a text, each a sentence or a list of words; blank lines separate passages.
            context: the initial LSTM state of each sentence: `"sentence"`, zeros; or `"passage"`, both directions'
                states after the sentence before it, as in training: the backward state does not come from the sentence
                after.

        Raises:
            InputError: for another type or value of an argument, or if the source has no softmax.
        """
        from elmo_tf import scoring  # noqa: PLC0415 - see the top

        scoring.check_context(context)
        sentences = scoring.numbered(split_texts(texts, "whitespace"), self.source.tokenizer)
        # By passage, or passage and number. A time step of a few passages is slow.
        fields, max_positions = (1, 8 * self._batch_tokens) if context == "passage" else (2, self._batch_tokens)
        groups = [list(group) for _, group in itertools.groupby(sentences, lambda sentence: sentence[:fields])]
        equal = equal_items(tuple(tuple(sentence.words) for sentence in group) for group in groups)
        firsts = [groups[indices[0]] for indices in equal]
        words: dict[int, list[Surprisal]] = {}
        numpy_engine = self._engines.numpy()
        for batch in batches([sum(len(sentence.tokens) + 1 for sentence in group) for group in firsts], max_positions):
            computed = scoring.surprisal(numpy_engine, [firsts[number] for number in batch])
            for number, group_words in zip(batch, computed, strict=True):
                words |= {index: scoring.renumbered(group_words, groups[index]) for index in equal[number]}
        return [word for index in range(len(groups)) for word in words[index]]

    def fill(self, text: Text, top: int = 10, word: str | None = None) -> "list[Filled]":
        """Returns the words of the vocabulary that fit best at one position of a sentence, the likeliest first.

        A word's score is proportional to the product of both directions' probabilities divided by the word's own, which
        follows Zipf's law: rare words that fit come before frequent ones that do not.

        Args:
            text: a sentence or its tokens, with `[MASK]` at the position.
            top: how many words to return.
            word: the token to find substitutes for, instead of `[MASK]`; the text has it once.

        Raises:
            InputError: if the text does not have `[MASK]` or the word exactly once, or the source has no softmax.
        """
        from elmo_tf import scoring  # noqa: PLC0415 - see the top

        check_count(top, "top")
        tokens, position = scoring.masked(text, word, self.source.tokenizer)
        return list(scoring.fill(self._engines.numpy(), tokens, position, top))

    def embed(
        self,
        sentences: Sequence[Words],
        layers: Layers = "all",
        progress: Callable[[list[int]], None] | None = None,
        batch_size: int | None = None,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the vectors of each sentence that has tokens, with its index in `sentences`, the shortest first.

        Equal sentences are computed once and get the same array. The batches depend only on the lengths of the others.

        Args:
            sentences: of any lengths.
            layers: as for `encode`.
            progress: called after each batch with the indices of its sentences.
            batch_size: as for `encode`.

        Yields:
            the index, and float32 `(num_layers, tokens, dim)` for "all", else `(tokens, dim)`.
        """
        engine, equal = self._engines.chosen(), equal_items(map(tuple, sentences))
        for batch in batches([len(sentences[indices[0]]) for indices in equal], self._batch_tokens, batch_size):
            chosen = [sentences[equal[number][0]] for number in batch]
            if len(parts := pieces(chosen[-1])) > 1:  # it is alone in its batch
                computed = [np.concatenate([engine.vectors([part], layers == "mix")[0] for part in parts], axis=-2)]
            else:
                computed = engine.vectors(chosen, layers == "mix")
            for number, vectors in zip(batch, computed, strict=True):
                selected = _select_layers(vectors, layers)
                yield from ((index, selected) for index in equal[number])
            if progress:
                progress([index for number in batch for index in equal[number]])


def load(
    source: sources.Path,
    tokenizer: str | None = None,
    precision: str = "float32",
    engine: engines.Name | None = None,
) -> Embedder:
    """Returns a model that is ready to encode sentences.

    It is built in memory from the source's weights, and each sentence starts from the zero state. The mix is that of a
    SavedModel, or else the average of the layers. For a SavedModel's signatures, use `tf.saved_model.load`.

    Args:
        source: a SavedModel (its version's folder, or the model's with the newest version), a workdir, a folder of
            `options.json` and `weights.hdf5`, the pair of these two files, the name of a published model (`elmo-tf
            models` lists them) or the address of one on Hugging Face's hub, `hf://owner/name` or
            `hf://owner/name@revision`; the last two are fetched at their first use.
        tokenizer: how sentences are split: `"whitespace"`, `"penn"`, `"unicode"` or `"characters"`; None: as a
            SavedModel was exported, as a workdir's text was split, as `options.json` says, `"penn"` for `english`, or
            else at white space.
        precision: of the matrix products in `encode`: `"float32"`, or `"bfloat16"`, which is faster for large models in
            batches on CPUs with AMX. `score` and `fill` compute in float32.
        engine: what computes: `"numpy"`, which starts at once, or `"tensorflow"`, which scores faster. Their results
            differ by rounding, by up to 5e-6. None: NumPy for published files and names; TensorFlow for SavedModels and
            workdirs, which only it can read, and for bfloat16.

    Raises:
        InputError: if it is none of these, a file is damaged, a published model cannot be fetched, or the engine or
            this CPU does not have the precision.
        ModuleNotFoundError: if TensorFlow or tensorflow-text is needed and not installed.

    Examples:
        >>> elmo = elmo_tf.load("english")
        >>> for sentence in elmo.encode(["The bank lends money.", "A bank of the river."]):
        ...     print(sentence.tokens, sentence.vectors.shape)
        ['The', 'bank', 'lends', 'money', '.'] (5, 256)
        ['A', 'bank', 'of', 'the', 'river', '.'] (6, 256)
        >>> elmo.encode(["The bank lends money."], pool="mean").shape
        (1, 256)
    """
    model = sources.find(source).with_precision(precision)
    if tokenizer is not None:
        tokenizers.check(tokenizer)
        model = dataclasses.replace(model, tokenizer=tokenizer)
    return Embedder(model, engine=engine)


def check_layers(layers: Layers, num_layers: int | None = None) -> None:
    """Raises `InputError` unless `layers` is in `LAYERS`, or is the number of one of `num_layers` layers."""
    is_number = isinstance(layers, int | np.integer) and not isinstance(layers, bool)
    if layers in LAYERS if isinstance(layers, str) else is_number and 0 <= layers < (num_layers or layers + 1):
        return
    numbers = "a layer's number" if num_layers is None else f"0 to {num_layers - 1}"
    raise InputError("layers", f"one of {', '.join(LAYERS)}, or {numbers}", repr(layers))


def check_count(value: object, parameter: str) -> None:
    """Raises `InputError` about `parameter` unless a value is a whole number from 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InputError(parameter, "a whole number, at least 1", repr(value))


def _select_layers(vectors: np.ndarray, layers: Layers) -> np.ndarray:
    """Selects or combines layers, given the mix or all of them, `(num_layers, tokens, dim)`."""
    if layers in ("all", "mix"):
        return vectors
    if layers == "average":
        return vectors.mean(axis=0, dtype=np.float32)
    if layers == "sum":
        return vectors.sum(axis=0, dtype=np.float32)
    return vectors[-1 if layers == "top" else layers]


def _reporter(progress: Progress) -> Callable[[int, int], None] | None:
    if isinstance(progress, bool):
        from elmo_tf.files.progress import reporter  # noqa: PLC0415 - see the top

        return reporter("{bar} {:,} of {:,} texts") if progress else None
    if progress is not None and not callable(progress):
        raise InputError("progress", "True, False or a function of two numbers", repr(progress))
    return progress
