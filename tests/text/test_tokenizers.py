"""Running text to words, by each tokenizer."""

import random

import pytest

from elmo_tf.text import in_graph, tokenizers

TEXT = "Zoë didn't\u00a0pay 24-year-olds."
SPLIT = {
    "penn": "Zoë did n't pay 24-year-olds .",
    "whitespace": "Zoë didn't\u00a0pay 24-year-olds.",
    "unicode": "Zoë didn 't pay 24-year-olds .",
    "characters": " ".join("Zoëdidn'tpay24-year-olds."),
}


def in_a_graph(text: str, tokenizer: str) -> list[str]:
    (tokens,) = in_graph.split([text], tokenizer)[0].numpy().tolist()
    return [token.decode() for token in tokens]


@pytest.mark.parametrize("tokenizer", tokenizers.TOKENIZERS)
def test_words_are_those_of_the_tokenizer_with_their_places(tokenizer):
    words = tokenizers.words_of(TEXT, tokenizer)
    assert [word.text for word in words] == SPLIT[tokenizer].split(" ")
    assert [TEXT[word.start : word.end] for word in words] == [word.text for word in words]
    assert in_a_graph(TEXT, tokenizer) == [word.text for word in words]


@pytest.mark.parametrize("tokenizer", tokenizers.TOKENIZERS)
def test_a_byte_order_mark_at_the_beginning_of_a_text_is_white_space(tokenizer):
    text = "\ufeffa \ufeffb"
    words = tokenizers.words_of(text, tokenizer)
    assert [text[word.start : word.end] for word in words] == [word.text for word in words]
    tokens = [word.text for word in words]
    assert tokens[0] == "a" and "".join(tokens) == "a\ufeffb"
    (in_python,) = tokenizers.split([text.encode()], tokenizer)
    assert [token.decode() for token in in_python] == in_a_graph(text, tokenizer) == tokens
    offsets = in_graph.split_with_offsets([text.encode()], tokenizer)[2]
    if offsets is not None:
        assert [text.encode()[start:end].decode() for start, end in offsets[0].numpy()] == tokens
    assert tokenizers.split_texts([text, "\ufeff"], tokenizer) == [in_python, []]


def test_half_a_surrogate_pair_has_a_place():
    words = tokenizers.words_of("a\ud800b?c", "characters")
    assert words == [("a", 0, 1), ("?", 1, 2), ("b", 2, 3), ("?", 3, 4), ("c", 4, 5)]


def test_fine_words_end_at_hyphens_slashes_and_underscores():
    text = "a well-known girl didn't pay $3.50 and/or 12,000\u201313,000 at 10:30 in the U.S. -- a_b ـكتاب"
    words = "a well - known girl did n't pay $ 3.50 and / or 12,000 - 13,000 at 10:30 in the U.S. -- a _ b ـ كتاب"
    fine = tokenizers.words_of(text, split_hyphens=True)
    assert [word.text for word in fine] == words.split()
    assert [text[word.start : word.end] for word in fine] == words.replace("12,000 -", "12,000 \u2013").split()


def test_only_white_space_is_lost_and_fine_words_are_parts_of_whole_ones():
    generator = random.Random(0)
    pieces = [*"abéZ09._-'`\"/,:\u2019\u2013 \t\n\u00a0\u0301中½😀ـ", "n't", "'s", "...", "U.S."]
    for _ in range(2000):
        text = "".join(generator.choices(pieces, k=generator.randrange(12)))
        for split_hyphens in (False, True):
            words = tokenizers.words_of(text, split_hyphens=split_hyphens)
            assert "".join(text[word.start : word.end] for word in words) == "".join(text.split()), repr(text)
