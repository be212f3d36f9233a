"""Predicates and their roles, in four formats."""

import json

import pytest

from elmo_tf.annotated import frames
from elmo_tf.annotated.frames import Frame
from tests.annotated.text_file import assert_refused, write

WORDS = ["Anna", "did", "give", "up", "and", "left"]
TAGS = (["B-A0", "O", "B-V", "I-V", "O", "O"], ["B-A0", "O", "O", "O", "O", "B-V"])
EXPECTED = [[Frame(WORDS, 2, TAGS[0]), Frame(WORDS, 5, TAGS[1])], [Frame(["go"], 0, ["B-V"])]]

JSON = "\n".join(
    json.dumps(row)
    for row in (
        {"words": WORDS, "frames": [{"pred": 2, "tags": TAGS[0]}, {"pred": 5, "tags": TAGS[1]}]},
        {"words": ["yes"], "frames": []},
        {"words": ["go"], "pred": 0, "tags": ["B-V"]},
    )
)
TEXT = f"2 {' '.join(WORDS)} ||| {' '.join(TAGS[0])}\n5 {' '.join(WORDS)} ||| {' '.join(TAGS[1])}\n\n0 go ||| B-V\n"
CONLL_2005 = """Anna NNP (NP*) - (A0*) (A0*)
did VBD * - * *
give VB (VP(V* give (V* *
up RP *) - *) *
and CC * - * *
left VBD * leave * (V*)

yes UH * -

go VB * go (V*)
"""
CONLL_2012 = """#begin document (bc/a); part 000
bc/a 0 0 Anna NNP (NP* - - - - (PERSON) (A0*) (A0*) -
bc/a 0 1 did VBD * - - - - * * * -
bc/a 0 2 give VB * give 01 1 - * (V* * (1)
bc/a 0 3 up RP * - - - - * *) * -
bc/a 0 4 and CC * - - - - * * * -
bc/a 0 5 left VBD *) leave 01 1 - * * (V*) -

bc/a 0 0 yes UH * - - - - * -

#end document
#begin document (bc/b); part 000
bc/b 0 0 go VB * go 02 1 - * (V*) -
#end document
"""


@pytest.mark.parametrize("text", [JSON, TEXT, CONLL_2005, CONLL_2012], ids=["json", "text", "2005", "2012"])
def test_each_format_has_the_same_frames_and_those_of_a_sentence_share_its_words(tmp_path, text):
    path = write(tmp_path, text, "file.xz")
    sentences = frames.read_frames(path)
    assert sentences == EXPECTED
    assert sentences[0][0].tokens is sentences[0][1].tokens
    predicates = [[Frame(frame.tokens, frame.predicate) for frame in sentence] for sentence in EXPECTED]
    assert frames.read_frames(path, labeled=False) == predicates


ALONE = ["1 a b |||\n0 a b ||| \n", '{"words": ["a", "b"], "frames": [{"pred": 1}, {"pred": 0}]}']


@pytest.mark.parametrize("text", ALONE)
def test_predicates_alone_need_no_roles(tmp_path, text):
    path = write(tmp_path, text)
    assert frames.read_frames(path, labeled=False) == [[Frame(["a", "b"], 1), Frame(["a", "b"], 0)]]
    assert_refused(frames.read_frames, path, "(the predicate's index, |tags with each pred)", line=1)


WRONG = {
    "beyond": ("0 a ||| B-V\n1 a ||| B-V\n", r"a predicate's index from 0 to 0, found '1'", 2),
    "tags": ("0 a b ||| B-V\n", "2 tags, one for each word, found '1'", 1),
    "order": ("0 a b ||| B-V I-A0\n", "tags in an order that IOB2 allows, found 'I-A0 of word 1'", 1),
    "no tag": ("0 a b ||| B-V U-A0\n", r"tags O, B-... or I-..., found", 1),
    "no index": ("a b ||| B-V\n", "the predicate's index, words, ||| and tags, found 'a b", 1),
    "twice": ("0 b ||| B-V ||| O\n", "the predicate's index, words, ||| and tags, found '0 b", 1),
    "keys": ('{"tokens": ["a"], "verb": 0}', "it has 'tokens', 'verb', but no words$", 1),
    "raw": ("A sentence .\n", "JSON objects, index words .*, found 'A sentence .'", 1),
    "negative": ('{"words": ["a"], "pred": -1, "tags": ["B-V"]}', "a predicate's index from 0 to 0, found '-1'", 1),
    "empty word": ('{"words": ["a", ""], "pred": 0}', r"words\[\d\] to be str of length >= 1", 1),
    "json": ('{"words": ["a"]\n', "not JSON: ", 1),
    "unclosed": ("a - *\nb x (V*\nc - *\n", r"a bracket is not closed in its sentence: '\(V\*'", 2),
    "overlap": ("a - (A0*\nb x (V*)\nc - *)\n", r"a bracket begins inside another: '\(V\*\)'", 2),
    "unopened": ("a - *\nb x (V*)\nc - *)\n", r"a bracket ends without a beginning: '\*\)'", 3),
    "no bracket": ("a x (V*)\nb - A0\n", r"arguments such as .*, found 'A0'", 2),
    "no column": ("a x (V*)\nb y *\n", r"words, a column of predicates .*, found 'a x \(V\*\)'", 1),
    "columns": ("a x (V*)\nb - * *\n", r"3 columns, as in the sentence's first line, found 'b - \* \*'", 2),
    "no words": ("-\n", r"JSON objects, index words .*", 1),
    "few": ("#begin document (a); part 000\na 0 0 b -\n", "12 columns or more, found 'a 0 0 b -'", 2),
    "no predicate": (CONLL_2012.replace("(V*)", "*"), r"column 13 has no predicate \(V\*\)$", 2),
    "nothing": ("\n", "it has no predicate with its roles"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_lines_are_named(tmp_path, name):
    text, message, *line = WRONG[name]
    assert_refused(frames.read_frames, write(tmp_path, text), message.replace("|||", r"\|\|\|"), *line)


def test_sentences_whose_words_are_withheld_are_left_out_or_refused(tmp_path, caplog):
    withheld = "[WORD] - (A0*)\n[WORD] see (V*)\n"
    message = "it has no predicate with its roles, because its words are withheld: add them to it first"
    assert_refused(frames.read_frames, write(tmp_path, withheld), message)
    path = write(tmp_path, f"{withheld}\nAna - (A0*)\nsat sit (V*)\n")
    caplog.clear()
    assert [sentence[0].tokens for sentence in frames.read_frames(path)] == [["Ana", "sat"]]
    assert caplog.messages[0].endswith("line 1 (words are withheld, [WORD] stands for each: left out)")
