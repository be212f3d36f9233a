"""Text annotated with WordNet senses: SemCor's columns, Raganato's framework; and WordNet's index of senses.

Raganato, Camacho-Collados and Navigli 2017, "Word Sense Disambiguation: A Unified Evaluation Framework and Empirical
Comparison": XML with instances, and a file of gold keys beside it.
"""

import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line
from elmo_tf.errors import InputError

_NO_SENSE = "_"
_DOCUMENT = "# doc"
_DATA, _GOLD = re.compile(r"\.data\.xml$"), ".gold.key.txt"
_JOINED = re.compile(r"(.+)\.d\d+")  # the name of a document in the framework's ALL, after that of its data set


class Use(NamedTuple):
    """A word of a sentence and its sense."""

    start: int  # its first token in the sentence
    end: int  # the token after its last
    lemma: str  # with its part of speech, as `play%2`: 1 noun, 2 verb, 3 adjective, 4 adverb
    sense: str  # WordNet's sense key
    others: tuple[str, ...] = ()  # other correct keys


class SenseSentence(NamedTuple):
    """A sentence of SemCor or of the framework."""

    document: str
    tokens: list[str]
    uses: list[Use]
    data_set: str = ""  # of several; "" if there is one


def read_semcor(path: str | os.PathLike) -> list[SenseSentence]:
    """Returns the sentences of a file in SemCor's four columns: form, part of speech, lemma, sense key or `_`.

    A form of several words, joined by `_`, becomes several tokens. If there are several senses, `key;key`, the first
    is trained on. A line `# doc NAME` begins a document.
    """
    sentences, document = [], ""
    for block in numbered_lines.blocks(path):
        tokens: list[str] = []
        uses = []
        for line in block:
            if line.text.startswith(_DOCUMENT):
                document = line.text.removeprefix(_DOCUMENT).strip()
                continue
            fields = line.text.split("\t")
            if len(fields) != 4:
                raise line.error("form, part of speech, lemma, sense key separated by tabs")
            forms = [form for form in fields[0].split("_") if form] or [fields[0]]
            if fields[3] != _NO_SENSE:
                sense = fields[3].partition(";")[0]
                uses.append(Use(len(tokens), len(tokens) + len(forms), lemma_of(sense, line), sense))
            tokens += forms
        if tokens:
            sentences.append(SenseSentence(document, tokens, uses))
    return numbered_lines.require_nonempty(sentences, path, "sentence")


def read_first_senses(path: str | os.PathLike) -> dict[str, str]:
    """Returns the first sense key of each lemma, with its part of speech as in `Use`, from WordNet's `index.sense`.

    A line has a sense key, the synset's offset, the sense's number (the first is the most frequent) and its count.
    """
    first = {}
    for line in numbered_lines.lines(path):
        fields = line.text.split()
        if len(fields) != 4 or not fields[2].isdecimal():
            raise line.error("a sense key, an offset, a sense's number and a count")
        lemma = lemma_of(fields[0], line)
        if int(fields[2]) == 1:
            first[lemma] = fields[0]
    return numbered_lines.require_nonempty(first, path, "first sense")


def lemma_of(sense: str, line: Line) -> str:
    """Returns the lemma and part of speech of a sense key; an adjective satellite (5) counts as an adjective (3)."""
    lemma, _, rest = sense.partition("%")
    kind = rest[:1]
    if not lemma or kind not in tuple("12345") or rest[1:2] != ":":
        raise line.error("a sense key such as play%2:33:00::, or _ for none", sense)
    return f"{lemma}%{'3' if kind == '5' else kind}"


def read_senses(path: str | os.PathLike) -> list[SenseSentence]:
    """Returns the sentences of a file of word senses: NAME.data.xml of the framework, or SemCor's columns.

    The gold keys are in NAME.gold.key.txt in the same folder: lines of an instance's name and its sense keys, any of
    which is right.
    """
    name = str(path)
    if not _DATA.search(name):
        if name.endswith(".xml"):
            raise InputError(name, f"the framework's files are called NAME.data.xml and NAME{_GOLD}")
        return read_semcor(path)
    gold = _read_gold(_DATA.sub(_GOLD, name))
    try:
        return numbered_lines.require_nonempty(list(_sentences(name, gold)), path, "sentence")
    except (ElementTree.ParseError, OSError) as error:
        raise InputError(name, f"it cannot be read as XML: {error}") from None


def read_data_sets(paths: Sequence[str | os.PathLike]) -> list[SenseSentence]:
    """Returns the sentences of all files, as `read_senses` does, with the names of the data sets.

    Files are named after what is before the first dot of their names, or by their paths if these are equal. The data
    sets in a file, as in the framework's ALL, keep their own names.
    """
    stems = [pathlib.Path(path).name.partition(".")[0] for path in paths]
    names = stems if len(set(stems)) == len(stems) else list(map(str, paths))
    own = names if len(paths) > 1 else [""]
    read = [(sentence, name) for path, name in zip(paths, own, strict=True) for sentence in read_senses(path)]
    return [sentence._replace(data_set=sentence.data_set or name) for sentence, name in read]


def _read_gold(path: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Returns the lemma, with its part of speech, and the sense keys of each instance."""
    gold = {}
    for line in numbered_lines.nonblank_lines(path):
        name, *senses = numbered_lines.split(line.text)
        if not senses:
            raise line.error("an instance and its sense keys")
        gold[name] = (lemma_of(senses[0], line), tuple(senses))
    return numbered_lines.require_nonempty(gold, path, "instance with a sense")


def _sentences(path: str, gold: dict[str, tuple[str, tuple[str, ...]]]) -> Iterator[SenseSentence]:
    document = data_set = ""
    for event, element in ElementTree.iterparse(path, events=("start", "end")):
        if event == "start" and element.tag == "text":
            document = element.get("id", "")
            data_set = joined[1] if (joined := _JOINED.fullmatch(document)) else ""
        elif event == "end" and element.tag == "sentence":
            tokens: list[str] = []
            uses = []
            for child in element:
                forms = numbered_lines.split((child.text or "").replace("_", " ")) or ["_"]
                if child.tag == "instance":
                    name = child.get("id", "")
                    if name not in gold:
                        raise InputError(path, f"the instance {name!r} has no sense in the gold keys")
                    lemma, senses = gold[name]
                    uses.append(Use(len(tokens), len(tokens) + len(forms), lemma, senses[0], senses[1:]))
                tokens += [numbered_lines.normalize_form(form) for form in forms]
            if tokens:
                yield SenseSentence(document, tokens, uses, data_set)
            element.clear()
