"""The contents of `info.json`, the same for every run of a command, and the final report."""

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from elmo_tf.beam import report
from elmo_tf.beam.job_config import require
from elmo_tf.beam.preprocess.config import PreprocessConfig
from elmo_tf.beam.preprocess.counts import Counted
from elmo_tf.corpus import corpora, sentences
from elmo_tf.display import table, with_count
from elmo_tf.errors import printable
from elmo_tf.text import char_ids, vocabulary

_ROWS = ("", "folder", "sentences", "tokens", "unknown", "cut at 48 bytes", "like <S> or </S>", "records")
_PUNCTUATION = b".,?!;:"
# From this share of words that are another word plus punctuation, text is presumed raw. Tokenized text, such as
# 1 Billion Word, has up to 0.4 %; 1,000 lines or more of raw English and German 13 to 25 %, or 5 to 27 % with min_count
# 3; 244 paragraphs of Hindi and Arabic 4 to 6 %.
_RAW_SHARE = 0.02
# From this share of cut tokens, words are presumed not to be separated by spaces: 56 to 89 % of raw Chinese, Japanese
# and Thai are cut; of Tamil, whose words are the longest of 18 languages, 3 %.
_CUT_SHARE = 0.05


def describe(
    config: PreprocessConfig, corpus: list[corpora.TextFile], words: Counted, irregular: Iterable[report.Irregular]
) -> dict[str, Any]:
    """Returns the part of `info.json` that both splits share; `irregular` is that of each task."""
    settings, paths = config.settings(), [file.path for file in corpus]
    names, originals = dict(zip(paths, corpora.short_names(paths), strict=True)), corpora.originals(corpus)
    return {
        "seed": settings.seed,
        "tokenizer": settings.tokenizer,
        "line": settings.line,
        "max_chars_per_token": char_ids.MAX_CHARS_PER_TOKEN,
        "heldout_fraction": settings.heldout_fraction,
        "irregular": report.irregular(irregular, sentences.rules(settings), paths),
        "inputs": [
            {"name": names[file.path], "bytes": file.size}
            | ({"same_as": names[originals[file.path]]} if file.path in originals else {})
            for file in corpus
        ],
        "vocabulary": {
            **describe_vocabulary(words),
            "punctuated": _num_punctuated(words.content),
            "source": os.path.basename(config.vocab) if config.vocab else "counted",
            "min_count": None if config.vocab else config.min_count or 1,
            "max_vocab": config.max_vocab,
        },
        "versions": report.versions(),
    }


def describe_vocabulary(words: Counted) -> dict[str, Any]:
    """Returns the part of `info.json` that every vocabulary has."""
    sha256 = hashlib.sha256(words.content).hexdigest()
    return {"size": words.content.count(b"\n"), "types": words.types, "sha256": sha256}


def _num_punctuated(words: bytes) -> int:
    """Returns how many words of a vocabulary end in punctuation and also occur without it."""
    known = set(words.split())
    return sum(word[-1] in _PUNCTUATION and word.rstrip(_PUNCTUATION) in known for word in known)


def check_splits(infos: dict[str, dict[str, Any]]) -> None:
    """Raises `InputError` if a split is empty."""
    total = sum(about["sentences"] for about in infos.values())
    applied = report.describe_irregular(infos[sentences.TRAIN]["irregular"], in_lines=False)
    require("input", total > 0, f"contains no words; {applied}")
    for split, about in infos.items():
        side = "held out" if split == sentences.HELDOUT else "left for training"
        expected = "a fraction that leaves sentences in both splits"
        require("heldout_fraction", about["sentences"] > 0, expected, f"none of {total:,} sentences {side}")


def summary(infos: dict[str, dict[str, Any]], folders: Iterable[str], seconds: float) -> str:
    """Returns the final report, given each split's `info.json` and folder, in the same order."""
    first = infos[sentences.TRAIN]
    words, total = first["vocabulary"], sum(about["tokens"] for about in infos.values())
    types = "" if words["types"] is None else f" of {words['types']:,} in the text"
    columns = [
        (
            split,
            # A name that is not UTF-8 has characters that a UTF-8 log file cannot hold.
            os.fsencode(folder).decode(errors="replace"),
            f"{about['sentences']:,}",
            f"{about['tokens']:,}",
            f"{about['unknown_tokens'] / about['tokens']:.2%}",
            f"{about['cut_tokens']:,} tokens",
            f"{about['reserved_tokens']:,} tokens",
            f"{report.megabytes(about['bytes'])}, {with_count(len(about['shards']), 'file')}",
        )
        for (split, about), folder in zip(infos.items(), folders, strict=True)
    ]
    size = sum(file["bytes"] for file in first["inputs"])
    return "\n".join(
        [
            *table([*zip(_ROWS, *columns, strict=True)]),
            f"vocabulary: {words['size'] - len(vocabulary.SPECIAL_TOKENS):,} words{types}, and <S>, </S>, <UNK>",
            *_hint(first),
            f"input: {with_count(len(first['inputs']), 'file')}, {report.megabytes(size)}; "
            + report.describe_irregular(first["irregular"]),
            *_describe_copies(first["inputs"]),
            f"{total:,} tokens in {seconds:,.1f} s, {total / seconds:,.0f} tokens/s",
        ]
    )


def _hint(info: dict[str, Any]) -> list[str]:
    """Returns a line about punctuation attached to words, or words to each other, if the text seems to be raw."""
    if info["cut_tokens"] > _CUT_SHARE * info["tokens"]:
        return [
            f"hint: {info['cut_tokens']:,} of {info['tokens']:,} tokens were cut; if the text has no spaces between "
            "words, use --tokenizer unicode"
        ]
    number, size = info["vocabulary"]["punctuated"], info["vocabulary"]["size"] - len(vocabulary.SPECIAL_TOKENS)
    if info["tokenizer"] != "whitespace" or number <= _RAW_SHARE * size:
        return []
    return [
        f"hint: {number:,} of {size:,} words are another word plus punctuation; if the text is not tokenized, "
        "use --tokenizer penn (English) or unicode (any language)"
    ]


def _describe_copies(inputs: list[dict[str, Any]]) -> list[str]:
    """Returns lines about files that duplicate an earlier one, if any."""
    copies = [f"{printable(file['name'])} of {printable(file['same_as'])}" for file in inputs if "same_as" in file]
    if not copies:
        return []
    more = ["..."] if len(copies) > report.MAX_NAMED else []
    return [f"copies of other files: {len(copies):,}, kept", f"  {', '.join(copies[: report.MAX_NAMED] + more)}"]
