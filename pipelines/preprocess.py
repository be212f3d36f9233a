"""Corpus to records: counts the words, then writes shards of TFRecords, `vocab.txt`, `info.json` and the marker.

    elmo-tf preprocess --input 'corpus/*.txt' --output data/train --heldout data/heldout --min-count 3

The same input, options and seed give the same bytes, whatever the runner and its number of workers.
"""

import argparse
import json
import logging
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf import staging
from elmo_tf.data import records, vocabulary
from elmo_tf.errors import InputError
from pipelines import corpora, counts, info, options, sentences, shards

_SHARD_BYTES = 32 << 20  # of text, when --shards is not given
_HELDOUT_FRACTION = 0.01
_log = logging.getLogger("elmo_tf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `elmo-tf preprocess` to `parser`."""
    add = parser.add_argument
    add("--input", nargs="+", required=True, metavar="GLOB", help="UTF-8 text, a sentence a line; .gz is read too")
    add("--output", required=True, metavar="DIR", help="folder to make")
    add("--vocab", metavar="FILE", help="a vocabulary instead of one counted from the text")
    add("--min-count", type=int, metavar="N", help="leave out words that occur less often (default: 1)")
    add("--max-vocab", type=int, metavar="N", help="keep so many words, <S>, </S> and <UNK> included (default: all)")
    add("--shards", type=int, metavar="N", help="files to write (default: one for about 32 MB of text)")
    add("--seed", type=int, default=0, metavar="N", help="decides which sentences are held out (default: 0)")
    add("--tokenizer", choices=list(sentences.TOKENIZERS), default="whitespace", help="default: whitespace")
    add("--heldout", metavar="DIR", help="folder to make of sentences that --output then lacks")
    add(
        "--heldout-fraction",
        type=float,
        metavar="F",
        help=f"of the distinct sentences, between 0 and 1 (default: {_HELDOUT_FRACTION})",
    )


def run(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Preprocesses a corpus as `argv` says, Beam's own options included; returns what `info.json` of --output holds.

    Raises:
        InputError: if an argument or a file cannot be used; nothing is left behind then.
    """
    parser = argparse.ArgumentParser(
        prog="elmo-tf preprocess", description="Turns text into records.", epilog=options.EPILOG, allow_abbrev=False
    )
    add_arguments(parser)
    arguments, beam_options = options.parse(parser, argv)
    _check(arguments)
    given = _read_vocabulary(arguments.vocab) if arguments.vocab else None
    files = corpora.match(arguments.input)
    num_shards = arguments.shards or -(-sum(file.text_size for file in files) // _SHARD_BYTES) or 1
    tasks = corpora.plan(files, num_shards)
    outputs = {sentences.TRAIN: arguments.output}
    fraction = None
    if arguments.heldout:
        outputs[sentences.HELDOUT] = arguments.heldout
        fraction = arguments.heldout_fraction or _HELDOUT_FRACTION
    settings = sentences.Settings(arguments.tokenizer, arguments.seed, fraction)
    with staging.new_folders(outputs) as waiting:
        folders = {split: str(folder) for split, folder in waiting.items()}  # as Beam's workers get them
        _log.info("reading %s, %.1f MB", _number(len(files), "file"), sum(file.size for file in files) / 1e6)
        words = given or _count(tasks, settings, arguments, folders[sentences.TRAIN], beam_options)
        _log.info("vocabulary of %s words", f"{len(words):,}")
        for folder in folders.values():
            pathlib.Path(folder, records.VOCABULARY_FILE).write_bytes(words.to_bytes())
        transform = shards.WriteShards(folders, num_shards, settings, count_ids=given is not None)
        results, id_counts = _write(tasks, transform, folders[sentences.TRAIN], beam_options)
        if id_counts is not None:
            vocabulary.check_order(words, id_counts, f"--vocab {arguments.vocab}")
        about = info.describe(arguments, settings, files, words)
        infos = {split: info.of_split(split, results, about, num_shards) for split in folders}
        _check_splits(infos)
        for split, folder in folders.items():
            text = json.dumps(infos[split], indent=1, ensure_ascii=False) + "\n"
            pathlib.Path(folder, records.INFO_FILE).write_text(text, "utf-8")
            pathlib.Path(folder, records.MARKER_FILE).touch()
    for split, path in outputs.items():
        _log_summary(infos[split], path)
    return infos[sentences.TRAIN]


def _require(argument: str, holds: bool, expected: str, found: Any) -> None:
    if not holds:
        raise InputError(f"{argument}: expected {expected}, found {found}")


def _check(arguments: argparse.Namespace) -> None:
    """Raises `InputError` for what can be seen before any work."""
    for name, least in (("shards", 1), ("min_count", 1), ("max_vocab", len(vocabulary.SPECIAL_TOKENS) + 1)):
        value = getattr(arguments, name)
        _require(f"--{name.replace('_', '-')}", value is None or value >= least, f"at least {least}", value)
    _require("--seed", 0 <= arguments.seed < 2**63, "0 to 2^63 - 1", arguments.seed)
    for name in ("min_count", "max_vocab"):
        alone = arguments.vocab is None or getattr(arguments, name) is None
        _require("--vocab", alone, "a vocabulary either given or counted", f"--{name.replace('_', '-')} as well")
    fraction = arguments.heldout_fraction
    if fraction is not None:
        _require("--heldout-fraction", 0 < fraction < 1, "a number between 0 and 1", fraction)
        _require("--heldout-fraction", arguments.heldout is not None, "--heldout with it", "none")
    staging.check_absent(arguments.output, "--output")
    if arguments.heldout is not None:
        staging.check_absent(arguments.heldout, "--heldout")
        places = [os.path.realpath(path) for path in (arguments.output, arguments.heldout)]
        apart = os.path.commonpath(places) not in places
        _require("--heldout", apart, "a folder of its own, neither in nor around --output", arguments.heldout)


def _read_vocabulary(path: str) -> vocabulary.Vocabulary:
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"--vocab: expected a file that can be read, found {path}: {error.strerror}") from None
    return vocabulary.from_bytes(content, f"--vocab {path}")


def _count(
    tasks: list[corpora.Task],
    settings: sentences.Settings,
    arguments: argparse.Namespace,
    folder: str,
    beam_options: PipelineOptions,
) -> vocabulary.Vocabulary:
    """Runs the first pipeline; returns the vocabulary of the training split."""
    counted, problems = (os.path.join(folder, name) for name in ("counts", "problems.json"))
    pipeline = options.make_pipeline(beam_options)
    word_counts, found = pipeline | "Tasks" >> beam.Create(tasks) | "CountTokens" >> counts.CountTokens(settings)
    _ = word_counts | "ListCounts" >> beam.combiners.ToList() | "WriteCounts" >> beam.Map(counts.write_counts, counted)
    _ = found | "ListProblems" >> beam.combiners.ToList() | "WriteProblems" >> beam.Map(_write_json, problems)
    options.execute(pipeline)
    _raise_first(_read_json(problems))
    pairs = counts.read_counts(counted)
    os.remove(counted)
    words = vocabulary.from_counts(pairs, arguments.min_count or 1, arguments.max_vocab)
    nothing = bool(pairs) and len(words) == len(vocabulary.SPECIAL_TOKENS)
    most = max((count for _, count in pairs), default=0)
    _require("--min-count", not nothing, f"at most {most}, the most frequent word's count", arguments.min_count)
    return words


def _write(
    tasks: list[corpora.Task],
    transform: shards.WriteShards,
    folder: str,
    beam_options: PipelineOptions,
) -> tuple[list[dict[str, Any]], list[int] | None]:
    """Runs the second pipeline; returns the statistics of its tasks, and the counts of the ids if they were counted."""
    statistics, id_counts = (os.path.join(folder, name) for name in ("statistics.json", "id_counts.npy"))
    pipeline = options.make_pipeline(beam_options)
    results, summed = pipeline | "Tasks" >> beam.Create(tasks) | "WriteShards" >> transform
    _ = results | "ListStatistics" >> beam.combiners.ToList() | "WriteStatistics" >> beam.Map(_write_json, statistics)
    _ = summed | "WriteIdCounts" >> beam.Map(_write_array, id_counts)
    options.execute(pipeline)
    written = _read_json(statistics)
    _raise_first([result["problem"] for result in written if result["problem"]])
    if not os.path.exists(id_counts):
        return written, None
    by_id = np.load(id_counts).tolist()
    os.remove(id_counts)
    return written, by_id


def _write_json(value: Any, path: str) -> None:
    pathlib.Path(path).write_text(json.dumps(value), "utf-8")


def _read_json(path: str) -> Any:
    """Returns the contents of a file that a pipeline left for this process, and removes it."""
    value = json.loads(pathlib.Path(path).read_text("utf-8"))
    os.remove(path)
    return value


def _write_array(array: np.ndarray, path: str) -> None:
    np.save(path, array)


def _raise_first(problems: list[Sequence[Any]]) -> None:
    """Raises the problem that comes first in the corpus, so that the message is the same on every run."""
    if problems:
        path, line, message = min(tuple(problem) for problem in problems)
        raise corpora.CorpusError(path, line, message)


def _check_splits(infos: dict[str, dict[str, Any]]) -> None:
    """Raises `InputError` if a split came out empty."""
    total = sum(about["sentences"] for about in infos.values())
    _require("--input", total > 0, "text", "no words")
    for split, about in infos.items():
        side = "held out" if split == sentences.HELDOUT else "left to train on"
        expected = "a number that divides the sentences in two"
        _require("--heldout-fraction", about["sentences"] > 0, expected, f"none of {total:,} {side}")


def _log_summary(about: dict[str, Any], path: str) -> None:
    _log.info(
        "wrote %s, %s in %s, %.1f %% unknown, to %s",
        _number(about["sentences"], "sentence"),
        _number(about["tokens"], "token"),
        _number(len(about["shards"]), "shard"),
        100 * about["unknown_tokens"] / about["tokens"],
        path,
    )


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
