"""Running text from collections of novels: the rules by which `data.py` makes the folders `novels_LANGUAGE`.

A collection is a folder of novels, each of which becomes a list of paragraphs, one line each, in Unicode's form NFC. Of
the novels, in the order of the SHA-256 of their names, the first three are held out, at most 20,000 words of each; the
next, as long as they fit into five million words, are the text to train on. A word is a run of letters and digits, or
an ideograph.
"""

import hashlib
import html
import json
import pathlib
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator

_TEI = "{http://www.tei-c.org/ns/1.0}"
_MAX_BYTES = 2_500_000  # of a TEI file; longer novels are left out
_HELDOUT_NOVELS, _HELDOUT_WORDS = 3, 20_000  # words of each
_TRAIN_WORDS = 5_000_000
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_DYNASTIES = {"明", "明末清初", "清"}  # of authors whose copyright has ended

Novels = dict[str, Callable[[], Iterable[str]]]  # from names to what returns the paragraphs


def eltec(folder: pathlib.Path) -> Novels:
    """Returns the novels of a collection of the European Literary Text Collection: a folder of TEI files."""
    paths = [path for path in folder.glob("*.xml") if path.stat().st_size <= _MAX_BYTES]
    return {path.name: lambda path=path: tei_paragraphs(path.read_bytes()) for path in paths}


def tei_paragraphs(document: bytes) -> Iterator[str]:
    """Yields the paragraphs of prose of a TEI document's body: no headings, verse, notes or front matter."""
    for body in ET.fromstring(document).iter(f"{_TEI}body"):
        for paragraph in body.iter(f"{_TEI}p"):
            if text := _clean("".join(_texts(paragraph))):
                yield text


def _texts(element: ET.Element) -> Iterator[str]:
    """Yields the pieces of text in an element; notes and nested paragraphs, which come by themselves, are left out."""
    yield element.text or ""
    for child in element:
        if child.tag not in (f"{_TEI}note", f"{_TEI}p"):
            yield from _texts(child)
        yield child.tail or ""


def chinese(resources: pathlib.Path) -> Novels:
    """Returns the novels of authors of the Ming and Qing dynasties: a folder of HTML pages for each."""
    novels: Novels = {}
    for info in resources.glob("*/*/info.json"):
        author = json.loads(info.read_bytes(), strict=False).get("author") or {}
        if author.get("dynasty") in _DYNASTIES:
            pages = sorted(info.parent.glob("*.html"), key=lambda path: int(path.stem))
            novels[info.parent.name] = lambda pages=pages: html_paragraphs(path.read_text("utf-8") for path in pages)
    return novels


def html_paragraphs(pages: Iterable[str]) -> Iterator[str]:
    """Yields the paragraphs of pages: what stands between line breaks, up to a script."""
    for page in pages:
        for line in re.split(r"<br\s*/?>|</?p>", page.partition("<script")[0]):
            if text := _clean(html.unescape(re.sub("<[^>]*>", "", line))):
                yield text


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


def num_words(text: str) -> int:
    """Returns how many words a text has."""
    return sum(1 for _ in _WORD.finditer(text))


def divided(novels: Novels) -> dict[str, bytes]:
    """Returns the text to train on, and the text that is held out."""
    train: list[str] = []
    heldout: list[str] = []
    left = _TRAIN_WORDS
    for number, name in enumerate(sorted(novels, key=lambda name: hashlib.sha256(name.encode()).digest())):
        paragraphs = list(novels[name]())
        if number < _HELDOUT_NOVELS:
            heldout += _first(paragraphs, _HELDOUT_WORDS)
        elif (words := num_words("\n".join(paragraphs))) <= left:
            train += paragraphs
            left -= words
    return {
        name: "".join(f"{line}\n" for line in lines).encode()
        for name, lines in (("train.txt.xz", train), ("heldout.txt.xz", heldout))
    }


def _first(paragraphs: list[str], limit: int) -> Iterator[str]:
    """Yields the first paragraphs, up to a number of words."""
    for paragraph in paragraphs:
        limit -= num_words(paragraph)
        if limit < 0:
            return
        yield paragraph
