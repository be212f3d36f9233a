"""SemCor and WordNet: words with senses."""

import os
from typing import NamedTuple

from elmo_tf.annotated import numbered_lines

_NOTHING = "_"  # what SemCor writes where there is no sense
_DOCUMENT = "# doc"


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


def read_semcor(path: str | os.PathLike, argument: str = "--train") -> list[SenseSentence]:
    """Returns the sentences of a file in SemCor's four columns: form, part of speech, lemma, sense key or `_`.

    A form of several words, joined by `_`, becomes several tokens; of several senses, `key;key`, the first counts.
    Lines `# doc NAME` begin a document.

    Raises:
        InputError: naming the line that has other columns or no sense key; or if there is no sentence.
    """
    sentences, document = [], ""
    for block in numbered_lines.blocks(path, argument):
        tokens, uses = [], []
        for number, line in block:
            if line.startswith(_DOCUMENT):
                document = line.removeprefix(_DOCUMENT).strip()
                continue
            fields = line.split("\t")
            if len(fields) != 4:
                raise numbered_lines.wrong_line(
                    argument, path, number, "form, part of speech, lemma, sense key between tabs", line
                )
            words = [word for word in fields[0].split("_") if word] or [fields[0]]
            if fields[3] != _NOTHING:
                sense = fields[3].partition(";")[0]
                lemma = _lemma(sense, argument, path, number)
                uses.append(Use(len(tokens), len(tokens) + len(words), lemma, sense))
            tokens += words
        sentences.append(SenseSentence(document, tokens, uses))
    return numbered_lines.require_some([one for one in sentences if one.tokens], argument, path, "sentence")


def read_first_senses(path: str | os.PathLike, argument: str = "--sense-index") -> dict[str, str]:
    """Returns the first sense key of each lemma, with its part of speech as in `Use`, from WordNet's `index.sense`.

    A line has a sense key, the synset's offset, the sense's number (the first is the most frequent) and its uses.

    Raises:
        InputError: naming the line that has other columns or no sense key; or if there is no first sense.
    """
    first = {}
    for number, line in numbered_lines.numbered_lines(path, argument):
        fields = line.split()
        if len(fields) != 4 or not fields[2].isdecimal():
            raise numbered_lines.wrong_line(
                argument, path, number, "a sense key, an offset, a sense's number and a count", line
            )
        lemma = _lemma(fields[0], argument, path, number)
        if int(fields[2]) == 1:
            first[lemma] = fields[0]
    return numbered_lines.require_some(first, argument, path, "first sense")


def _lemma(sense: str, argument: str, path: str | os.PathLike, number: int) -> str:
    """Returns the lemma and part of speech of a sense key, adjective satellites (5) with the adjectives (3)."""
    lemma, _, rest = sense.partition("%")
    kind = rest[:1]
    if not lemma or kind not in tuple("12345") or rest[1:2] != ":":
        raise numbered_lines.wrong_line(
            argument, path, number, "a sense key such as play%2:33:00::, or _ for none", sense
        )
    return f"{lemma}%{'3' if kind == '5' else kind}"
