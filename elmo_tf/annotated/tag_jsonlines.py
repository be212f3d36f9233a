"""Tokens and their tags as rows of lists, as Hugging Face's data sets have them: `tokens` and `ner_tags`."""

import os
from typing import Any

from elmo_tf.annotated import columns, named_rows, numbered_lines, tag_schemes, words
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.annotated.reading_options import DEFAULT, Reading

_TOKENS, _TAGS = ("tokens", "words"), ("ner_tags", "tags", "labels")


def read_rows(path: str | os.PathLike, reading: Reading = DEFAULT, labelled: bool = True) -> list[Tagged]:
    """Returns the sentences of JSON lines or Parquet whose rows have `tokens` and `ner_tags`, lists of equal length.

    The keys may also be `words`, and `tags` or `labels`; `reading.tag_column` names another. Tags are strings, or
    indices into `reading.labels`. An empty token is left out with its tag. Unless `labelled`, tags
    are ignored.
    """
    odd = OddLines(path, reading.strict)
    names = (reading.tag_column,) if isinstance(reading.tag_column, str) else _TAGS
    rows = []
    for line, row in named_rows.read(path):
        tokens = named_rows.value(row, _TOKENS)
        if not _are(tokens, str):
            raise line.wrong("tokens, a list of strings")
        tags = _tags(line, named_rows.value(row, names), len(tokens), reading) if labelled else [""] * len(tokens)
        forms = [words.word(token) for token in tokens]
        if not all(forms):
            odd.add(line.number, "an empty token")
        rows.append([(line, form, tag) for form, tag in zip(forms, tags, strict=True) if form])
    odd.report()
    sentences = [sentence for sentence in rows if sentence]
    if labelled:
        tagged = columns.in_iob2(sentences)
    else:
        tagged = [Tagged([form for _, form, _ in sentence]) for sentence in sentences]
    return numbered_lines.require_some(tagged, path, "sentence")


def _tags(line: Line, tags: Any, count: int, reading: Reading) -> list[str]:
    if not (_are(tags, str) or _are(tags, int)) or len(tags) != count:
        raise line.wrong(f"{_TAGS[0]}, a list of {count} tags", str(tags))
    named = [named_rows.named_label(line, tag, reading.labels) if isinstance(tag, int) else tag for tag in tags]
    if wrong := [tag for tag in named if not tag_schemes.is_tag(tag)]:
        hint = "; --labels names the tags that are numbers" if wrong[0].isdecimal() else ""
        raise line.wrong(f"tags O, B-... or I-...{hint}", wrong[0])
    return named


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) and not isinstance(value, bool) for value in values)
