"""Texts with labels: CoNLL-U, SemCor and columns of tokens and tags, plain or compressed."""

import bz2
import gzip
import itertools
import lzma
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elmo_tf.errors import InputError

_OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_CONLLU_COLUMNS = 10
_TAGS = {"upos": 3, "xpos": 4}  # columns of CoNLL-U
_NOTHING = "_"  # what SemCor and CoNLL-U write where there is no value
_DOCUMENT = "# doc"


class Tagged(NamedTuple):
    """A sentence with a label for each token."""

    tokens: list[str]
    labels: list[str]


class Use(NamedTuple):
    """A word of a sentence that has a sense."""

    start: int  # of its tokens in the sentence
    end: int
    lemma: str  # with its part of speech, as `play%2`: 1 noun, 2 verb, 3 adjective, 4 adverb
    sense: str  # WordNet's sense key


class SenseSentence(NamedTuple):
    """A sentence of SemCor."""

    document: str
    tokens: list[str]
    uses: list[Use]


def read_conllu(path: str | os.PathLike, column: str = "upos", argument: str = "--train") -> list[Tagged]:
    """Returns the sentences of a CoNLL-U file; multiword tokens and empty nodes are left out, their words are there.

    Args:
        path: the file, plain or compressed.
        column: `"upos"` or `"xpos"`.
        argument: what an error calls the file.

    Raises:
        InputError: naming the line that is not CoNLL-U or has no tag; or if there is no sentence.
    """
    sentences = []
    for block in _blocks(path, argument):
        tokens, labels = [], []
        for number, line in block:
            fields = line.split("\t")
            if line.startswith("#"):
                continue
            if len(fields) != _CONLLU_COLUMNS:
                raise _wrong(argument, path, number, f"{_CONLLU_COLUMNS} columns of CoNLL-U", line)
            if not fields[0].isdecimal():
                continue
            if fields[_TAGS[column]] in ("", _NOTHING):
                raise _wrong(argument, path, number, f"a tag in the column {column}", line)
            tokens.append(_one_token(fields[1]))
            labels.append(fields[_TAGS[column]])
        sentences.append(Tagged(tokens, labels))
    return _some([one for one in sentences if one.tokens], argument, path, "sentence")


def read_columns(path: str | os.PathLike, argument: str = "--train") -> list[Tagged]:
    """Returns the sentences of a file with a token and a tag a line, between white space, as BIO files are.

    Of more columns the first and the last count. Tags may be I-only (IOB1); then an entity's first becomes B-.

    Raises:
        InputError: naming the line whose tag is missing or none of `O`, `B-...`, `I-...`; or if there is no sentence.
    """
    sentences = []
    for block in _blocks(path, argument):
        tokens, labels = [], []
        for number, line in block:
            fields = line.split("\t") if "\t" in line else line.split()
            if fields[0] == "-DOCSTART-":
                continue
            if len(fields) < 2 or not (fields[-1] == "O" or fields[-1][:2] in ("B-", "I-")):
                raise _wrong(argument, path, number, "a token and a tag, O, B-... or I-...", line)
            tokens.append(_one_token(fields[0]))
            labels.append(fields[-1])
        sentences.append(Tagged(tokens, _begun(labels)))
    return _some([one for one in sentences if one.tokens], argument, path, "sentence")


def read_semcor(path: str | os.PathLike, argument: str = "--train") -> list[SenseSentence]:
    """Returns the sentences of a file in SemCor's four columns: form, part of speech, lemma, sense key or `_`.

    A form of several words, joined by `_`, becomes several tokens; of several senses, `key;key`, the first counts.
    Lines `# doc NAME` begin a document.

    Raises:
        InputError: naming the line that has other columns or no sense key; or if there is no sentence.
    """
    sentences, document = [], ""
    for block in _blocks(path, argument):
        tokens, uses = [], []
        for number, line in block:
            if line.startswith(_DOCUMENT):
                document = line.removeprefix(_DOCUMENT).strip()
                continue
            fields = line.split("\t")
            if len(fields) != 4:
                raise _wrong(argument, path, number, "form, part of speech, lemma, sense key between tabs", line)
            words = [word for word in fields[0].split("_") if word] or [fields[0]]
            if fields[3] != _NOTHING:
                sense = fields[3].partition(";")[0]
                lemma = _lemma(sense, argument, path, number)
                uses.append(Use(len(tokens), len(tokens) + len(words), lemma, sense))
            tokens += words
        sentences.append(SenseSentence(document, tokens, uses))
    return _some([one for one in sentences if one.tokens], argument, path, "sentence")


def read_first_senses(path: str | os.PathLike, argument: str = "--sense-index") -> dict[str, str]:
    """Returns the first sense key of each lemma, with its part of speech as in `Use`, from WordNet's `index.sense`.

    A line has a sense key, the synset's offset, the sense's number (the first is the most frequent) and its uses.

    Raises:
        InputError: naming the line that has other columns or no sense key; or if there is no first sense.
    """
    first = {}
    for number, line in _lines(path, argument):
        fields = line.split()
        if len(fields) != 4 or not fields[2].isdecimal():
            raise _wrong(argument, path, number, "a sense key, an offset, a sense's number and a count", line)
        lemma = _lemma(fields[0], argument, path, number)
        if int(fields[2]) == 1:
            first[lemma] = fields[0]
    return _some(first, argument, path, "first sense")


def read_word_vectors(path: str | os.PathLike, argument: str = "--glove") -> tuple[list[str], np.ndarray]:
    """Returns the words and the float32 `(words, dim)` vectors of a text file like GloVe's, a word and numbers a line.

    Raises:
        InputError: naming the line that has no vector or one of another length; or if there is no word.
    """
    words, vectors = [], []
    for number, line in _lines(path, argument):
        word, *numbers = line.split(" ")
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.zeros(0, np.float32)
        if not len(vector) or (vectors and len(vector) != len(vectors[0])):
            expected = f"a word and {len(vectors[0]) if vectors else 'some'} numbers"
            raise _wrong(argument, path, number, expected, line)
        words.append(word)
        vectors.append(vector)
    return _some(words, argument, path, "word"), np.stack(vectors)


def _lemma(sense: str, argument: str, path: str | os.PathLike, number: int) -> str:
    """Returns the lemma and part of speech of a sense key, adjective satellites (5) with the adjectives (3)."""
    lemma, _, rest = sense.partition("%")
    kind = rest[:1]
    if not lemma or kind not in tuple("12345") or rest[1:2] != ":":
        raise _wrong(argument, path, number, "a sense key such as play%2:33:00::, or _ for none", sense)
    return f"{lemma}%{'3' if kind == '5' else kind}"


def _begun(labels: list[str]) -> list[str]:
    """Returns the tags with B- wherever an entity begins."""
    before = ["O", *labels]
    return [
        f"B-{label[2:]}" if label[:2] == "I-" and last[2:] != label[2:] else label
        for last, label in zip(before, labels, strict=False)
    ]


def _one_token(form: str) -> str:
    """Returns a form without the white space that some treebanks have inside one: text is split there elsewhere."""
    return "".join(form.split())


def _blocks(path: str | os.PathLike, argument: str) -> Iterator[list[tuple[int, str]]]:
    """Yields the numbered lines of each sentence that has other lines than remarks."""
    for empty, lines in itertools.groupby(_lines(path, argument), lambda line: not line[1].strip()):
        block = list(lines)
        if not empty:
            yield block


def _lines(path: str | os.PathLike, argument: str) -> Iterator[tuple[int, str]]:
    opener = _OPENERS.get(pathlib.Path(path).suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{argument}: expected UTF-8, found {error.reason} in {path}") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{argument}: expected a readable file, found {error}: {path}") from None


def _some(found: list | dict, argument: str, path: str | os.PathLike, what: str) -> list | dict:
    if not found:
        raise InputError(f"{argument}: expected at least one {what}, found none in {path}")
    return found


def _wrong(argument: str, path: str | os.PathLike, number: int, expected: str, found: str) -> InputError:
    return InputError(f"{argument}: expected {expected}, found {found!r} in line {number} of {path}")
