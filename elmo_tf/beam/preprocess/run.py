"""Corpus to records: counts the words, then writes shards of TFRecords, `vocab.txt`, `info.json` and the marker.

    elmo-tf preprocess --input 'corpus/*.txt' --output data/train --heldout data/heldout --min-count 3

The same input, options and seed give the same bytes with every runner and number of workers.
"""

import collections
import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions

import elmo_tf
from elmo_tf.beam.preprocess import counts, info, shards, shuffle
from elmo_tf.beam.preprocess.config import PreprocessConfig
from elmo_tf.beam.running import do_once, journal, report, runner_options
from elmo_tf.beam.running.journal import Result
from elmo_tf.beam.text import corpora, filesystems, job_config, sentences
from elmo_tf.beam.text.job_config import require
from elmo_tf.errors import InputError
from elmo_tf.files.progress import counted
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary

_SHARD_BYTES = 8 << 20  # of text, when --shards is not given
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
        InputError: naming the field of `config` or the file that cannot be used; nothing is written then.
        OSError: if reading or writing fails or a worker process dies. The same configuration resumes.
    """
    beam_options, unknown = runner_options.parse(config.beam)
    heldout = config.heldout and job_config.real_path(config.heldout)
    config = dataclasses.replace(config, output=job_config.real_path(config.output), heldout=heldout)
    settings = config.settings()
    for folder in config.folders.values():
        journal.check(folder)
        is_embeds = "savedmodel" in (journal.plan_of(folder) or {})
        require(folder, not is_embeds, "no unfinished folder of elmo-tf embed", "one")
    if heldout:
        one, other = f"{config.output}/", f"{heldout}/"
        separate = not one.startswith(other) and not other.startswith(one)
        require("heldout", separate, "a folder that neither contains the output nor is inside it", heldout)
    tokenizes = load_tensorflow if config.tokenizer == "unicode" else None
    with runner_options.connected(beam_options, unknown, __name__, tokenizes):
        return _run(config, settings, beam_options)


def _run(config: PreprocessConfig, settings: sentences.Settings, beam_options: PipelineOptions) -> dict[str, Any]:
    start = time.monotonic()
    given = _read_vocabulary(config.vocab) if config.vocab else None
    folders = config.folders
    corpus = job_config.corpus(config.input, folders.values())
    size = sum(file.text_size for file in corpus)
    num_shards = config.shards or -(-size // _SHARD_BYTES) or 1
    tasks = corpora.plan(corpus, num_shards)
    if given:
        _check_order(given, tasks, settings, config.vocab)
    plan = {
        "arguments": {**config.asked("vocab"), "heldout": config.heldout is not None},
        "vocabulary": given and given.sha256(),
        "version": elmo_tf.__version__,
        **journal.plan_input(corpus),
    }
    with journal.unfinished([*folders.values()], plan, beam_options) as notes:
        guess = "" if all(file.is_divisible for file in corpus) else "about "
        _log.info("reading %s, %s%s of text", counted(len(corpus), "file"), guess, report.megabytes(size))
        output = shards.Output(notes, folders, settings, num_shards)
        # The order of the sentences needs a plan of all files, which is made again on a worker.
        reading = do_once.Tasks(lambda: corpora.plan(notes.corpus(), num_shards), len(tasks), size)
        work = _Job(output, reading, beam_options)
        words, types = (given, None) if given else work.count(config.min_count or 1, config.max_vocab)
        # The next phases and readers of the records need it.
        for folder in folders.values():
            filesystems.write(filesystems.join(folder, record_folder.VOCABULARY_FILE), words.to_bytes())
        read, written = work.shuffle() if config.shuffle else work.write()
        shared = info.describe(config, settings, corpus, words, types, read)
        statistics = [shard for result in written for shard in result.shards]
        infos = {split: info.of_split(split, statistics, shared) for split in folders}
        _check_splits(infos)
        for split, folder in folders.items():
            filesystems.write_json(filesystems.join(folder, record_folder.INFO_FILE), infos[split])
    _log.info("%s", info.summary(infos, folders.values(), time.monotonic() - start))
    return infos[sentences.TRAIN]


class _Job(NamedTuple):
    """The pipelines, one after the other; each leaves its results in the journal."""

    output: shards.Output
    tasks: do_once.Tasks  # that read the text
    beam_options: PipelineOptions

    def count(self, min_count: int, max_size: int | None) -> tuple[vocabulary.Vocabulary, int]:
        """Returns the vocabulary of the training split, and the number of distinct words counted for it.

        Raises:
            InputError: if no word is frequent enough.
        """
        notes = self.output.journal
        result = notes.result(counts.VOCABULARY, 0, counts.Counted)
        if not result:
            counting = counts.write_vocabulary(notes, self.output.settings, min_count, max_size)
            do_once.run("counting", notes, counts.PHASE, self.tasks, counting, self.beam_options)
            result = notes.result(counts.VOCABULARY, 0, counts.Counted)
        path = counts.path(notes)
        words = vocabulary.from_bytes(filesystems.read(path), path)
        if result.types and len(words) == len(vocabulary.SPECIAL_TOKENS):
            expected = f"at most {result.most}, the count of the most frequent word"
            raise InputError("min_count", expected, min_count)
        return words, result.types

    def write(self) -> tuple[Sequence[Result], Sequence[shards.Written]]:
        """Writes the shards in the order of the text; returns the results of reading the text and of writing them."""
        written = do_once.run_step("writing", shards.WriteTask(self.output), self.tasks, self.beam_options)
        return written, written

    def shuffle(self) -> tuple[Sequence[Result], Sequence[shards.Written]]:
        """Writes the shards shuffled; returns the same."""
        num_shards = self.output.num_shards
        num_buckets = num_shards * max(1, -(-self.tasks.size // (num_shards * shuffle.BUCKET_BYTES)))
        scatter = shuffle.Scatter(self.output, num_buckets)
        read = do_once.run_step("shuffling, part 1 of 2:", scatter, self.tasks, self.beam_options)
        gather, tasks = shuffle.Gather(self.output, num_buckets, len(read)), shuffle.gather_tasks(read, num_shards)
        return read, do_once.run_step("shuffling, part 2 of 2:", gather, tasks, self.beam_options)


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
            for sentence in settings.split(block.sentences)[sentences.TRAIN]:
                found.update(words.ids(sentence))
    vocabulary.check_order(words, [found[number] for number in range(len(words))], source)


def _check_splits(infos: dict[str, dict[str, Any]]) -> None:
    """Raises `InputError` if a split is empty."""
    total = sum(about["sentences"] for about in infos.values())
    require("input", total > 0, "text", f"no words; {report.describe_irregular(infos[sentences.TRAIN]['irregular'])}")
    for split, about in infos.items():
        side = "held out" if split == sentences.HELDOUT else "left for training"
        expected = "a fraction that leaves sentences in both splits"
        require("heldout_fraction", about["sentences"] > 0, expected, f"none of {total:,} sentences {side}")
