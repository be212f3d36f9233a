"""Raw text becomes usable sentences and tokens."""
# ruff: noqa: RUF001 - letters of other scripts are the point here

import random

import pytest
import tensorflow as tf

from elmo_tf.text import in_graph

pytest.importorskip("tensorflow_text")
from elmo_tf.text import raw_text

SENTENCES = [
    "Mr. Smith said \u201cHi there!\u201d and left.",
    "It cost $3.50 in the U.S. on Jan. 5.",
    "Then what?!",
    "(Really.)",
    "\u201cQuoted.\u201d",
    "J. R. R. Tolkien et al. wrote it...",
    "'Well,' he said.",
    "He saw Fig. 3 of vol. 2, e.g. the river.",
    "Ok",
]
TOKENS = {
    "Don't stop!\u00a0Now": "Don 't stop ! Now",
    "The king\u2019s men 'tis rock 'n' roll": "The king \u2019s men ' tis rock ' n ' roll",
    "It cost $3.50, or 12,000 in 1999.": "It cost $ 3.50 , or 12,000 in 1999 .",
    "the well-known 24-year-old, 5th of the 1990s - yes": "the well-known 24-year-old , 5th of the 1990s - yes",
    "co--operate well... \u201cyes\u201d": "co -- operate well ... \u201c yes \u201d",
    "(a/b) 10:30 1/2": "( a / b ) 10:30 1/2",
    "Mr. Smith of the U.S. at 5 p.m. (e.g.)": "Mr. Smith of the U.S. at 5 p.m. ( e.g. )",
    "See https://example.com/a?b=c, or": "See https://example.com/a?b=c , or",
    "joe.x@mail.example.org.": "joe.x@mail.example.org .",
    "\u00e9t\u00e9 a\u0301b": "\u00e9t\u00e9 a\u0301b",  # a combining mark stays with its letter
    "a\0b\x01c \u2003d\r\n": "a b c d",
    " \t": "",
    "": "",
    # Every ideograph and kana is a token; Korean has words.
    "我在2024年3月5日看了《红楼梦》。": "我 在 2024 年 3 月 5 日 看 了 《 红 楼 梦 》 。",
    "東京タワーは333mの高さです。": "東 京 タ ワ ー は 333m の 高 さ で す 。",
    "１２月、ＡＢＣの「テスト」": "１２ 月 、 ＡＢＣ の 「 テ ス ト 」",
    "時々〆切は二〇二四年": "時 々 〆 切 は 二 〇 二 四 年",
    "ﾃﾞｰﾀ": "ﾃﾞ ｰ ﾀ",
    # Decomposed kana, and an ideograph with a variation selector.
    "か\u3099は\u309a葛\U000e0100": "か\u3099 は\u309a 葛\U000e0100",
    # Extensions B, H and I, of which the last is younger than RE2's tables.
    "\U00020000\U00031350\U0002ebf0": "\U00020000 \U00031350 \U0002ebf0",
    # Words of Korean are between spaces, but not its ideographs.
    "한국어 문장은 韓國語가 아니다.": "한국어 문장은 韓 國 語 가 아니다 .",
    "하\u1100\u1161 나": "하\u1100\u1161 나",
    "见https://example.com/a?b=c。联系joe@example.org吧": "见 https://example.com/a?b=c 。 联 系 joe@example.org 吧",
    "中-文a中.文.中国's": "中 - 文 a 中 . 文 . 中 国 's",
    # A combined emoji is one token.
    "👩\u200d💻👨\u200d👩\u200d👧\u200d👦": "👩\u200d💻 👨\u200d👩\u200d👧\u200d👦",
    "👍🏽👍hi👋🏿there": "👍🏽 👍 hi 👋🏿 there",
    "👩🏽\u200d🚀👩🏻\u200d🤝\u200d👨🏿": "👩🏽\u200d🚀 👩🏻\u200d🤝\u200d👨🏿",
    # Flags: pairs of regional indicators; the one left over stands alone.
    "🇩🇪🇫🇷🇯": "🇩🇪 🇫🇷 🇯",
    "🏳\ufe0f\u200d🌈🏴\u200d☠\ufe0f": "🏳\ufe0f\u200d🌈 🏴\u200d☠\ufe0f",
    # England's flag, spelled in tags.
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f!": (
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f !"
    ),
    "1\ufe0f\u20e32\ufe0f\u20e3#\ufe0f\u20e3*\u20e3": "1\ufe0f\u20e3 2\ufe0f\u20e3 #\ufe0f\u20e3 *\u20e3",
    "a❤\ufe0f❤\ufe0e©\ufe0f‼\ufe0f〰\ufe0f": "a ❤\ufe0f ❤\ufe0e ©\ufe0f ‼\ufe0f 〰\ufe0f",
    "🙂\u200d↔\ufe0f": "🙂\u200d↔\ufe0f",
    # Of Unicode 16, younger than RE2's tables.
    "\U0001fae9\U0001fae9": "\U0001fae9 \U0001fae9",
    # Combining marks stay with their letter.
    "e\u0301te\u0301 x-e\u0301": "e\u0301te\u0301 x-e\u0301",
    "3\u0301 1,2\u0305 !\u0301a": "3\u0301 1,2\u0305 !\u0301 a",
    "हिन्दी में 3 किताबें": "हिन्दी में 3 किताबें",
    # Words of Persian hold joiners.
    "می\u200cخواهم": "می\u200cخواهم",
    # Scripts whose words only a dictionary knows: letters with their marks, as with `penn`.
    "ไปน้ำท่วม ๒๕abc": "ไ ป น้ำ ท่ ว ม ๒๕abc",
    "https://example.org/aน้ำ": "https://example.org/a น้ำ",
    # The zero width space and marks of direction are white space.
    "ភ្នំពេញ\u200bខ្ញុំ": "ភ្នំ ពេ ញ ខ្ញុំ",
    "\u200fשלום\u200e, \u2067a\u2069b": "שלום , a b",
    # Apostrophes inside words of Cyrillic letters; quotation marks inside Hebrew acronyms.
    "п’ять об'єктів, по-п'яте 'так'": "п’ять об'єктів , по-п'яте ' так '",
    'ארה"ב, "צה״ל" ג׳ירפה ב־2': 'ארה"ב , " צה״ל " ג׳ירפה ב ־ 2',
    "١٢٣٫٥ १२.५ ３．５": "١٢٣٫٥ १२.५ ３．５",
}


def test_words_numbers_and_marks_are_tokens_in_the_signature_of_an_export_too():
    expected = [text.encode().split() for text in TOKENS.values()]
    assert raw_text.tokenize(list(TOKENS)).to_list() == expected
    split = tf.function(lambda sentences: in_graph.split(sentences, "unicode"))
    tokens, lengths = split(tf.constant(list(TOKENS)))
    assert [row[:length].tolist() for row, length in zip(tokens.numpy(), lengths.numpy(), strict=True)] == expected


def test_running_text_is_broken_into_its_sentences():
    for seed in range(20):
        order = random.Random(seed).sample(SENTENCES, len(SENTENCES))
        order.remove("Ok")
        paragraphs = [" ".join(order[:3]) + "  ", "\n".join(order[3:]) + " Ok", "", "no end"]
        broken = [sentence.decode() for sentence in raw_text.break_sentences(paragraphs).numpy()]
        assert broken == [*order, "Ok", "", "no end"]


def test_closing_quotes_may_stand_apart_and_the_word_i_ends_a_sentence():
    sentences = [
        '" Well , " said I .',
        "\u201c So am I . \u201d",
        "\u201c Why ? \u201d he asked .",
        "\u00ab Oui . \u00bb",
        "\u00bbJa.\u00ab",
        "\u201eNein!\u201c",
        "\u00bbJa, Herr.",
        "J. Smith",
    ]
    broken = raw_text.break_sentences([" ".join(sentences)]).numpy()
    assert [sentence.decode() for sentence in broken] == sentences


def test_the_marks_of_chinese_indic_scripts_and_arabic_end_sentences():
    texts = [
        "\u4e2d\u3002\u6587\uff01\u5b57",
        "\u0939\u0948\u0964 \u0935\u0939\u0965 \u0939\u0948",
        "\u0647\u0646\u0627\u061f \u06c1\u06d2\u06d4 \u0648",
    ]
    broken = [sentence.decode() for sentence in raw_text.break_sentences(texts).numpy()]
    assert broken == ["\u4e2d\u3002", "\u6587\uff01", "\u5b57", *texts[1].split(" "), *texts[2].split(" ")]


@pytest.mark.parametrize(
    "sentences",
    [
        ["— Ні! — сказав він.", "— Йди."],  # a small letter after a dash continues
        ["– Nem! – mondta.", "– Igen.", "„Jó.”", "Elment."],
        ["« Non ! » dit-elle.", "Quoi ?", "— Rien !"],
        ["Es war z. B. Anna, d. h. Frau Ott.", "»Ja!« sagte er.", "- Nein.", "- ja."],
        ["ეს წიგნია.", "ის წავიდა.", "რა?", "კი!"],  # Georgian has no capital letters
        ["ይህ ነው።", "እሱ ሄደ፧", "አዎ።"],
        ["Սա գիրք է։", "Նա գնաց։"],
        ["នេះជា។", "គាត់បាន។"],
        ["ဒါက။", "သူသွား။"],
        ["What⁈", "Yes‼", "Go"],
        ["他 说 ： “ 好 ！ ”", "他 走 了 。"],
    ],
    ids=["uk", "hu", "fr", "de", "ka", "am", "hy", "km", "my", "doubled marks", "zh split"],
)
def test_sentences_of_dialogue_and_of_other_scripts_end_where_their_marks_stand(sentences):
    broken = raw_text.break_sentences([" ".join(sentences)]).numpy()
    assert [sentence.decode() for sentence in broken] == sentences


def test_half_width_marks_of_japanese_and_a_zero_width_space_end_sentences():
    broken = raw_text.break_sentences(["好｡完", "ខ្ញុំ។\u200bគាត់។"]).numpy()
    assert [sentence.decode().strip("\u200b") for sentence in broken] == ["好｡", "完", "ខ្ញុំ។", "គាត់។"]


@pytest.mark.parametrize(
    "alphabet",
    ["aB.!? \n\"')\u201d\u3002\u00e9\0", "aé.'-", "a1中か\u3099ー-.@👍🏽\u200d\ufe0f\u20e3🇩🇪\u0301"],
    ids=["running text", "abbreviations", "ideographs and emoji"],
)
def test_nothing_of_the_text_is_lost(alphabet):
    choose = random.Random(0)
    paragraphs = ["".join(choose.choices(alphabet, k=choose.randrange(40))) for _ in range(500)]
    broken = raw_text.break_sentences(paragraphs)
    expected = "".join("".join(paragraphs).replace("\0", "").split())
    assert "".join(b"".join(broken.numpy().tolist()).decode().replace("\0", "").split()) == expected
    assert b"".join(token for tokens in raw_text.tokenize(broken).to_list() for token in tokens).decode() == expected


def test_tokens_of_a_text_have_their_places_in_characters():
    texts = ["Na\u00efve \U0001f469\u200d\U0001f680 flew.", "", "\u6771\u4eac OK"]
    split = raw_text.split_with_offsets(texts)
    assert [[word.text for word in words] for words in split] == [
        ["Na\u00efve", "\U0001f469\u200d\U0001f680", "flew", "."],
        [],
        ["\u6771", "\u4eac", "OK"],
    ]
    for text, words in zip(texts, split, strict=True):
        assert [text[word.start : word.end] for word in words] == [word.text for word in words]


def test_one_text_is_broken_like_many_and_in_a_graph():
    paragraphs = [" ".join(SENTENCES), "Other. Text."]
    alone = [raw_text.break_sentences([text]).numpy().tolist() for text in paragraphs]
    assert raw_text.break_sentences(paragraphs).numpy().tolist() == alone[0] + alone[1]
    assert tf.function(raw_text.break_sentences)(tf.constant(paragraphs)).numpy().tolist() == alone[0] + alone[1]
    assert raw_text.break_sentences([]).shape == [0]


def test_the_regular_expressions_are_small_enough_to_be_quick(capfd):
    """RE2 says so, for each piece of text, when a pattern does not fit into its cache; it is four times slower then."""
    text = " ".join([*SENTENCES, *TOKENS])
    raw_text.tokenize(raw_text.break_sentences([text] * 3))
    assert "out of memory" not in capfd.readouterr().err
