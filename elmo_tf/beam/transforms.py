"""Text to a folder of records in a pipeline of your own.

    import apache_beam as beam
    from elmo_tf.beam import CountWords, ReadSentences, WriteRecords

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        sentences = pipeline | ReadSentences("corpus/*.gz")
        short = sentences | beam.Filter(lambda tokens: len(tokens) < 100)
        vocabulary = short | CountWords(min_count=3)
        _ = short | WriteRecords("data/train", vocabulary)

`elmo-tf train` reads the folder. `elmo-tf preprocess` does the same without the filter, in the order of the text and
several times as fast: there text does not pass through Beam's shuffle.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.transforms import window

from elmo_tf.beam import corpus_tasks, job_config, output_folder, report
from elmo_tf.beam.preprocess import config, counts, info, shards
from elmo_tf.corpus import corpora, reading, sentences
from elmo_tf.errors import InputError
from elmo_tf.files import stores
from elmo_tf.records import record_folder
from elmo_tf.text import char_ids, tokenizers
from elmo_tf.text.tokenizers import to_bytes
from elmo_tf.text.vocabulary import Vocabulary

_TASK_BYTES = 8 << 20  # of text that one element of `ReadSentences`' tasks reads


class ReadSentences(beam.PTransform):
    """A pipeline -> its sentences, each a list of str, in no order.

    Irregular text (pipelines/README.md) is treated as by `elmo-tf preprocess`, but not counted.

    Args:
        patterns: files, folders, globs; plain or compressed.
        tokenizer: how lines are split, one of `"whitespace"`, `"penn"`, `"unicode"`, `"characters"`.
        line: what a line is, with `"penn"` and `"unicode"`: `"sentence"` (the default of `"penn"`), `"paragraph"`, or
            `"part"` (the default of `"unicode"`): paragraphs end at blank lines.

    Raises:
        InputError: if there is no pattern; when it is applied, if there are no such files or they are not text; on
            workers, if one is damaged or has changed.
        ModuleNotFoundError: when it is applied, if tensorflow-text is needed and not installed.
    """

    def __init__(self, patterns: str | Sequence[str], tokenizer: str = "whitespace", line: str | None = None):
        super().__init__()
        is_named = isinstance(patterns, str | os.PathLike) or all(patterns or [""])
        job_config.require("patterns", is_named and bool(patterns), "at least one file, folder or glob", patterns)
        self._config = job_config.JobConfig(input=patterns, output="", tokenizer=tokenizer, line=line)

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        corpus = reading.inspect(corpora.match(self._config.patterns), self._config.tokenizer)
        count = -(-sum(file.text_size for file in corpus) // _TASK_BYTES) or 1
        packed = corpus_tasks.pack(corpus)
        tasks = pbegin.pipeline | "Tasks" >> corpus_tasks.make_tasks(
            lambda: corpora.plan_in_order(corpus_tasks.unpack(packed), count)
        )
        return tasks | "Read" >> beam.ParDo(_Read(self._config.settings())).with_output_types(list[str])


class _Read(beam.DoFn):
    def __init__(self, settings: sentences.Settings):
        self._settings = settings

    def setup(self) -> None:
        self._reader = sentences.Reader(self._settings)

    @beam.typehints.no_annotations
    def process(self, task: corpora.Task) -> Iterator[list[str]]:
        for batch in self._reader.read(task):
            for words in batch.sentences:
                yield [word.decode() for word in words]


class CountWords(beam.PTransform):
    """Sentences, each a list of str or bytes -> one `Vocabulary`, as `elmo-tf preprocess` counts it.

    Args:
        min_count: words that occur less often are left out.
        max_size: words to keep, `<S>`, `</S>` and `<UNK>` among them; None: all.

    Raises:
        InputError: if `min_count` is below 1, `max_size` below 4, or the sentences are windowed; on a worker, if a
            token cannot be a word, there are no words, or none is frequent enough.
    """

    def __init__(self, min_count: int = 1, max_size: int | None = None):
        super().__init__()
        job_config.require_integer("min_count", min_count, 1)
        if max_size is not None:
            job_config.require_integer("max_size", max_size, config.MIN_VOCABULARY)
        self._min_count, self._max_size = min_count, max_size

    def expand(self, sentences: beam.PCollection) -> beam.PCollection:
        _check_windows(sentences)
        return (
            sentences
            | "ToBytes" >> beam.Map(_to_bytes)
            | "Count" >> beam.ParDo(counts.CountSentence())
            | "AddUp" >> counts.add_up(self._min_count, self._max_size)
            | "ToVocabulary" >> beam.Map(_to_vocabulary, self._min_count).with_output_types(Vocabulary)
        )


class WriteRecords(beam.PTransform):
    """Sentences, each a list of str or bytes -> a folder that `elmo-tf train` reads, and its `info.json` as a dict.

    A sentence's shard and its place in it follow from a hash of its words and the seed, so the same sentences give the
    same bytes in any order. A worker holds one shard in memory, the local runner all sentences.

    Args:
        folder: the folder to make, local or in a store.
        vocabulary: a `Vocabulary`, or a collection of one, as `CountWords` returns it.
        num_shards: files to write; those that get no sentence are left out.
        seed: of the hash.
        tokenizer: how the text was split; recorded as the default tokenizer of models trained on these records.

    Raises:
        InputError: if the folder exists and is not empty, another step of the pipeline writes it, or the sentences are
            windowed; on a worker, if a token cannot be a word or there are no sentences.
    """

    def __init__(
        self,
        folder: str,
        vocabulary: Vocabulary | beam.PCollection,
        num_shards: int = 1,
        seed: int = 0,
        tokenizer: str = "whitespace",
    ):
        super().__init__()
        job_config.require_integer("num_shards", num_shards, 1)
        job_config.require_integer("seed", seed, 0, config.MAX_SEED)
        tokenizers.check(tokenizer)
        output_folder.check(folder)
        if stores.exists(stores.join(folder, output_folder.FILE)):
            raise InputError(folder, "is the unfinished output of a command; run it again, or delete the folder")
        self._folder, self._vocabulary = job_config.output_path(folder), vocabulary
        self._num_shards, self._seed, self._tokenizer = num_shards, seed, tokenizer

    def expand(self, sentences: beam.PCollection) -> beam.PCollection:
        _check_windows(sentences)
        sentences.pipeline.visit(_OtherWriters(self, self._folder))
        words = self._vocabulary
        if isinstance(words, Vocabulary):
            words = sentences.pipeline | "GivenVocabulary" >> beam.Create([words])
        blob = beam.pvalue.AsSingleton(words | "ToBlob" >> beam.Map(lambda words: counts.Counted(words.to_bytes())))
        return (
            sentences
            | "ToBytes" >> beam.Map(_to_bytes)
            | "ChooseShard" >> beam.Map(self._with_shard)
            | "GroupShards" >> beam.GroupByKey()
            | "WriteShards" >> beam.Map(self._write, blob)
            | "ListShards" >> beam.combiners.ToList()
            | "Finish" >> beam.Map(self._finish, blob)
        )

    @beam.typehints.no_annotations
    def _with_shard(self, words: list[bytes]) -> tuple[int, list[bytes]]:
        return self._hash(words) % self._num_shards, words

    @beam.typehints.no_annotations
    def _write(self, grouped: tuple[int, Iterable[list[bytes]]], words: counts.Counted) -> shards.TaskResult:
        number, group = grouped
        name = record_folder.shard_name(number, self._num_shards)
        ordered, repeats, previous = [], 0, None
        for sentence in sorted(filter(None, group)):
            # Spreads a repeated sentence over the shard.
            repeats = repeats + 1 if sentence == previous else 0
            ordered.append((self._hash(sentence, repeats), sentence))
            previous = sentence
        encoded = shards.encoder_of(words.content).encode([sentence for _, sentence in sorted(ordered)])
        if not ordered:
            return shards.written([], {})
        if stores.is_local(self._folder):
            os.makedirs(self._folder, exist_ok=True)
        with stores.create(stores.join(self._folder, name)) as file:
            shard = shards.Shard(lambda: file, "train", number, name)
            shard.write(encoded)
        return shards.written([shard], {})

    @beam.typehints.no_annotations
    def _finish(self, written: list[shards.TaskResult], words: counts.Counted) -> dict[str, Any]:
        description = {
            "seed": self._seed,
            "tokenizer": self._tokenizer,
            "max_chars_per_token": char_ids.MAX_CHARS_PER_TOKEN,
            "vocabulary": info.describe_vocabulary(words),
            "versions": report.versions(),
        }
        described = shards.info_of_split("train", written, description)
        if not described["sentences"]:
            raise InputError(self._folder, "no sentences to write")
        for name, content in shards.final_files(words.content, described).items():
            stores.write(stores.join(self._folder, name), content)
        return described

    def _hash(self, words: list[bytes], repeats: int = 0) -> int:
        key = self._seed.to_bytes(8, "little") + repeats.to_bytes(8, "little")
        return int.from_bytes(hashlib.blake2b(b" ".join(words), digest_size=8, key=key).digest(), "little")


class _OtherWriters(beam.pipeline.PipelineVisitor):
    """Raises `InputError` if a step of a pipeline, other than the given one, writes the same folder."""

    def __init__(self, step: WriteRecords, folder: str):
        self._step, self._folder = step, folder

    def enter_composite_transform(self, transform_node: Any) -> None:
        other = transform_node.transform
        if isinstance(other, WriteRecords) and other is not self._step and other._folder == self._folder:
            raise InputError(self._folder, "another WriteRecords of this pipeline writes it")


def _check_windows(sentences: beam.PCollection) -> None:
    windows = sentences.windowing.windowfn
    if not isinstance(windows, window.GlobalWindows):
        remedy = "the global window; put beam.WindowInto(beam.window.GlobalWindows()) before this step"
        raise InputError("sentences", remedy, type(windows).__name__)


@beam.typehints.no_annotations
def _to_bytes(words: Iterable[str | bytes]) -> list[bytes]:
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise InputError("sentences", "lists of tokens", repr(words))
    tokens = [to_bytes(word, "sentences") for word in words]
    if b" ".join(tokens).split() != tokens:
        shown = repr([token.decode(errors="replace") for token in tokens])
        raise InputError("sentences", "tokens that are not empty and have no white space", shown)
    for token in tokens:
        try:
            token.decode()
        except UnicodeDecodeError:
            raise InputError("sentences", "tokens in UTF-8", repr(token)) from None
    return tokens


@beam.typehints.no_annotations
def _to_vocabulary(counted: counts.Counted, min_count: int) -> Vocabulary:
    job_config.require("sentences", bool(counted.types), "contain no words")
    counts.check(counted, min_count, "sentences")
    return Vocabulary(counted.content.removesuffix(b"\n").split(b"\n"))
