"""Running text to words by the Penn Treebank's rules, with offsets: in plain Python and in the graph of an export.

`do n't`, `Anna 's`; punctuation marks are split off; `Mr.`, `U.S.` and `well-known` stay whole; typographic quotes and
dashes become the ASCII ones of the text that `english` was trained on. Text already split is not changed. Scripts
without spaces between words are split into their characters, each with its marks.

One table of rules serves Python's `re` and RE2, TensorFlow's. A rule only inserts MARK between pieces of the text, or
keeps the number of bytes, so the lengths of the pieces, white space included, give the offsets. In patterns, characters
outside of ASCII stand as themselves, and no class is negated: in Python alone, it would match bytes that are not UTF-8.
"""

import functools
import re
from typing import NamedTuple

MARK = "\x1f"

# Punctuation and symbols.
_SYMBOLS = (
    "!-/:-@\\[-`{-~\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u037e\u0387"
    "\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u0609\u060a\u060c\u060d\u061b\u061d-\u061f\u066a-\u066d\u06d4\u0700-\u070d"
    "\u07f7-\u07f9\u0830-\u083e\u085e\u0964\u0965\u09fd\u0a76\u0af0\u0c77\u0c84\u0df4\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f12\u0f14\u0f3a-\u0f3d\u0f85"
    "\u0fd0-\u0fd4\u0fd9\u0fda\u104a-\u104f\u109e\u109f\u10fb\u1360-\u1368\u1400\u166e\u169b\u169c\u16eb-\u16ed\u1735\u1736\u17d4-\u17d6\u17d8-\u17db"
    "\u1800-\u180a\u1944\u1945\u19de-\u19ff\u1a1e\u1a1f\u1aa0-\u1aa6\u1aa8-\u1aad\u1b5a-\u1b60\u1b7d\u1b7e\u1bfc-\u1bff\u1c3b-\u1c3f\u1c7e\u1c7f"
    "\u1cc0-\u1cc7\u1cd3\u207d\u207e\u208d\u208e\u2cf9-\u2cfc\u2cfe\u2cff\u2d70\u303d\u30a0\ua4fe\ua4ff\ua60d-\ua60f\ua673\ua67e\ua6f2-\ua6f7"
    "\ua874-\ua877\ua8ce\ua8cf\ua8f8-\ua8fa\ua8fc\ua92e\ua92f\ua95f\ua9c1-\ua9cd\ua9de\ua9df\uaa5c-\uaa5f\uaa77-\uaa79\uaade\uaadf\uaaf0\uaaf1\uabeb"
    "\ufd3e\ufd3f"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u214f\u2190-\u2bff\u2e00-\u2e7f\u3001-\u3003\u3008-\u3020\u3030"
    "\u30fb\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0-\ufffd"
    "\U0001f000-\U0001faff"
)
# Ideographs and kana, in the ranges that Unicode reserves for them: each is a token with its sound mark or selector.
_IDEOGRAPHS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_IDEOGRAPH = f"[{_IDEOGRAPHS}][\u3099\u309a\uff9e\uff9f\ufe00-\ufe0f\U000e0100-\U000e01ef]*"
# The letters and marks of Thai, Lao, Khmer, Burmese and related scripts: where lines may be broken between words only,
# and only a dictionary knows where these end (class SA of Unicode's UAX #14). Each letter is a token with its marks and
# with the letters that _STACKERS put below it.
CLUSTERED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1950-\u1974\u1980-\u19c9\u1a20-\u1a7f\u1aa7\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a-\uaadd\U00011700-\U0001172f"
)
_MARKS = (
    "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    "\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u1a55-\u1a7f\ua9e5\uaa7b-\uaa7d\uaab0\uaab2-\uaab4\uaab7\uaab8"
    "\uaabe\uaabf\uaac1\u200c\u200d\U0001171d-\U0001172b"
)
_STACKERS = "\u1039\u17d2\u1a60"
CLUSTER = f"[{CLUSTERED}](?:[{_STACKERS}][{CLUSTERED}]|[{_MARKS}])*"
# The zero width space, which separates words of Khmer and Thai; marks of direction, in Arabic and Hebrew text.
INVISIBLE = "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069"
# White space and control characters: Unicode's categories Z and Cc, except MARK; and INVISIBLE.
_SPACES = "\\x00-\\x1e \\x7f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000" + INVISIBLE
# Decimal digits, other than ASCII's, of scripts in which numbers are written with them.
_DIGITS = "\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0be6-\u0bef\u0e50-\u0e59\uff10-\uff19"
# Quotation marks inside a word of Hebrew mark acronyms and foreign sounds (WB7 in Unicode's UAX #29).
HEBREW = "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u05d0-\u05ea]+"
HEBREW_WORD = f"{HEBREW}(?:[\"'\u2019\u05f3\u05f4]{HEBREW})+"


def _others(ranges: str) -> str:
    """Returns the ranges of the characters after U+00A0 that are outside the given ranges, without surrogates."""
    pairs = re.findall(r"([^\x00-\xa0])(?:-(.))?", ranges)
    taken = sorted([(ord(first), ord(last or first)) for first, last in pairs] + [(0xD800, 0xDFFF), (0x110000, 0)])
    others, following = "", 0xA1
    for first, last in taken:
        if first > following:
            others += f"{chr(following)}-{chr(first - 1)}"
        following = last + 1
    return others


_LETTERS = "A-Za-z" + _others(_SYMBOLS + _SPACES + _IDEOGRAPHS + CLUSTERED)
_SYMBOL, _SPACE, _LETTER, _WORD = f"[{_SYMBOLS}]", f"[{_SPACES}]", f"[{_LETTERS}]", f"[0-9{_LETTERS}]"
_APOSTROPHE = "['\u2019]"
_HYPHEN = "[-_\u2010\u2011]"
# Not `(?i:...)`: RE2 takes Unicode's long s for an s.
_CLITIC = rf"{_APOSTROPHE}(?:[sSdDmM]|[rRvV][eE]|[lL][lL])\b"
# Abbreviations kept whole in the text that `english` was trained on.
_ABBREVIATION = (
    r"(?:Mrs?|Ms|Messrs|Mme|Mlle|Dr|Prof|Rev|Hon|St|Capt|Col|Gen|Gov|Lt|Lieut|Sgt|Sen|Rep|Jr|Sr|Esq|Inc|Ltd|Corp|Co|Vs|"
    r"Viz|Etc|MRS?|MS|MME|DR|PROF|REV|HON|ST|CAPT|COL|GEN|LT|LIEUT|SGT|SEN|REP|JR|SR|INC|LTD|CORP|CO|VS|ETC|"
    r"vs|viz|etc|mrs?|dr|jr|sr|inc|ltd|Ph\.D)\."
)
# A full stop after these does not end a sentence, in `raw_text`.
ABBREVIATIONS = (
    "mr|mrs|ms|messrs|mme|mlle|dr|prof|rev|hon|st|mt|capt|col|gen|lt|sgt|gov|sen|rep|jr|sr|"
    "vs|cf|viz|vol|fig|pp|inc|co|corp|ltd|dept|jan|feb|mar|apr|aug|sept|oct|nov|dec"
)
# The full stop belongs to a single letter inside of a sentence: `J. Smith`, `p. 5`, but `so do I. He`, `of x. The`.
_INITIAL = rf"[A-HJ-Z]\.{MARK}|[Ia-z]\.{MARK}{MARK}"

# Tokens; the first alternative that matches counts.
_TOKEN = "|".join(
    [
        _CLITIC,
        r"(?:[A-Za-z]\.){2,}",  # U.S.
        _ABBREVIATION,
        _INITIAL,
        # 12,000; 1/2; 3.5-inch; 10-year-old; but 1990 - 95
        rf"[0-9]+(?:[.,:/][0-9]+)*{_WORD}*(?:{_HYPHEN}{_LETTER}{_WORD}*)*",
        f"[{_DIGITS}]+(?:[.,:/\u066b\u066c\uff0e][{_DIGITS}]+)+",
        f"{HEBREW_WORD}(?:{_HYPHEN}{_WORD}+)*",
        # well-known; O'Brien
        rf"{_LETTER}{_WORD}*(?:(?:{_HYPHEN}|{_APOSTROPHE}){_WORD}+)*",
        _IDEOGRAPH,
        CLUSTER,
        "\\.\\.\\.+|--+|[\u2014\u2015]+|``|''",
        # Any other symbol. Emoji: with a variation selector or skin tone, several with joiners.
        f"{_SYMBOL}(?:[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|\u200d{_SYMBOL})*",
    ]
)

# Patterns and replacements, in order; `\0` is all that matched. These look across white space:
_ACROSS = (
    (MARK, " "),
    # The en dash of 1990-95 is a hyphen, others are dashes; twice for 1-2-3, whose matches overlap.
    ("([0-9])\u2013([0-9])", "\\1\u2012\\2"),
    ("([0-9])\u2013([0-9])", "\\1\u2012\\2"),
    # One mark after a full stop that does not end the text, two if no capital letter follows: see _INITIAL.
    (rf"\.({_SPACE}+[0-9a-z])", rf".{MARK}{MARK}\1"),
    (rf"\.({_SPACE}+[0-9{_LETTERS}{_SYMBOLS}{_IDEOGRAPHS}{CLUSTERED}])", rf".{MARK}\1"),
)
_INSIDE = (
    (rf"({_WORD})([nN]{_APOSTROPHE}[tT]\b)|({_CLITIC})", rf"\1{MARK}\2\3"),
    (_TOKEN, rf"\0{MARK}"),
)
RULES = (*_ACROSS, *_INSIDE, (f"{_SPACE}+", rf"{MARK}\0{MARK}"))
WHITE_SPACE = f"{_SPACE}*"  # pieces that are not tokens
# Afterwards, replacements in the text of tokens; none reaches beyond a token.
NORMALIZED = (
    ("``|''|[\u201c-\u201f]", '"'),
    ("[\u2018-\u201b`]", "'"),
    ("[\u2013-\u2015]+", "--"),
    ("[\u2010-\u2012\u2212]", "-"),
    ("\u2026", "..."),
)


class Word(NamedTuple):
    """A word or a punctuation mark, and its offsets in the text."""

    text: str
    start: int  # its first character
    end: int  # the character after its last


def split(text: str) -> list[str]:
    """Returns the words and punctuation marks of a text: all of it except white space and control characters."""
    return [word.text for word in split_with_offsets(text)]


def split_with_offsets(text: str) -> list[Word]:
    """Like `split`, with each word's offsets in the text, in characters."""
    words, marks = [], 0
    for run in re.finditer(f"[^{_SPACES}]+", _replaced(text, _ACROSS)):
        start = run.start() - marks
        marks += run.group().count(MARK)
        words += [Word(token, start + begin, start + end) for token, begin, end in _split_run(run.group())]
    return words


def split_bytes(text: bytes) -> list[bytes]:
    """Like `split`, for UTF-8; invalid bytes are kept: in the token after them or as a token."""
    return [word.encode(errors="surrogateescape") for word in split(text.decode(errors="surrogateescape"))]


@functools.lru_cache(2**16)
def _split_run(run: str) -> list[Word]:
    """Splits text without white space."""
    marked, words, end = _replaced(run, _INSIDE), [], 0
    for piece, token in zip(marked.split(MARK), _replaced(marked, NORMALIZED).split(MARK), strict=True):
        begin, end = end, end + len(piece)
        if piece:
            words.append(Word(token, begin, end))
    return words


def _replaced(text: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in _compiled(rules):
        text = pattern.sub(replacement, text)
    return text


@functools.cache
def _compiled(rules: tuple[tuple[str, str], ...]) -> list[tuple[re.Pattern, str]]:
    return [(re.compile(pattern, re.ASCII), replacement.replace(r"\0", r"\g<0>")) for pattern, replacement in rules]
