"""`text.penn`: Penn Treebank's rules, with offsets, in Python and in a graph."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import random
import unicodedata

import pytest
import tensorflow as tf

from elmo_tf.text import in_graph, penn

TEXTS = (
    ("The bank lends money.", "The bank lends money ."),
    ("\"I don't know,\" said Mr. O'Brien.", "\" I do n't know , \" said Mr. O'Brien ."),
    ("It's 3:15 p.m. in the U.S.; they CAN'T.", "It 's 3:15 p.m. in the U.S. ; they CA N'T ."),
    ("You shouldn't've, rock'n'roll fans' o'clock.", "You should n't 've , rock'n'roll fans ' o'clock ."),
    ("J. T. Smith, c. 1850 (pp. 5-7).", "J. T. Smith , c. 1850 ( pp . 5 - 7 ) ."),
    ("So do I. He gave plan B.\n", "So do I . He gave plan B ."),
    ("A well-known 10-year-old paid $12,000.50, 1/2 of it.", "A well-known 10-year-old paid $ 12,000.50 , 1/2 of it ."),
    ("snake_case, _word_, AT&T, him/her", "snake_case , _ word _ , AT & T , him / her"),
    (
        "\u201cAnna\u2019s\u201d can\u2019t\u2014won\u2019t\u2026 1990\u201395 \u2013 \u2018so\u2019",
        "\" Anna 's \" ca n't -- wo n't ... 1990 - 95 -- ' so '",
    ),
    ("``Well,'' she said--at last...", '" Well , " she said -- at last ...'),
    ("Привет, мир! Cafe\u0301 «Ça va»\u00a0?", "Привет , мир ! Cafe\u0301 « Ça va » ?"),
    ("Up 👍🏽 👩‍👧!", "Up 👍🏽 👩‍👧 !"),
    # Combining marks stay with their letters; a danda ends a sentence.
    ("यह नीली किताब है।", "यह नीली किताब है ।"),
    ("வணக்கம் உலகம்", "வணக்கம் உலகம்"),
    ("ولد في مكة، عام 570؟", "ولد في مكة ، عام 570 ؟"),
    # An ideograph or kana is a word, with its sound mark.
    ("他喜歡NBA。", "他 喜 歡 NBA 。"),
    ("タワーか\u3099ある", "タ ワ ー か\u3099 あ る"),
    ("한국어 문장.", "한국어 문장 ."),
    # A letter of Thai, Lao, Khmer or Burmese is a word with its marks, sara am and letters below it included.
    ("น้ำท่วมที่เชียงใหม่ ๒๕ ปี ฿500", "น้ำ ท่ ว ม ที่ เ ชี ย ง ใ ห ม่ ๒๕ ปี ฿ 500"),
    ("ຫຼວງນ້ຳ", "ຫຼ ວ ງ ນ້ຳ"),
    ("ភ្នំពេញ។\u200bខ្ញុំ", "ភ្នំ ពេ ញ ។ ខ្ញុំ"),
    ("အင်္ဂလိပ် ဗုဒ္ဓ။", "အ င်္ဂ လိ ပ် ဗု ဒ္ဓ ။"),
    ("เขาชื่อ J. สมิธ", "เ ข า ชื่ อ J. ส มิ ธ"),
    ("ั\u0e48a", "ั\u0e48 a"),  # marks without a letter
    # Marks of direction are white space; quotation marks inside Hebrew acronyms; decimal separators.
    ("\u200fשלום\u200e, \u2067a\u2069b", "שלום , a b"),
    ('ארה"ב, "צה״ל" ג׳ירפה', 'ארה"ב , " צה״ל " ג׳ירפה'),
    ("١٢٣٫٥ १२.५, ３．５", "١٢٣٫٥ १२.५ , ３．５"),
    ("ሰላም፡ዓለም።", "ሰላም ፡ ዓለም ።"),
    ("a\x1fb\x00c", "a b c"),
    ("", ""),
)


@pytest.mark.parametrize(("text", "words"), TEXTS)
def test_running_text_becomes_words_and_split_text_stays(text, words):
    assert penn.split(text) == words.split(" " if words else None)
    assert penn.split(words) == words.split(" " if words else None)


def test_every_punctuation_mark_between_letters_is_a_token():
    marks = {chr(point) for point in range(0xA0, 0x10000) if unicodedata.category(chr(point))[0] == "P"}
    in_words = set(
        "\u2010\u2011\u2019\u203f\u2040\u2054\u30fb\uff65\u0970"
    )  # hyphens, an apostrophe, an abbreviation's sign
    rest = [mark for mark in sorted(marks - in_words) if len(penn.split(f"a{mark}b")) != 3]
    assert rest == []


def test_offsets_are_those_of_the_text_whose_quotes_and_dashes_are_read_as_ascii():
    text = "\u201cIt\u2019s\u201d\x1f\u00a0U.S.\u2014so"
    words = penn.split_with_offsets(text)
    assert [word.text for word in words] == ['"', "It", "'s", '"', "U.S.", "--", "so"]
    originals = ["\u201c", "It", "\u2019s", "\u201d", "U.S.", "\u2014", "so"]
    assert [text[word.start : word.end] for word in words] == originals


def test_bytes_that_are_not_utf8_are_kept():
    assert penn.split_bytes(b"caf\xe9, \xff so") == [b"caf", b"\xe9,", b"\xff", b"so"]


MARKS = "\u2013\u2014\u2015\u2018\u2019\u201c\u2026\u2010\u2011\u2212"
# No-break and other spaces, letters that are ASCII to a case-insensitive RE2, joiners, ends of Unicode's ranges.
OTHERS = (
    "\u00a0\u2003\u2028\u3000\u00e9\u017f\u212a\u0130\u00ad\u200b\u200d\ufe0f\ud7ff\ue000\ufffd\U0010ffff\u0966\u4e00"
)
# A surrogate, a long form, a cut character and one beyond Unicode.
NOT_UTF8 = (b"\xed\xa0\x80", b"\xc0\xaf", b"\xe2\x80", b"\xf4\x90\x80\x80")
PARTS = (
    *(part.encode() for text, _ in TEXTS for part in text.split(" ")),
    *b"n't 's 'LL U.S. p. I. ... -- `` '' 1-2 12,5 a_b".split(),
    *(bytes([byte]) for byte in range(256)),
    *(character.encode() for character in MARKS + OTHERS),
    *NOT_UTF8,
)


def test_a_graph_splits_as_python_does_with_offsets_in_bytes_and_no_token_is_empty_or_has_white_space():
    chance = random.Random(0)
    texts = [text.encode() for pair in TEXTS for text in pair]
    texts += [b"".join(chance.choices(PARTS, k=chance.randrange(12))) for _ in range(5000)]
    split, lengths, offsets = in_graph.split_with_offsets(tf.constant(texts), "penn")
    assert (lengths.dtype, offsets.dtype) == (tf.int32, tf.int32)
    rows = zip(texts, split.numpy().tolist(), lengths.numpy(), offsets.numpy().tolist(), strict=True)
    for text, tokens, length, spans in rows:
        assert tokens[:length] == penn.split_bytes(text)
        assert all(len(token.split()) == 1 for token in tokens[:length])
        assert tokens[length:] == [b""] * (len(tokens) - length)
        assert spans[length:] == [[0, 0]] * (len(tokens) - length)
        characters = text.decode(errors="surrogateescape")
        words = penn.split_with_offsets(characters)
        sizes = [len(characters[:end].encode(errors="surrogateescape")) for end in range(len(characters) + 1)]
        assert spans[:length] == [[sizes[word.start], sizes[word.end]] for word in words]
