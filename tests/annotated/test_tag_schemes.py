"""Schemes of tags, and what may follow what."""

import itertools

import pytest

from elmo_tf.annotated import tag_schemes

TAGS = {
    "IOB2": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "BIOUL": ["O", *(f"{letter}-{kind}" for letter in "BILU" for kind in "XY")],
    "BIOES": ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "XY")],
}


def test_schemes_are_converted():
    iob2 = ["B-X", "B-X", "I-X", "O", "B-Y", "I-Y", "I-Y", "B-X"]
    bioul = ["U-X", "B-X", "L-X", "O", "B-Y", "I-Y", "L-Y", "U-X"]
    iob1 = ["I-X", "B-X", "I-X", "O", "I-Y", "I-Y", "I-Y", "I-X"]
    assert tag_schemes.to_bioul(iob2) == bioul
    assert tag_schemes.as_iob2(bioul) == iob2
    spans = tag_schemes.spans(iob1)
    assert spans == [(0, 1, "X"), (1, 3, "X"), (4, 7, "Y"), (7, 8, "X")]
    assert tag_schemes.spans_to_iob2(spans, 8) == iob2


@pytest.mark.parametrize("scheme", TAGS)
def test_the_allowed_sequences_are_those_that_spans_can_have(scheme):
    tags = TAGS[scheme]
    (begin, steps, end), bioul = tag_schemes.allowed(tags), scheme != "IOB2"
    for path in itertools.product(range(len(tags)), repeat=3):
        named = [tags[number] for number in path]
        again = tag_schemes.spans_to_iob2(tag_schemes.spans(tag_schemes.as_iob2(named)), 3)
        again = tag_schemes.to_bioul(again) if bioul else again
        again = [tag.translate(str.maketrans("LU", "ES")) for tag in again] if scheme == "BIOES" else again
        fits = begin[path[0]] and end[path[-1]] and all(steps[pair] for pair in itertools.pairwise(path))
        assert fits == (again == named) == (tag_schemes.misplaced(named, bioul) is None), named
