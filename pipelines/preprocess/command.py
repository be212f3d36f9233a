"""Corpus to records: counts the words, then writes shards of TFRecords, `vocab.txt`, `info.json` and the marker.

    elmo-tf preprocess --input 'corpus/*.txt' --output data/train --heldout data/heldout --min-count 3

The same input, options and seed give the same bytes, whatever the runner and its number of workers.
"""

import argparse
import collections
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import elmo_tf
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary
from pipelines.preprocess import info, job
from pipelines.running import journal, processes, report, runner_options
from pipelines.text import corpora, filesystems, sentences, text_options
from pipelines.text.text_options import require

_SHARD_BYTES = 8 << 20  # of text, when --shards is not given
_HELDOUT_FRACTION = 0.01
_MUCH = 0.01  # share of the lines that may be no UTF-8 without a warning
_SAMPLES = 16  # blocks of text that a given vocabulary's order is checked with
_log = logging.getLogger("elmo_tf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `elmo-tf preprocess` to `parser`."""
    add = parser.add_argument
    text_options.add(parser)
    add("--output", required=True, metavar="DIR", help="folder to make; one that a killed run left is gone on with")
    add("--vocab", metavar="FILE", help="a vocabulary instead of one counted from the text")
    add("--min-count", type=int, metavar="N", help="leave out words that occur less often (default: 1)")
    add("--max-vocab", type=int, metavar="N", help="keep so many words, <S>, </S> and <UNK> included (default: all)")
    add("--shards", type=int, metavar="N", help="files to write (default: one for about 8 MB of text)")
    add("--shuffle", action="store_true", help="shuffle all sentences, on disk; needs room for the records twice")
    add("--seed", type=int, default=0, metavar="N", help="decides what is held out, and the shuffle (default: 0)")
    add("--heldout", metavar="DIR", help="folder to make of sentences that --output then lacks")
    add(
        "--heldout-fraction",
        type=float,
        metavar="F",
        help=f"of the distinct sentences, between 0 and 1 (default: {_HELDOUT_FRACTION})",
    )


def run(argv: Sequence[str] | None = None, load_tensorflow: Callable[[], None] | None = None) -> dict[str, Any]:
    """Preprocesses a corpus as `argv` says, Beam's own options included; returns what `info.json` of --output holds.

    With --direct_running_mode=multi_processing a script that calls it needs `if __name__ == "__main__"`, as always with
    processes of Python's `multiprocessing`.

    Args:
        argv: the arguments; None: those of this process.
        load_tensorflow: called before the pipeline runs if this process will use TensorFlow.

    Raises:
        InputError: if an argument or a file cannot be used; nothing is left behind then.
        OSError: if reading or writing fails or a worker process dies. The same command goes on from there.
    """
    parser = argparse.ArgumentParser(
        prog="elmo-tf preprocess",
        description="Turns text into records.",
        epilog=runner_options.EPILOG,
        allow_abbrev=False,
    )
    add_arguments(parser)
    arguments, beam_options = runner_options.parse(parser, argv)
    runner_options.make_pipeline(beam_options)  # complains of a runner that cannot be had
    _check(arguments)
    start = time.monotonic()
    if runner_options.uses_processes(beam_options):
        processes.prepare(["pipelines.preprocess.job"])
    elif load_tensorflow and arguments.tokenizer == "unicode":
        load_tensorflow()
    given = _read_vocabulary(arguments.vocab) if arguments.vocab else None
    corpus = text_options.corpus(arguments.input, _folders(arguments).values())
    size = sum(file.text_size for file in corpus)
    num_shards = arguments.shards or -(-size // _SHARD_BYTES) or 1
    settings = _settings(arguments)
    work = job.Job(_folders(arguments), settings, corpora.plan(corpus, num_shards), num_shards, beam_options)
    if given:
        _check_order(given, work, f"--vocab {arguments.vocab}")
    outputs = {name: path for name, path in (("--output", arguments.output), ("--heldout", arguments.heldout)) if path}
    with journal.unfinished(outputs, _plan(arguments, corpus, given)) as resumed:
        guess = "" if all(file.is_divisible for file in corpus) else "about "
        _log.info("reading %s, %s%s of text", report.number(corpus, "file"), guess, report.megabytes(size))
        if resumed:
            _log.info("going on with an earlier run; what is whole is used again")
        with text_options.hint():
            words, types = (given, None) if given else work.count(arguments.min_count or 1, arguments.max_vocab)
            work.keep(words)
            read, written = work.shuffle() if arguments.shuffle else work.write()
        about = info.describe(arguments, settings, corpus, words, types, [result["irregular"] for result in read])
        statistics = [shard for result in written for shard in result["shards"]]
        infos = {split: info.of_split(split, statistics, about, num_shards) for split in work.folders}
        _check_splits(infos)
        for split, folder in work.folders.items():
            filesystems.write_json(filesystems.join(folder, record_folder.INFO_FILE), infos[split])
    _log.info("%s", info.summary(infos, outputs.values(), time.monotonic() - start))
    _warn(infos)
    return infos[sentences.TRAIN]


def _warn(infos: dict[str, dict[str, Any]]) -> None:
    """Warns of a corpus that is hardly text."""
    dropped = infos[sentences.TRAIN]["irregular"]["invalid_utf8_lines"]["count"]
    share = dropped / (dropped + sum(about["sentences"] for about in infos.values()))
    if share > _MUCH:
        _log.warning(
            "warning: %s lines (%.0f %%) are not UTF-8 and were dropped; --strict names one", dropped, 100 * share
        )


def _check(arguments: argparse.Namespace) -> None:
    """Raises `InputError` for what can be seen before any work."""
    for name, least in (("shards", 1), ("min_count", 1), ("max_vocab", len(vocabulary.SPECIAL_TOKENS) + 1)):
        value = getattr(arguments, name)
        require(f"--{name.replace('_', '-')}", value is None or value >= least, f"at least {least}", value)
    require("--seed", 0 <= arguments.seed < 2**63, "0 to 2^63 - 1", arguments.seed)
    for name in ("min_count", "max_vocab"):
        alone = arguments.vocab is None or getattr(arguments, name) is None
        require("--vocab", alone, "a vocabulary either given or counted", f"--{name.replace('_', '-')} as well")
    _settings(arguments)
    fraction = arguments.heldout_fraction
    if fraction is not None:
        require("--heldout-fraction", 0 < fraction < 1, "a number between 0 and 1", fraction)
        require("--heldout-fraction", arguments.heldout is not None, "--heldout with it", "none")
    journal.check(arguments.output, "--output")
    if arguments.heldout is not None:
        journal.check(arguments.heldout, "--heldout")
        one, other = (f"{path}/" for path in _folders(arguments).values())
        apart = not one.startswith(other) and not other.startswith(one)
        require("--heldout", apart, "a folder of its own, neither in nor around --output", arguments.heldout)


def _folders(arguments: argparse.Namespace) -> dict[str, str]:
    """Returns the output folder of each split, as any process on this machine finds it."""
    named = {sentences.TRAIN: arguments.output, sentences.HELDOUT: arguments.heldout}
    return {split: text_options.real_path(path) for split, path in named.items() if path}


def _settings(arguments: argparse.Namespace) -> sentences.Settings:
    fraction = (arguments.heldout_fraction or _HELDOUT_FRACTION) if arguments.heldout else None
    return text_options.settings(arguments, arguments.seed, fraction)


def _plan(
    arguments: argparse.Namespace, corpus: list[corpora.TextFile], given: vocabulary.Vocabulary | None
) -> dict[str, Any]:
    """Returns all that the output depends on, as JSON."""
    asked = {name: value for name, value in vars(arguments).items() if name not in ("input", "vocab")}
    return {
        "arguments": {**asked, "output": None, "heldout": asked["heldout"] is not None},
        "inputs": [[*file, filesystems.last_changed(file.path)] for file in corpus],
        "vocabulary": given and given.sha256(),
        "version": elmo_tf.__version__,
    }


def _read_vocabulary(path: str) -> vocabulary.Vocabulary:
    filesystems.check_scheme(path, "--vocab")
    try:
        content = filesystems.read(path)
    except OSError as error:
        raise InputError(
            f"--vocab: expected a file that can be read, found {path}: {error.strerror or error}"
        ) from None
    return vocabulary.from_bytes(content, f"--vocab {path}")


def _check_order(words: vocabulary.Vocabulary, work: job.Job, source: str) -> None:
    """Raises `InputError` if the words are plainly not in descending order of their counts, in a sample of the text."""
    reader = sentences.Reader(work.settings)
    chosen = work.tasks[:: -(-len(work.tasks) // _SAMPLES)]
    blocks = [next(iter(reader.read(task)), None) for task in chosen]
    found = collections.Counter()
    for block in filter(None, blocks):
        for sentence in block.sentences[sentences.TRAIN]:
            found.update(words.ids(sentence))
    vocabulary.check_order(words, [found[number] for number in range(len(words))], source)


def _check_splits(infos: dict[str, dict[str, Any]]) -> None:
    """Raises `InputError` if a split came out empty."""
    total = sum(about["sentences"] for about in infos.values())
    require("--input", total > 0, "text", "no words")
    for split, about in infos.items():
        side = "held out" if split == sentences.HELDOUT else "left to train on"
        expected = "a share that leaves sentences on both sides"
        require("--heldout-fraction", about["sentences"] > 0, expected, f"none of {total:,} {side}")
