"""Raw text to sentences and tokens, with tensorflow-text: in preprocessing and in the graph of an exported model.

The rules are regular expressions in RE2's syntax, so both split text in the same way.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from elmo_tf import extras
from elmo_tf.text.penn import ABBREVIATIONS, CLUSTER, CLUSTERED, HEBREW_WORD, INVISIBLE, Word

with extras.explain_missing_extra():
    import tensorflow_text

_SPACES = rf"\s\p{{Z}}\p{{Cc}}{INVISIBLE}"
_SPACE = f"[{_SPACES}]+"

# Ideographs and kana, each a token. The ranges are the marks that Unicode assigns to several scripts (prolonged sound,
# repeat marks) and the planes that it reserves for ideographs.
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\x{3006}\x{3031}-\x{3035}\x{303C}\x{30FC}\x{FF70}\x{20000}-\x{3FFFD}"
# Characters that belong to the one before: combining marks, variation selectors and half-width voiced sound marks.
_MARKS = r"[\p{M}\x{FF9E}\x{FF9F}]*"
# RE2 cannot intersect classes, so each of these is the complement of what it excludes.
_LETTER = rf"[^\P{{L}}{_CJK}{CLUSTERED}]"
_DIGIT = rf"[^\P{{N}}{_CJK}]"
_CYRILLIC = r"[\x{400}-\x{52F}\x{300}-\x{301}]+"  # with stress marks
_WORD = rf"(?:{_LETTER}|{_DIGIT}|\p{{M}})+"
_HYPHEN = r"[-\x{2010}\x{2011}]"
_NUMBER = rf"{_DIGIT}(?:{_DIGIT}|\p{{M}})*"
# Full-width punctuation ends an address in Chinese and Japanese, which have no spaces around it.
_ADDRESS = rf"[^{_SPACES}{_CJK}{CLUSTERED}\x{{3000}}-\x{{303F}}\x{{FF00}}-\x{{FFEF}}]*(?:{_LETTER}|{_DIGIT}|/)"

# Emoji as in Unicode's UTS #51: a pictograph with its variation selector, skin tone or tags, several with joiners
# (U+200D) between them, a pair of regional indicators, or a keycap. The ranges are reserved for pictographs.
_PICTOGRAPH = r"[\p{S}\x{203C}\x{2049}\x{3030}\x{1F000}-\x{1FAFF}\x{1FC00}-\x{1FFFD}]"
_MODIFIERS = r"[\p{M}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*"
_EMOJI = rf"{_PICTOGRAPH}{_MODIFIERS}(?:\x{{200D}}{_PICTOGRAPH}{_MODIFIERS})*"
_FLAG = rf"[\x{{1F1E6}}-\x{{1F1FF}}]{{2}}{_MODIFIERS}"
_KEYCAP = r"[0-9#*]\x{FE0F}?\x{20E3}"

# One token each; the first alternative that matches counts. Any other text between these and white space is a word.
_TOKEN = "|".join(
    [
        # Web and e-mail addresses.
        rf"(?:https?://|www\.){_ADDRESS}",
        rf"[\w.]+@{_WORD}(?:[.-]{_WORD})+",
        # U.S., p.m. RE2's \b knows only ASCII, and where it depends on text outside a token, the token is lost.
        rf"\b[A-Za-z]\.(?:{_LETTER}\.)+",
        r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|Sr)\.",
        # well-known, 24-year-old
        # In Ukrainian and Belarusian, an apostrophe between letters is one of them.
        rf"(?:{_CYRILLIC}(?:(?:['\x{{2019}}]|{_HYPHEN}){_CYRILLIC})+|{HEBREW_WORD})(?:{_HYPHEN}{_WORD})*",
        rf"{_WORD}(?:{_HYPHEN}{_WORD})+",
        # don 't, the king 's: as in 1 Billion Word
        r"['\x{2019}](?i:s|t|re|ve|ll|d|m)\b",
        _KEYCAP,
        # 3.50, 12,000, 10:30, 1/2
        rf"{_NUMBER}(?:[.,:/\x{{66B}}\x{{66C}}\x{{FF0E}}]{_NUMBER})+",
        # 1999, 5th, 1990s
        rf"{_NUMBER}(?:{_LETTER}|\p{{M}})*",
        _FLAG,
        _EMOJI,
        # Punctuation marks, each a token except for ... and --.
        rf"(?:\.\.\.+|--+|\p{{P}}){_MARKS}",
        rf"[{_CJK}]{_MARKS}",
        CLUSTER,
    ]
)

# Closing quotes and brackets. Directly after a mark, opening ones close too, as in German. They may
# also be separate, as in tokenized text and in French.
_CLOSING, _CLOSING_APART = r"[\"'\p{Pi}\p{Pf}\p{Pe}]", r"[\"'\p{Pf}\p{Pe}]"
# Marks that end a sentence, most with Unicode's property Sentence_Terminal: of Latin, Armenian, Arabic, Urdu, Indic
# scripts, Burmese, Ethiopic and Khmer; and of Chinese and Japanese, which need no white space after them.
_MARK = (
    r"[.!?\x{2026}\x{589}\x{61F}\x{6D4}\x{964}\x{965}\x{104B}\x{1362}\x{1367}\x{1368}\x{17D4}\x{17D5}\x{203C}\x{203D}"
    r"\x{2047}-\x{2049}]"
)
_FULL_WIDTH = r"[\x{3002}\x{FF01}\x{FF1F}\x{FF61}]"
# Where a sentence may end: marks, closing quotes and brackets, white space.
_END = (
    rf"{_MARK}+{_CLOSING}*(?:{_SPACE}{_CLOSING_APART}+)?{_SPACE}"
    rf"|{_FULL_WIDTH}+[\p{{Pf}}\p{{Pe}}]*(?:{_SPACE}[\p{{Pf}}\p{{Pe}}]+)?[{_SPACES}]*"
)
_BEFORE_WORD = rf"(?s)(?:.*[{_SPACES}\p{{Ps}}\p{{Pi}}\"'])?"
# A full stop does not end a sentence after these: abbreviations, initials, letters with full stops between them, with
# or without spaces (`z. B.`, `d. h.`).
_ABBREVIATED = rf"{_BEFORE_WORD}(?:(?i:{ABBREVIATIONS})|[^\P{{Lu}}I]|(?:\p{{L}}\.)+\p{{L}})|\p{{L}}"
_LETTER_LAST, _LETTER_ALONE = rf"{_BEFORE_WORD}\p{{L}}", r"\p{L}"
# Sentences do not begin like this: with a small letter, also after a dash, as in dialogue (`— No! — he said.`).
# Letters of Georgian count as small ones in Unicode.
_CONTINUATION = r"(?s)(?:(?:[\x{2013}-\x{2015}]|--)[\s\p{Z}]*)?(?:[^\P{Ll}\p{Georgian}]|[,;:]).*"


def tokenize(sentences: tf.Tensor) -> tf.RaggedTensor:
    """Splits sentences into words, numbers, punctuation marks, emoji, and single ideographs and kana.

    Args:
        sentences: string `(batch,)`, UTF-8.

    Returns:
        string `(batch, (tokens))`: all of the text except white space and control characters.
    """
    return tokenize_with_offsets(sentences)[0]


def tokenize_with_offsets(sentences: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Returns the tokens of `tokenize` and where each begins and ends, in bytes: int64 `(batch, (tokens))`."""
    return tensorflow_text.regex_split_with_offsets(_without_nul(sentences), f"{_SPACE}|{_TOKEN}", _TOKEN)


def split_with_offsets(texts: Sequence[str]) -> list[list[Word]]:
    """Returns the tokens of each text as `tokenize` finds them, with their offsets in characters."""
    contents = [text.encode(errors="replace") for text in texts]  # half of a surrogate pair becomes `?`
    columns = [column.to_list() for column in tokenize_with_offsets(tf.constant(contents, tf.string))]
    words = []
    for content, *tokens_of_text in zip(contents, *columns, strict=True):
        # For each byte, how many characters begin before it.
        before = np.cumsum([0, *((byte & 0xC0) != 0x80 for byte in content)]).tolist()
        tokens = zip(*tokens_of_text, strict=True)
        words.append([Word(token.decode(), before[begin], before[end]) for token, begin, end in tokens])
    return words


def break_sentences(paragraphs: tf.Tensor) -> tf.Tensor:
    """Breaks running text after the marks that end sentences, but not after abbreviations or before a lowercase letter.

    Args:
        paragraphs: string `(batch,)`, UTF-8; each ends with the end of a sentence.

    Returns:
        string `(sentences,)`: the sentences in order, without white space at either end.
    """
    # The line feed in front makes every paragraph's first piece begin at byte 0.
    paragraphs = tf.strings.join(["\n", _without_nul(paragraphs)])
    ragged, ragged_begins, ragged_ends = tensorflow_text.regex_split_with_offsets(paragraphs, _END)
    pieces, begins, ends = ragged.flat_values, ragged_begins.flat_values, ragged_ends.flat_values
    rows = ragged.value_rowids()
    mark = tf.strings.substr(tf.gather(paragraphs, rows[:-1]), ends[:-1], tf.ones_like(ends[:-1]))
    left, right = pieces[:-1], pieces[1:]
    abbreviated = tf.strings.regex_full_match(left, _ABBREVIATED)
    abbreviated |= tf.strings.regex_full_match(left, _LETTER_LAST) & tf.strings.regex_full_match(right, _LETTER_ALONE)
    continues = ((mark == ".") & abbreviated) | tf.strings.regex_full_match(right, _CONTINUATION)
    is_first = tf.concat([tf.ones_like(rows[:1], tf.bool), (rows[1:] != rows[:-1]) | ~continues], 0)
    rows, begins = tf.boolean_mask(rows, is_first), tf.boolean_mask(begins, is_first)
    is_last = tf.concat([rows[1:] != rows[:-1], tf.ones_like(rows[:1], tf.bool)], 0)
    lengths = tf.gather(tf.cast(tf.strings.length(paragraphs), tf.int64), rows)
    ends = tf.where(is_last, lengths, tf.concat([begins[1:], begins[:1]], 0))
    return tf.strings.strip(tf.strings.substr(tf.gather(paragraphs, rows), begins, ends - begins))


def _without_nul(text: tf.Tensor) -> tf.Tensor:
    # tensorflow-text drops everything after a NUL.
    return tf.strings.regex_replace(text, r"\x00", " ")
