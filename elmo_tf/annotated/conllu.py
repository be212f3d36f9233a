"""Labels of words: CoNLL-U, the format of Universal Dependencies, CoNLL-U Plus, and the Penn Treebank's trees."""

import logging
import os
import re

from elmo_tf.annotated import numbered_lines, penn_trees
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.errors import InputError, suggestion

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_PLUS = re.compile(r"#\s*global\.columns\s*=(.*)")
_NOTHING = ("", "_")

_log = logging.getLogger("elmo_tf")


def read_labels(path: str | os.PathLike, labels: str = "upos") -> list[Tagged]:
    """Returns the sentences of a file: of trees with their parts of speech, or as `read_conllu`."""
    if not penn_trees.has_penn_trees(path):
        return read_conllu(path, labels)
    if labels.lower() not in ("upos", "xpos"):
        raise InputError("tags", f"{path} has trees, whose only labels are parts of speech")
    return penn_trees.read_penn_trees(path)


def read_conllu(path: str | os.PathLike, labels: str = "upos") -> list[Tagged]:
    """Returns the sentences of a file of CoNLL-U, or of CoNLL-U Plus, whose first line names its columns.

    `labels` names a column, as it is written or in lower case (`upos`), or a feature of the column FEATS (`Case`). In a
    column, every word needs a label. A word without the feature has the label "".

    Multiword tokens, whose words follow them, and empty nodes are left out. So are words whose form is only white
    space, and sentences whose words are withheld (all are `_`), with a warning.

    Raises:
        InputError: also if the file has no such column, and no word has such a feature.
    """
    sentences, odd = [], OddLines(path)
    features: set[str] = set()  # names that occur
    names = columns_of(path)
    column = labels.upper() if labels.islower() else labels
    is_feature = column not in names  # `Form` is a feature, `form` a column
    column = "FEATS" if is_feature else column
    check_columns(path, names, "FORM", column)
    for block in numbered_lines.blocks(path, odd):
        tokens, tags = [], []
        for line, fields in word_rows(block, names):
            label = fields[names.index(column)]
            if is_feature:
                values = _features(line, label)
                features |= values.keys()
                label = values.get(labels, "")
            elif label in _NOTHING:
                raise line.error(f"a tag in the column {labels}")
            if not (token := numbered_lines.normalize_form(fields[names.index("FORM")])):
                odd.add(line.number, "a form that is only white space")
                continue
            tokens.append(token)
            tags.append(label)
        if tokens and odd.has_words(block[0].number, tokens):
            sentences.append(Tagged(tokens, tags))
    sentences = odd.finish(sentences, "sentence")
    if is_feature:
        _report_feature(path, labels, sentences, features)
    return sentences


def columns_of(path: str | os.PathLike) -> list[str]:
    """Returns the names of a file's columns: CoNLL-U's, or those of CoNLL-U Plus."""
    named = _PLUS.match(numbered_lines.first_line(path))
    return named[1].split() if named else list(COLUMNS)


def check_columns(path: str | os.PathLike, names: list[str], *needed: str) -> None:
    """Raises `InputError` if a needed column is missing."""
    for name in needed:
        if name not in names:
            raise InputError(str(path), f"it has no column {name}; its columns are {' '.join(names)}")


def fields_of(line: Line, names: list[str]) -> list[str]:
    """Returns the fields of a line that is no comment."""
    fields = line.text.split("\t")
    if len(fields) != len(names):
        raise line.error(f"{len(names)} columns of CoNLL-U")
    return fields


def word_rows(block: list[Line], names: list[str]) -> list[tuple[Line, list[str]]]:
    """Returns the lines and fields of a sentence's words, without comments, multiword tokens and empty nodes."""
    rows = []
    for line in block:
        if line.text.startswith("#"):
            if (named := _PLUS.match(line.text)) and named[1].split() != names:
                raise line.error(f"the columns of the file's first line, {' '.join(names)}")
            continue
        fields = fields_of(line, names)
        if "ID" not in names or fields[names.index("ID")].isdecimal():
            rows.append((line, fields))
    return rows


def _features(line: Line, text: str) -> dict[str, str]:
    """Returns the features of a word by their names: `Case=Nom|Number=Sing`."""
    if text in _NOTHING:
        return {}
    parts = [part.partition("=") for part in text.split("|")]
    if not all(name and value for name, _, value in parts):
        raise line.error("features such as Case=Nom|Number=Sing, or _", text)
    return {name: value for name, _, value in parts}


def _report_feature(path: str | os.PathLike, name: str, sentences: list[Tagged], features: set[str]) -> None:
    """Logs how many words have the feature; raises `InputError` if none has."""
    tags = [tag for sentence in sentences for tag in sentence.labels or []]
    if not (num_labeled := sum(map(bool, tags))):
        known = f"a column or feature of {path} ({', '.join([*COLUMNS, *sorted(features)])})"
        raise InputError("tags", f"{known}{suggestion(name, [*COLUMNS, *features])}", name)
    _log.info("%s: %d of %d words have the feature %s; the others have no label", path, num_labeled, len(tags), name)
