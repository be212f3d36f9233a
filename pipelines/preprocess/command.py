"""Corpus to records: counts the words, then writes shards of TFRecords, `vocab.txt`, `info.json` and the marker.

    elmo-tf preprocess --input 'corpus/*.txt' --output data/train --heldout data/heldout --min-count 3

The same input, options and seed give the same bytes with every runner and number of workers.
"""

import argparse
import collections
import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

import elmo_tf
from elmo_tf.errors import InputError, renamed
from elmo_tf.files.progress import counted
from elmo_tf.pipelines.preprocess import info, job
from elmo_tf.pipelines.running import job_service, journal, processes, report, runner_options, task_plan
from elmo_tf.pipelines.text import corpora, filesystems, sentences, text_options
from elmo_tf.pipelines.text.text_options import require
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary

_SHARD_BYTES = 8 << 20  # of text, when --shards is not given
_HELDOUT_FRACTION = 0.01
_MANY_INVALID = 0.01  # share of lines that are not UTF-8, above which there is a warning
_SAMPLES = 16  # blocks of text that the order of a given vocabulary is checked against
_log = logging.getLogger("elmo_tf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `elmo-tf preprocess` to `parser`."""
    add = parser.add_argument
    text_options.add(parser)
    add("--output", required=True, metavar="DIR", help="folder to make; resumes the run if an earlier one was killed")
    add("--vocab", metavar="FILE", help="use this vocabulary instead of counting the words of the text")
    add("--min-count", type=int, metavar="N", help="leave out words that occur fewer than N times (default: 1)")
    add("--max-vocab", type=int, metavar="N", help="keep N words, including <S>, </S> and <UNK> (default: all)")
    add("--shards", type=int, metavar="N", help="files to write (default: one per 8 MB of text)")
    add("--shuffle", action="store_true", help="shuffle all sentences on disk, which takes twice the disk space")
    add("--seed", type=int, default=0, metavar="N", help="seed of the shuffle and the held-out split (default: 0)")
    add("--heldout", metavar="DIR", help="folder to make for held-out sentences, which --output then lacks")
    add(
        "--heldout-fraction",
        type=float,
        metavar="F",
        help=f"share of the distinct sentences to hold out, between 0 and 1 (default: {_HELDOUT_FRACTION})",
    )


def run(argv: Sequence[str] | None = None, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Runs `elmo-tf preprocess` and returns the `info.json` of its output folder.

    With several worker processes a script that calls this needs `if __name__ == "__main__"`, as with Python's
    `multiprocessing`.

    Args:
        argv: options of the command and of Beam; None: those of this process.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: if an option or a file cannot be used; nothing is written then. The error speaks of parameters:
            `min_count` for `--min-count`.
        OSError: if reading or writing fails or a worker process dies. The same command resumes.
    """
    parser = argparse.ArgumentParser(
        prog="elmo-tf preprocess",
        description="Turns text into records.",
        epilog=runner_options.EPILOG,
        allow_abbrev=False,
    )
    add_arguments(parser)
    arguments, beam_options, unknown = runner_options.parse(parser, argv)
    for name in ("output", "heldout"):
        if path := getattr(arguments, name):
            setattr(arguments, name, text_options.real_path(path))
    # Fails if the runner is not available.
    runner_options.make_pipeline(beam_options)
    _check(arguments)
    with job_service.connected(beam_options, unknown):
        return _run(arguments, beam_options, load_tensorflow)


def _run(
    arguments: argparse.Namespace, beam_options: PipelineOptions, load_tensorflow: Callable[[], None] | None
) -> dict[str, Any]:
    start = time.monotonic()
    if runner_options.uses_processes(beam_options):
        processes.prepare(["elmo_tf.pipelines.preprocess.job"])
    elif load_tensorflow and arguments.tokenizer == "unicode":
        load_tensorflow()
    given = _read_vocabulary(arguments.vocab) if arguments.vocab else None
    corpus = text_options.corpus(arguments.input, _folders(arguments).values())
    size = sum(file.text_size for file in corpus)
    num_shards = arguments.shards or -(-size // _SHARD_BYTES) or 1
    settings = _settings(arguments)
    work = job.Job(_folders(arguments), settings, corpora.plan(corpus, num_shards), num_shards, beam_options)
    if given:
        _check_order(given, work, arguments.vocab)
    outputs = {name: path for name, path in (("output", arguments.output), ("heldout", arguments.heldout)) if path}
    with journal.unfinished(
        outputs, _plan(arguments, corpus, given), functools.partial(job_service.end_job, beam_options)
    ) as resumed:
        guess = "" if all(file.is_divisible for file in corpus) else "about "
        _log.info("reading %s, %s%s of text", counted(len(corpus), "file"), guess, report.megabytes(size))
        if resumed:
            _log.info("resuming an earlier run; its finished files are kept")
        with text_options.hint():
            words, types = (given, None) if given else work.count(arguments.min_count or 1, arguments.max_vocab)
            work.keep(words)
            read, written = work.shuffle() if arguments.shuffle else work.write()
        shared = info.describe(arguments, settings, corpus, words, types, [result["irregular"] for result in read])
        statistics = [shard for result in written for shard in result["shards"]]
        infos = {split: info.of_split(split, statistics, shared, num_shards) for split in work.folders}
        _check_splits(infos)
        for split, folder in work.folders.items():
            filesystems.write_json(filesystems.join(folder, record_folder.INFO_FILE), infos[split])
    _log.info("%s", info.summary(infos, outputs.values(), time.monotonic() - start))
    _warn(infos)
    return infos[sentences.TRAIN]


def _warn(infos: dict[str, dict[str, Any]]) -> None:
    """Warns if much of the corpus is not text."""
    dropped = infos[sentences.TRAIN]["irregular"]["invalid_utf8_lines"]["count"]
    share = dropped / (dropped + sum(about["sentences"] for about in infos.values()))
    if share > _MANY_INVALID:
        text = "warning: dropped %s lines (%.0f %%) that are not UTF-8; the setting strict makes them an error"
        _log.warning(text, f"{dropped:,}", 100 * share)


def _check(arguments: argparse.Namespace) -> None:
    """Raises `InputError` for what can be checked before any work."""
    for name, least in (("shards", 1), ("min_count", 1), ("max_vocab", len(vocabulary.SPECIAL_TOKENS) + 1)):
        value = getattr(arguments, name)
        require(name, value is None or value >= least, f"at least {least}", value)
    require("seed", 0 <= arguments.seed < 2**63, "0 to 2^63 - 1", arguments.seed)
    for name in ("min_count", "max_vocab"):
        alone = arguments.vocab is None or getattr(arguments, name) is None
        require("vocab", alone, "a vocabulary that is either given or counted", f"`{name}` as well")
    _settings(arguments)
    fraction = arguments.heldout_fraction
    if fraction is not None:
        require("heldout_fraction", 0 < fraction < 1, "a number between 0 and 1", fraction)
        require("heldout_fraction", arguments.heldout is not None, "`heldout` with it", "none")
    with renamed(folder="output"):
        journal.check(arguments.output)
    if arguments.heldout is not None:
        with renamed(folder="heldout"):
            journal.check(arguments.heldout)
        one, other = (f"{path}/" for path in _folders(arguments).values())
        separate = not one.startswith(other) and not other.startswith(one)
        require("heldout", separate, "a folder that neither contains `output` nor is inside it", arguments.heldout)


def _folders(arguments: argparse.Namespace) -> dict[str, str]:
    """Returns the output folder of each split."""
    named = {sentences.TRAIN: arguments.output, sentences.HELDOUT: arguments.heldout}
    return {split: path for split, path in named.items() if path}


def _settings(arguments: argparse.Namespace) -> sentences.Settings:
    fraction = (arguments.heldout_fraction or _HELDOUT_FRACTION) if arguments.heldout else None
    return text_options.settings(arguments, arguments.seed, fraction)


def _plan(
    arguments: argparse.Namespace, corpus: list[corpora.TextFile], given: vocabulary.Vocabulary | None
) -> dict[str, Any]:
    """Returns everything that the output depends on, as JSON."""
    asked = {name: value for name, value in vars(arguments).items() if name not in ("input", "vocab")}
    times = task_plan.at_once(filesystems.last_changed, [file.path for file in corpus])
    return {
        "arguments": {**asked, "output": None, "heldout": asked["heldout"] is not None},
        "inputs": [[*file, changed] for file, changed in zip(corpus, times, strict=True)],
        "vocabulary": given and given.sha256(),
        "version": elmo_tf.__version__,
    }


def _read_vocabulary(path: str) -> vocabulary.Vocabulary:
    with renamed(path="vocab"):
        filesystems.check_store(path)
    try:
        content = filesystems.read(path)
    except OSError as error:
        reason = getattr(error.__cause__, "strerror", None) or error
        raise InputError("vocab", "a file that can be read", f"{reason}: {path}") from None
    words, _ = vocabulary.from_published(content, path)
    return words


def _check_order(words: vocabulary.Vocabulary, work: job.Job, source: str) -> None:
    """Raises `InputError` if the words are clearly not in descending order of their counts in a sample of the text."""
    reader = sentences.Reader(work.settings)
    chosen = work.tasks[:: -(-len(work.tasks) // _SAMPLES)]
    blocks = [next(iter(reader.read(task)), None) for task in chosen]
    found = collections.Counter()
    for block in filter(None, blocks):
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
