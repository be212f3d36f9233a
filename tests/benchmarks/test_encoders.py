"""What the comparison of encoders computes; the other encoders are not installed here."""

import numpy as np

from benchmarks import encoder_scores, encoders
from elmo_tf.annotated.columns import Tagged


def encode(sentences):
    """An encoder of two layers, the length of a token and its negative, that answers in another order."""
    for number in reversed(range(len(sentences))):
        lengths = np.array([[len(token)] for token in sentences[number]], np.float32)
        yield number, np.stack([lengths, -lengths])


def test_a_span_has_the_mean_of_its_tokens_and_sentences_without_spans_are_not_encoded():
    sentences = [["a", "bcd", "ef"], ["not", "asked"], ["ghij"]]
    vectors = encoder_scores.spans_of(encode, sentences, [[(0, 2), (2, 3)], [], [(0, 1)]])
    np.testing.assert_array_equal(vectors[..., 0], [[2, -2], [2, -2], [4, -4]])


def test_entities_are_counted_by_their_spans_and_kinds():
    sentences = [Tagged(["a", "b", "c"], ["B-PER", "I-PER", "O"]), Tagged(["d", "e"], ["B-LOC", "B-ORG"])]
    # One entity is right, one has another kind, and one begins with an I-.
    assert encoder_scores.entity_f1(sentences, ["B-PER", "I-PER", "I-LOC", "B-PER", "O"]) == 2 * 1 / (3 + 3)
    assert encoder_scores.entity_f1(sentences, ["B-PER", "I-PER", "O", "B-LOC", "I-ORG"]) == 1


def test_words_of_glove_are_found_by_their_lower_case(tmp_path):
    (tmp_path / "glove_small").mkdir()
    (tmp_path / encoders._GLOVE).write_text("the 1 2\ncat 3 4\n")
    ((number, vectors),) = encoders.glove(tmp_path)[0]([["The", "CAT", "dog"]])
    assert number == 0
    np.testing.assert_array_equal(vectors, [[[1, 2], [3, 4], [0, 0]]])
