"""Sentences of running text, with the places of their words."""

import pytest

from elmo_tf.text.sentence_split import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Anna came. She sat down!", ["Anna came .", "She sat down !"]),
        ('"Who?" she asked. He left.', ['" Who ? " she asked .', "He left ."]),
        ('He said: "Go." She went.', ['He said : " Go . "', "She went ."]),
        ("Mr. Smith of St. Ives met J. K. Rowling.", ["Mr. Smith of St. Ives met J. K. Rowling ."]),
        ("So do I. It was 3.50 in the U.S. Then...", ["So do I .", "It was 3.50 in the U.S. Then ..."]),
        ("A heading\n\nA line that\ngoes on", ["A heading", "A line that goes on"]),
        ('" Yes . " He sat . " No . "', ['" Yes . "', "He sat .", '" No . "']),
        ('"Go.\n\n"Stay." He did.', ['" Go .', '" Stay . "', "He did ."]),
        ("(Yes.) No.", ["( Yes . )", "No ."]),
        ("Wait... what? No", ["Wait ... what ?", "No"]),
        ("यह किताब है। वह घर है॥", ["यह किताब है ।", "वह घर है ॥"]),
        ("هل هو هنا؟ نعم. یہ کتاب ہے\u06d4 وہ", ["هل هو هنا ؟", "نعم .", "یہ کتاب ہے \u06d4", "وہ"]),
        ("「行。」他說。你去。", ["「 行 。 」", "他 說 。", "你 去 。"]),
        (" \n", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text, sentences):
    split = split_sentences(text)
    assert [" ".join(word.text for word in sentence) for sentence in split] == sentences
    assert all(text[word.start : word.end] == word.text for sentence in split for word in sentence)
