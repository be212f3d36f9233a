"""Raw text as sentences and tokens, by tensorflow-text: in preprocessing, and in the graph of an exported model."""

import tensorflow as tf

from elmo_tf import extras

with extras.required():
    import tensorflow_text

_SPACE = r"[\s\p{Z}\p{Cc}]+"
_WORD = r"[\p{L}\p{M}\p{N}]+"
# What is one token, the first that fits; all else between white space is one, too, such as a word of letters.
_TOKEN = "|".join(
    [
        r"(?:https?://|www\.)[^\s\p{Z}]*[\p{L}\p{N}/]",  # an address
        rf"[\w.]+@{_WORD}(?:[.-]{_WORD})+",  # of mail, too
        r"\b(?:\p{L}\.){2,}",  # U.S., p.m.
        r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|Sr)\.",
        rf"{_WORD}(?:[-\x{{2010}}\x{{2011}}]{_WORD})+",  # well-known, 24-year-old
        r"['\x{2019}](?i:s|t|re|ve|ll|d|m)\b",  # don 't, the king 's: as in 1 Billion Word
        r"\p{N}+(?:[.,:/]\p{N}+)+",  # 3.50, 12,000, 10:30, 1/2
        r"\p{N}+[\p{L}\p{M}]*",  # 1999, 5th, 1990s
        r"\.\.\.+|--+|[\p{P}\p{S}]",  # punctuation marks, each alone but for ... and --
        r"\p{Han}+|\p{Hiragana}+|[\p{Katakana}\x{30FC}]+",
    ]
)

# Where a sentence may end: a mark, quotes and brackets that close, white space; none is needed in Chinese or Japanese.
_END = r"[.!?\x{2026}]+[\"'\x{BB}\p{Pf}\p{Pe}]*[\s\p{Z}]+|[\x{3002}\x{FF01}\x{FF1F}]+[\p{Pf}\p{Pe}]*[\s\p{Z}]*"
# After these it does not: titles and the like, initials, letters with stops between them.
_WORDS = (
    "mr|mrs|ms|messrs|mme|mlle|dr|prof|rev|hon|st|mt|capt|col|gen|lt|sgt|gov|sen|rep|jr|sr|"
    "vs|cf|viz|vol|fig|pp|inc|co|corp|ltd|dept|jan|feb|mar|apr|aug|sept|oct|nov|dec"
)
_ABBREVIATED = rf"(?s)(?:.*[\s\p{{Z}}\p{{Ps}}\p{{Pi}}\"'])?(?:(?i:{_WORDS})|\p{{Lu}}|(?:\p{{L}}\.)+\p{{L}})"
_GOES_ON = r"(?s)[\p{Ll},;:].*"  # how no sentence begins


def tokenize(sentences: tf.Tensor) -> tf.RaggedTensor:
    """Parts words, numbers and punctuation marks.

    Args:
        sentences: string `(batch,)`, UTF-8.

    Returns:
        string `(batch, (tokens))`: white space and control characters are gone, all else is there.
    """
    return tensorflow_text.regex_split(_without_nul(sentences), f"{_SPACE}|{_TOKEN}", _TOKEN)


def break_sentences(paragraphs: tf.Tensor) -> tf.Tensor:
    """Breaks running text where a mark ends a sentence, but not after an abbreviation or before a small letter.

    Args:
        paragraphs: string `(batch,)`, UTF-8; none goes on in the next.

    Returns:
        string `(sentences,)`: the text in its order, nothing lost but white space at either end.
    """
    paragraphs = tf.strings.join(["\n", _without_nul(paragraphs)])  # each has a first piece now, which begins at 0
    ragged, ragged_begins, ragged_ends = tensorflow_text.regex_split_with_offsets(paragraphs, _END)
    pieces, begins, ends = ragged.flat_values, ragged_begins.flat_values, ragged_ends.flat_values
    rows = ragged.value_rowids()
    mark = tf.strings.substr(tf.gather(paragraphs, rows[:-1]), ends[:-1], tf.ones_like(ends[:-1]))
    abbreviated = (mark == ".") & tf.strings.regex_full_match(pieces[:-1], _ABBREVIATED)
    goes_on = abbreviated | tf.strings.regex_full_match(pieces[1:], _GOES_ON)
    is_first = tf.concat([tf.ones_like(rows[:1], tf.bool), (rows[1:] != rows[:-1]) | ~goes_on], 0)
    rows, begins = tf.boolean_mask(rows, is_first), tf.boolean_mask(begins, is_first)
    sentences = tf.RaggedTensor.from_value_rowids(begins, rows, tf.size(paragraphs, tf.int64))
    ends = tf.concat([sentences[:, 1:], tf.cast(tf.strings.length(paragraphs), tf.int64)[:, None]], 1).flat_values
    return tf.strings.strip(tf.strings.substr(tf.gather(paragraphs, rows), begins, ends - begins))


def _without_nul(text: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(text, r"\x00", " ")  # whatever follows a NUL would be lost
