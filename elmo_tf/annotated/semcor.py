"""SemCor, text whose words have WordNet senses, and WordNet's index of senses."""

import os
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines
from elmo_tf.annotated.numbered_lines import Line

_NO_SENSE = "_"
_DOCUMENT = "# doc"


class Use(NamedTuple):
    """A word of a sentence that has a sense."""

    start: int  # its first token in the sentence
    end: int  # the token after its last
    lemma: str  # with its part of speech, as `play%2`: 1 noun, 2 verb, 3 adjective, 4 adverb
    sense: str  # WordNet's sense key
    others: tuple[str, ...] = ()  # further keys that are right


class SenseSentence(NamedTuple):
    """A sentence of SemCor."""

    document: str
    tokens: list[str]
    uses: list[Use]


def read_semcor(path: str | os.PathLike) -> list[SenseSentence]:
    """Returns the sentences of a file in SemCor's four columns: form, part of speech, lemma, sense key or `_`.

    A form of several words, joined by `_`, becomes several tokens. If there are several senses, `key;key`, the first
    is trained on. A line `# doc NAME` begins a document.
    """
    sentences, document = [], ""
    for block in numbered_lines.blocks(path):
        tokens, uses = [], []
        for line in block:
            if line.text.startswith(_DOCUMENT):
                document = line.text.removeprefix(_DOCUMENT).strip()
                continue
            fields = line.text.split("\t")
            if len(fields) != 4:
                raise line.wrong("form, part of speech, lemma, sense key between tabs")
            words = [word for word in fields[0].split("_") if word] or [fields[0]]
            if fields[3] != _NO_SENSE:
                sense = fields[3].partition(";")[0]
                uses.append(Use(len(tokens), len(tokens) + len(words), lemma_of(sense, line), sense))
            tokens += words
        if tokens:
            sentences.append(SenseSentence(document, tokens, uses))
    return numbered_lines.require_some(sentences, path, "sentence")


def read_first_senses(path: str | os.PathLike) -> dict[str, str]:
    """Returns the first sense key of each lemma, with its part of speech as in `Use`, from WordNet's `index.sense`.

    A line has a sense key, the synset's offset, the sense's number (the first is the most frequent) and its count.
    """
    first = {}
    for line in numbered_lines.lines(path):
        fields = line.text.split()
        if len(fields) != 4 or not fields[2].isdecimal():
            raise line.wrong("a sense key, an offset, a sense's number and a count")
        lemma = lemma_of(fields[0], line)
        if int(fields[2]) == 1:
            first[lemma] = fields[0]
    return numbered_lines.require_some(first, path, "first sense")


def lemma_of(sense: str, line: Line) -> str:
    """Returns the lemma and part of speech of a sense key; an adjective satellite (5) counts as an adjective (3)."""
    lemma, _, rest = sense.partition("%")
    kind = rest[:1]
    if not lemma or kind not in tuple("12345") or rest[1:2] != ":":
        raise line.wrong("a sense key such as play%2:33:00::, or _ for none", sense)
    return f"{lemma}%{'3' if kind == '5' else kind}"
