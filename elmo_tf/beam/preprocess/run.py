"""Corpus to records: counts the words, then writes shards of TFRecords, `vocab.txt`, `info.json` and the marker.

    elmo-tf preprocess --input 'corpus/*.txt' --output data/train --heldout data/heldout --min-count 3

The same input, options and seed give the same bytes with every runner and number of workers.
"""

import collections
import dataclasses
import itertools
import json
import logging
import os
import time
import zlib
from collections.abc import Callable
from typing import Any

import apache_beam as beam

import elmo_tf
from elmo_tf.beam import corpus_tasks, failures, job_config, output_folder, progress, report, runners
from elmo_tf.beam.job_config import require
from elmo_tf.beam.preprocess import counts, info, shards
from elmo_tf.beam.preprocess.config import PreprocessConfig
from elmo_tf.corpus import corpora, sentences
from elmo_tf.display import with_count
from elmo_tf.errors import InputError
from elmo_tf.files import stores
from elmo_tf.files.pipes import copied_if_pipe
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary

_SHARD_BYTES = 8 << 20  # of text, when --shards is not given
_SAMPLES = 16  # blocks of text used to check the order of a given vocabulary
_log = logging.getLogger("elmo_tf")


def preprocess(config: PreprocessConfig, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Makes a folder of records from text; returns its `info.json`.

    With several worker processes a script that calls this needs `if __name__ == "__main__"`, as with Python's
    `multiprocessing`. From this call on, servers that Beam starts in this process listen on loopback addresses only,
    and Beam logs only warnings.

    Args:
        config: what to do.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: naming the field of `config` or the file that cannot be used; nothing is written then.
        OSError: if reading or writing fails or a worker process dies.
    """
    start = time.monotonic()
    beam_options = runners.parse(config.beam)
    output, heldout = job_config.output_path(config.output), config.heldout and job_config.output_path(config.heldout)
    config = dataclasses.replace(config, output=output, heldout=heldout)
    for folder in config.folders.values():
        output_folder.check(folder)
    paths = [f"{folder}/" for folder in config.folders.values()]
    nested = any(inner.startswith(outer) for inner, outer in itertools.permutations(paths, 2))
    require("heldout", not nested, "a folder that neither contains the output nor is inside it", heldout)
    settings = config.settings()
    vocab = _read_vocabulary(str(config.vocab)) if config.vocab else None
    corpus = job_config.corpus(config.patterns, config.folders.values(), config.tokenizer)
    size = sum(file.text_size for file in corpus)
    num_shards = config.shards or -(-size // _SHARD_BYTES) or 1
    tasks = corpora.plan(corpus, num_shards)
    if vocab:
        _check_order(vocab, tasks, settings, str(config.vocab))
    plan_content = {
        "command": "preprocess",
        **config.plan_options("vocab"),
        "shards": num_shards,
        "heldout": heldout is not None,
        "vocabulary": vocab and vocab.sha256(),
        "version": elmo_tf.__version__,
        "input": corpus,
    }
    tensorflow_loader = load_tensorflow if settings.needs_tensorflow else None
    with (
        runners.configured_pipeline(beam_options, __name__, tensorflow_loader) as pipeline,
        output_folder.claim(config.folders, plan_content) as folders,
    ):
        approximately = "" if all(file.is_divisible for file in corpus) else "about "
        _log.info("reading %s, %s%s of text", with_count(len(corpus), "file"), approximately, report.megabytes(size))
        output_spec = shards.Output(folders, settings, num_shards, config.min_count or 1)
        build(pipeline, config, output_spec, corpus, vocab.to_bytes() if vocab else None)
        with progress.show_progress(output_spec.folder, size, num_shards):
            runners.run(pipeline, output_spec.folder)
        files = {split: folder.file(record_folder.INFO_FILE) for split, folder in folders.items()}
        infos = {split: json.loads(stores.read(file)) for split, file in files.items()}
    _log.info("%s", info.summary(infos, config.folders.values(), time.monotonic() - start))
    return infos[sentences.TRAIN]


def build(
    pipeline: beam.Pipeline,
    config: PreprocessConfig,
    output: shards.Output,
    corpus: list[corpora.TextFile],
    vocab: bytes | None,
) -> None:
    """Adds the job to a pipeline: tasks, counts, vocabulary as a side input, shards, the end of the folders."""
    packed = corpus_tasks.pack(corpus)
    tasks = pipeline | "Tasks" >> corpus_tasks.make_tasks(
        lambda: corpora.plan(corpus_tasks.unpack(packed), output.num_shards)
    )
    if vocab is None:
        lines = tasks | "CountWords" >> beam.ParDo(counts.CountTask(output.folder, output.settings))
        words = lines | "Vocabulary" >> counts.add_up(output.min_count, config.max_vocab)
    else:
        packed_words = pipeline | "GivenVocabulary" >> beam.Create([zlib.compress(vocab)])
        words = packed_words | "Unpack" >> beam.Map(lambda content: counts.Counted(zlib.decompress(content)))
    words = beam.pvalue.AsSingleton(words)
    written = tasks | "WriteShards" >> beam.ParDo(shards.WriteTask(output.folder, output), words)
    finish = _Finish(output.folder, output, config, packed)
    _ = written | "ListShards" >> beam.combiners.ToList() | "Finish" >> beam.ParDo(finish, words)


@dataclasses.dataclass(eq=False)
class _Finish(failures.TaskFn):
    """The results of all tasks -> nothing; finishes the folders."""

    output: shards.Output
    config: PreprocessConfig
    corpus: bytes  # packed

    def process_task(self, written: list[tuple[int, shards.TaskResult]], words: counts.Counted) -> tuple[()]:
        results = dict(written)  # a repeated bundle may deliver a result twice
        corpus = corpus_tasks.unpack(self.corpus)
        shared = info.describe(self.config, corpus, words, (task.irregular for task in results.values()))
        infos = {split: shards.info_of_split(split, results.values(), shared) for split in self.output.folders}
        info.check_splits(infos)
        corpora.check_unchanged(corpus)
        for split, folder in self.output.folders.items():
            for name, content in shards.final_files(words.content, infos[split]).items():
                stores.write(folder.file(name), content)
        return ()


def _read_vocabulary(path: str) -> vocabulary.Vocabulary:
    stores.check_store(path)
    try:
        with copied_if_pipe(path) as file:
            content = stores.read(os.fspath(file))
    except OSError as error:
        raise InputError(path, "a vocabulary", getattr(error.__cause__, "strerror", None) or error) from None
    return vocabulary.from_published(content, path)[0]


def _check_order(
    words: vocabulary.Vocabulary, tasks: list[corpora.Task], settings: sentences.Settings, source: str
) -> None:
    """Raises `InputError` unless the words are roughly in descending order of their counts in a sample of the text."""
    reader, counted_ids = sentences.Reader(settings), collections.Counter[int]()
    for task in tasks[:: -(-len(tasks) // _SAMPLES)]:
        for block in itertools.islice(reader.read(task), 1):
            for sentence in settings.split(block.sentences)[sentences.TRAIN]:
                counted_ids.update(words.ids(sentence))
    vocabulary.check_order(words, [counted_ids[number] for number in range(len(words))], source)
