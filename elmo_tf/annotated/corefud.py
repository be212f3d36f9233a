"""CorefUD: Universal Dependencies with coreference, in the column MISC of CoNLL-U, as `Entity=(e1-person-1-)`."""

import os
import re
from collections.abc import Iterable, Iterator

from elmo_tf.annotated import conllu, numbered_lines
from elmo_tf.annotated.mentions import EMPTY_WORD, Bracket, Document, clusters_of
from elmo_tf.annotated.numbered_lines import Line, OddLines
from elmo_tf.errors import InputError

_COMMENT = re.compile(r"#\s*(newdoc|global\.Entity|speaker)\b(?:.*?=\s*(.*?))?\s*$")
_INDEX = re.compile(r"\d+([-.]\d+)?")  # of a word, a multiword token (3-4) or an empty node (3.1)
# One or both brackets of a mention: its attributes where it begins, the cluster alone where it only ends.
_BRACKET = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
_PART = re.compile(r"[^\[]*\[(\d+)/\d+\]")  # of a mention in several parts: e1[1/2]
_CLUSTER = ("eid", "GRP")  # the attribute's name in `# global.Entity`
_NO_MENTION = "it has no mention, Entity= in the column MISC"


def has_conllu(path: str | os.PathLike) -> bool:
    """Whether the first line that is no comment has as many columns as CoNLL-U, and the number of a word."""
    rows = (line.text.split("\t") for line in numbered_lines.nonblank_lines(path) if not line.text.startswith("#"))
    fields = next(rows, [])
    return len(fields) == len(conllu.columns_of(path)) and _INDEX.fullmatch(fields[0]) is not None


def read_corefud(path: str | os.PathLike, odd: OddLines, labeled: bool) -> Iterator[tuple[Line, Document]]:
    """Yields the first line with a word of each document, and the document; without clusters unless `labeled`.

    `# newdoc id = NAME` begins a document, `# speaker = NAME` names the speaker of a sentence. Multiword tokens and
    empty nodes are no words: a mention of words and empty nodes has the words. Mentions of empty nodes alone, and those
    in several parts, are left out and recorded in `odd`.
    """
    names, attribute, has_mentions = conllu.columns_of(path), 0, False
    conllu.check_columns(path, names, "ID", "FORM", "MISC")
    for key, blocks in _by_document(numbered_lines.blocks(path, odd)):
        sentences, speakers, num_words = [], [], 0
        brackets: list[Bracket] = []
        first_line = None
        for block in blocks:
            comments, sentence = _comments(block), []
            if "global.Entity" in comments:
                attribute = _position(*comments["global.Entity"])
            for line, index, form, misc in _rows(block, names):
                is_word = index.isdecimal()
                if labeled and (mentions := _mentions(line, index, misc)):
                    has_mentions = True
                    brackets += _brackets(line, mentions, attribute, num_words, num_words + is_word, odd)
                if is_word:
                    num_words += 1
                    sentence.append(numbered_lines.normalize_form(form) or EMPTY_WORD)
                    first_line = first_line or line
            if sentence:
                sentences.append(sentence)
                speakers.append([comments["speaker"][1] if "speaker" in comments else ""] * len(sentence))
        clusters = clusters_of(brackets, odd)
        if first_line:
            yield first_line, Document(key, sentences, clusters, speakers if any(map(any, speakers)) else [])
    if labeled and not has_mentions:
        raise InputError(str(path), _NO_MENTION)


def _by_document(blocks: Iterable[list[Line]]) -> Iterator[tuple[str, list[list[Line]]]]:
    """Yields the name and the sentences of each document."""
    key = ""
    sentences: list[list[Line]] = []
    for block in blocks:
        if begun := _comments(block).get("newdoc"):
            yield key, sentences
            key, sentences = begun[1], []
        sentences.append(block)
    yield key, sentences


def _comments(block: list[Line]) -> dict[str, tuple[Line, str]]:
    """Returns the lines and values of a sentence's comments that say something about mentions, by their names."""
    matches = ((line, _COMMENT.match(line.text)) for line in block)
    return {match[1]: (line, match[2] or "") for line, match in matches if match}


def _rows(block: list[Line], names: list[str]) -> Iterator[tuple[Line, str, str, str]]:
    """Yields the line, number, form and MISC of a sentence's words, multiword tokens and empty nodes."""
    for line in block:
        if not line.text.startswith("#"):
            fields = conllu.fields_of(line, names)
            index, form, misc = (fields[names.index(name)] for name in ("ID", "FORM", "MISC"))
            if not _INDEX.fullmatch(index):
                raise line.error("the number of a word", index)
            yield line, index, form, misc


def _mentions(line: Line, index: str, misc: str) -> str:
    """Returns the value of `Entity=`; "" if there is none."""
    pairs = (part.partition("=") for part in misc.split("|"))
    value = next((value for name, _, value in pairs if name == "Entity"), "")
    if value and "-" in index:
        raise line.error("mentions at words, not at a multiword token")
    return value


def _position(line: Line, attributes: str) -> int:
    """Returns which of a mention's attributes is its cluster."""
    names = attributes.split("-")
    position = next((names.index(name) for name in _CLUSTER if name in names), None)
    if position is None:
        raise line.error(f"the attribute {' or '.join(_CLUSTER)}, which names the cluster")
    return position


def _brackets(line: Line, text: str, attribute: int, first: int, end: int, odd: OddLines) -> Iterator[Bracket]:
    """Yields the brackets at a word, or at an empty node, whose `first` and `end` are equal."""
    brackets = list(_BRACKET.finditer(text))
    if "".join(match[0] for match in brackets) != text:
        raise line.error("mentions such as Entity=(e1-person, Entity=e1) or Entity=(e1-person)", text)
    for match in brackets:
        begun, closes, closed = match.groups()
        attributes = begun.split("-") if begun else [closed]
        position = attribute if begun else 0
        if position >= len(attributes):
            raise line.error(f"mentions of {position + 1} attributes or more", text)
        cluster = attributes[position]
        if part := _PART.fullmatch(cluster):
            if begun and part[1] == "1":
                odd.add(line.number, "a mention in several parts")
            continue
        yield Bracket(line, cluster, first if begun else None, end if closes or closed else None)
