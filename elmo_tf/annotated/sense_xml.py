"""Raganato's evaluation framework for word senses: XML with instances, and a file of gold keys beside it.

Raganato, Camacho-Collados and Navigli 2017, "Word Sense Disambiguation: A Unified Evaluation Framework and Empirical
Comparison".
"""

import os
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from elmo_tf.annotated import numbered_lines, words
from elmo_tf.annotated.semcor import SenseSentence, Use, lemma_of, read_semcor
from elmo_tf.errors import InputError

_DATA, _GOLD = re.compile(r"\.data\.xml$"), ".gold.key.txt"


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
        return numbered_lines.require_some(list(_sentences(name, gold)), path, "sentence")
    except (ElementTree.ParseError, OSError) as error:
        raise InputError(name, f"it cannot be read as XML: {error}") from None


def _read_gold(path: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Returns the lemma, with its part of speech, and the sense keys of each instance."""
    gold = {}
    for line in numbered_lines.filled_lines(path):
        name, *senses = words.split(line.text)
        if not senses:
            raise line.wrong("an instance and its sense keys")
        gold[name] = (lemma_of(senses[0], line), tuple(senses))
    return numbered_lines.require_some(gold, path, "instance with a sense")


def _sentences(path: str, gold: dict[str, tuple[str, tuple[str, ...]]]) -> Iterator[SenseSentence]:
    document = ""
    for event, element in ElementTree.iterparse(path, events=("start", "end")):
        if event == "start" and element.tag == "text":
            document = element.get("id", "")
        elif event == "end" and element.tag == "sentence":
            tokens: list[str] = []
            uses = []
            for child in element:
                forms = words.split((child.text or "").replace("_", " ")) or ["_"]
                if child.tag == "instance":
                    name = child.get("id", "")
                    if name not in gold:
                        raise InputError(path, f"the instance {name!r} has no sense in the gold keys")
                    lemma, senses = gold[name]
                    uses.append(Use(len(tokens), len(tokens) + len(forms), lemma, senses[0], senses[1:]))
                tokens += [words.word(form) for form in forms]
            if tokens:
                yield SenseSentence(document, tokens, uses)
            element.clear()
