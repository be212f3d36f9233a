"""Sentences with a class each: `label<TAB>sentence`, columns with a header, JSON lines."""

import dataclasses
import os
from collections.abc import Iterator

from elmo_tf.annotated import numbered_lines, records
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.annotated.reading import DEFAULT, Reading

_SENTENCE, _LABEL = ("sentence", "text"), ("label",)


@dataclasses.dataclass(frozen=True)
class Classified:
    """A sentence or phrase and its class, None if it has none."""

    tokens: list[str]
    label: str | None = None


def read_classes(path: str | os.PathLike, reading: Reading = DEFAULT) -> list[Classified]:
    """Returns the sentences of a file with their labels.

    A line has a label, a tab and a sentence; or the first line names the columns `sentence` (or `text`) and `label`
    (GLUE's SST-2 and CoLA); or each line is a JSON object with these keys. A label may be an index into
    `reading.labels`. `reading.tokenizer` splits the sentences.
    """
    sentences = []
    for line, label, sentence in _rows(path, reading):
        tokens = reading.split(sentence)
        if label is None or not tokens:
            raise line.wrong("a label, a tab and a sentence")
        sentences.append(Classified(tokens, label))
    return numbered_lines.require_some(sentences, path, "sentence")


def read_sentences(path: str | os.PathLike, reading: Reading = DEFAULT) -> list[Classified]:
    """Returns sentences without labels, one per line or from the same formats; text before a tab is ignored."""
    if records.has_objects(path) or records.has_header(path, [_SENTENCE, (*_LABEL, "index")]):
        sentences = (reading.split(sentence) for _, _, sentence in _rows(path, reading))
    else:
        sentences = (reading.split(line.text.rpartition("\t")[2]) for line in numbered_lines.lines(path))
    return numbered_lines.require_some([Classified(tokens) for tokens in sentences if tokens], path, "sentence")


def _rows(path: str | os.PathLike, reading: Reading) -> Iterator[tuple[Line, str | None, str]]:
    """Yields each line with its label and its sentence, "" if it has none."""
    if records.has_objects(path) or records.has_header(path, [_SENTENCE, (*_LABEL, "index")]):
        for line, row in records.read(path):
            sentence = records.value(row, _SENTENCE)
            label = records.label(line, row, _LABEL, reading.labels)
            yield line, label, sentence if isinstance(sentence, str) else ""
    else:
        for line in numbered_lines.filled_lines(path):
            label, _, sentence = line.text.partition("\t")
            yield line, records.label(line, {"label": label}, _LABEL, reading.labels), sentence
