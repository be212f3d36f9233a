"""Corpus to records: counts the words, then writes shards of TFRecords, `vocab.txt`, `info.json` and the marker.

    elmo-tf preprocess --input 'corpus/*.txt' --output data/train --heldout data/heldout --min-count 3

The same input, options and seed give the same bytes with every runner and number of workers.
"""

import collections
import dataclasses
import functools
import itertools
import logging
import time
from collections.abc import Callable
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

import elmo_tf
from elmo_tf.errors import InputError
from elmo_tf.files.progress import counted
from elmo_tf.pipelines.preprocess import info, job
from elmo_tf.pipelines.preprocess.config import PreprocessConfig
from elmo_tf.pipelines.running import journal, processes, report, runner_options
from elmo_tf.pipelines.text import corpora, filesystems, job_config, sentences
from elmo_tf.pipelines.text.job_config import require
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary

_SHARD_BYTES = 8 << 20  # of text, when --shards is not given
_MANY_INVALID = 0.01  # share of lines that are not UTF-8, above which there is a warning
_SAMPLES = 16  # blocks of text that the order of a given vocabulary is checked against
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
        InputError: if a field of `config` or a file cannot be used, which it names; nothing is written then.
        OSError: if reading or writing fails or a worker process dies. The same configuration resumes.
    """
    beam_options, unknown = runner_options.parse(config.beam)
    heldout = config.heldout and job_config.real_path(config.heldout)
    config = dataclasses.replace(config, output=job_config.real_path(config.output), heldout=heldout)
    # Fails if the runner is not available.
    runner_options.make_pipeline(beam_options)
    _check(config)
    with runner_options.connected(beam_options, unknown):
        return _run(config, beam_options, load_tensorflow)


def _run(
    config: PreprocessConfig, beam_options: PipelineOptions, load_tensorflow: Callable[[], None] | None
) -> dict[str, Any]:
    start = time.monotonic()
    if runner_options.uses_processes(beam_options):
        processes.prepare([job.__name__])
    elif load_tensorflow and config.tokenizer == "unicode":
        load_tensorflow()
    given = _read_vocabulary(config.vocab) if config.vocab else None
    folders, settings = config.folders, config.split_settings()
    corpus = job_config.corpus(config.input, folders.values())
    size = sum(file.text_size for file in corpus)
    num_shards = config.shards or -(-size // _SHARD_BYTES) or 1
    tasks = corpora.plan(corpus, num_shards)
    if given:
        _check_order(given, tasks, settings, config.vocab)
    end_job = functools.partial(runner_options.end_job, beam_options)
    with journal.unfinished([*folders.values()], _plan(config, corpus, given), end_job) as resumed:
        guess = "" if all(file.is_divisible for file in corpus) else "about "
        _log.info("reading %s, %s%s of text", counted(len(corpus), "file"), guess, report.megabytes(size))
        if resumed:
            _log.info("resuming an earlier run; its finished files are kept")
        notes = journal.opened(config.output)
        work = job.Job(notes, folders, settings, size, len(tasks), num_shards, beam_options)
        with job_config.hint():
            words, types = (given, None) if given else work.count(config.min_count or 1, config.max_vocab)
            work.keep(words)
            read, written = work.shuffle() if config.shuffle else work.write()
        shared = info.describe(config, settings, corpus, words, types, [result.irregular for result in read])
        statistics = [shard for result in written for shard in result.shards]
        infos = {split: info.of_split(split, statistics, shared, num_shards) for split in folders}
        _check_splits(infos)
        for split, folder in folders.items():
            filesystems.write_json(filesystems.join(folder, record_folder.INFO_FILE), infos[split])
    _log.info("%s", info.summary(infos, folders.values(), time.monotonic() - start))
    _warn(infos)
    return infos[sentences.TRAIN]


def _warn(infos: dict[str, dict[str, Any]]) -> None:
    """Warns if many lines are not UTF-8."""
    dropped = infos[sentences.TRAIN]["irregular"]["invalid_utf8_lines"]["count"]
    share = dropped / (dropped + sum(about["sentences"] for about in infos.values()))
    if share > _MANY_INVALID:
        text = "warning: dropped %s lines (%.0f %%) that are not UTF-8; the setting strict makes them an error"
        _log.warning(text, f"{dropped:,}", 100 * share)


def _check(config: PreprocessConfig) -> None:
    """Raises `InputError` for what can be checked before any work."""
    config.split_settings()
    for folder in config.folders.values():
        journal.check(folder)
    if config.heldout:
        one, other = (f"{path}/" for path in config.folders.values())
        separate = not one.startswith(other) and not other.startswith(one)
        require("heldout", separate, "a folder that neither contains the output nor is inside it", config.heldout)


def _plan(
    config: PreprocessConfig, corpus: list[corpora.TextFile], given: vocabulary.Vocabulary | None
) -> dict[str, Any]:
    """Returns everything that the output depends on, as JSON."""
    return {
        "arguments": {**config.asked("vocab"), "heldout": config.heldout is not None},
        "vocabulary": given and given.sha256(),
        "version": elmo_tf.__version__,
        **journal.plan_input(corpus),
    }


def _read_vocabulary(path: str) -> vocabulary.Vocabulary:
    filesystems.check_store(path)
    try:
        content = filesystems.read(path)
    except OSError as error:
        raise InputError(path, "a vocabulary", getattr(error.__cause__, "strerror", None) or error) from None
    return vocabulary.from_published(content, path)[0]


def _check_order(
    words: vocabulary.Vocabulary, tasks: list[corpora.Task], settings: sentences.Settings, source: str
) -> None:
    """Raises `InputError` unless the words are roughly in descending order of their counts in a sample of the text."""
    reader, found = sentences.Reader(settings), collections.Counter()
    for task in tasks[:: -(-len(tasks) // _SAMPLES)]:
        for block in itertools.islice(reader.read(task), 1):
            for sentence in block.sentences[sentences.TRAIN]:
                found.update(words.ids(sentence))
    vocabulary.check_order(words, [found[number] for number in range(len(words))], source)


def _check_splits(infos: dict[str, dict[str, Any]]) -> None:
    """Raises `InputError` if a split is empty."""
    total = sum(about["sentences"] for about in infos.values())
    require("input", total > 0, "text", "no words")
    for split, about in infos.items():
        side = "held out" if split == sentences.HELDOUT else "left for training"
        expected = "a fraction that leaves sentences in both splits"
        require("heldout_fraction", about["sentences"] > 0, expected, f"none of {total:,} sentences {side}")
