"""Whether two words are one word in upper or lower case, in any language."""
# ruff: noqa: RUF001, RUF002 - a letter of Turkish is the point here

import functools


def same(first: str, second: str) -> bool:
    """Whether two words differ in case alone, by Unicode's case folding: `STRASSE` and `straße` are one word.

    Capital I is both that of English and that of Turkish, where `I` and `ı`, `İ` and `i` are pairs. `i` and `ı` differ.
    """
    return first == second or not _folded(first).isdisjoint(_folded(second))


@functools.lru_cache(2**16)  # a text repeats its words
def _folded(word: str) -> set[str]:
    return {word.casefold(), word.replace("I", "ı").replace("İ", "i").casefold()}
