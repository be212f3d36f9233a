"""SemCor, text whose words have WordNet senses, and WordNet's index of senses."""

import os
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines

# Stands in SemCor for no sense.
_NOTHING = "_"
_DOCUMENT = "# doc"


class Use(NamedTuple):
    """A word of a sentence that has a sense."""

    # Its first token in the sentence, and the one behind its last.
    start: int
    end: int
    # With its part of speech, as `play%2`: 1 noun, 2 verb, 3 adjective, 4 adverb.
    lemma: str
    # WordNet's sense key.
    sense: str


class SenseSentence(NamedTuple):
    """A sentence of SemCor."""

    document: str
    tokens: list[str]
    uses: list[Use]


def read_semcor(path: str | os.PathLike) -> list[SenseSentence]:
    """Returns the sentences of a file in SemCor's four columns: form, part of speech, lemma, sense key or `_`.

    A form of several words, joined by `_`, becomes several tokens. Of several senses, `key;key`, the first is taken.
    A line `# doc NAME` begins a document.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line that has other columns or no sense key; or if there is no sentence.
    """
    sentences, document = [], ""
    for block in numbered_lines.blocks(path):
        tokens, uses = [], []
        for number, line in block:
            if line.startswith(_DOCUMENT):
                document = line.removeprefix(_DOCUMENT).strip()
                continue
            fields = line.split("\t")
            if len(fields) != 4:
                expected = "form, part of speech, lemma, sense key between tabs"
                raise numbered_lines.wrong_line(path, number, expected, line)
            words = [word for word in fields[0].split("_") if word] or [fields[0]]
            if fields[3] != _NOTHING:
                sense = fields[3].partition(";")[0]
                uses.append(Use(len(tokens), len(tokens) + len(words), _lemma(sense, path, number), sense))
            tokens += words
        sentences.append(SenseSentence(document, tokens, uses))
    return numbered_lines.require_some([one for one in sentences if one.tokens], path, "sentence")


def read_first_senses(path: str | os.PathLike) -> dict[str, str]:
    """Returns the first sense key of each lemma, with its part of speech as in `Use`, from WordNet's `index.sense`.

    A line has a sense key, the synset's offset, the sense's number (the first is the most frequent) and its uses.

    Args:
        path: the file, plain or compressed (.gz, .bz2, .xz).

    Raises:
        InputError: naming the line that has other columns or no sense key; or if there is no first sense.
    """
    first = {}
    for number, line in numbered_lines.numbered_lines(path):
        fields = line.split()
        if len(fields) != 4 or not fields[2].isdecimal():
            expected = "a sense key, an offset, a sense's number and a count"
            raise numbered_lines.wrong_line(path, number, expected, line)
        lemma = _lemma(fields[0], path, number)
        if int(fields[2]) == 1:
            first[lemma] = fields[0]
    return numbered_lines.require_some(first, path, "first sense")


def _lemma(sense: str, path: str | os.PathLike, number: int) -> str:
    """Returns the lemma and part of speech of a sense key; an adjective satellite (5) counts as an adjective (3)."""
    lemma, _, rest = sense.partition("%")
    kind = rest[:1]
    if not lemma or kind not in tuple("12345") or rest[1:2] != ":":
        raise numbered_lines.wrong_line(path, number, "a sense key such as play%2:33:00::, or _ for none", sense)
    return f"{lemma}%{'3' if kind == '5' else kind}"
