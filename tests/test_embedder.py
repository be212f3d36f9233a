"""A model in use: which batches it gets, from how many threads, and what `encode` returns."""

import concurrent.futures
import io
import itertools
import random

import numpy as np
import pytest

from elmo_tf import embedder, sources
from elmo_tf.errors import InputError
from elmo_tf.text import batches
from tests import checks

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.mark.parametrize("batch_tokens", [1, 10, 64, 10_000])
def test_batches_hold_every_sentence_that_has_tokens_once_and_those_of_like_lengths_together(batch_tokens, monkeypatch):
    monkeypatch.setattr(batches, "PIECE_TOKENS", 100)
    choose = random.Random(0)
    lengths = [choose.choice([0, 1, 2, 5, 30, 99, 101]) for _ in range(200)]
    groups = list(batches.batches(lengths, batch_tokens))
    indices = list(itertools.chain.from_iterable(groups))
    assert sorted(indices) == [index for index, length in enumerate(lengths) if length]
    assert [lengths[index] for index in indices] == sorted(filter(None, lengths))
    for batch in groups:
        longest = lengths[batch[-1]]
        assert len(batch) == 1 or (len(batch) * longest <= batch_tokens and longest <= 100)
    for group, following in itertools.pairwise(groups):
        shortest = lengths[following[0]]
        # The next sentence did not fit.
        assert (len(group) + 1) * shortest > batch_tokens or shortest > 100


@pytest.fixture(scope="module")
def model(savedmodel):
    return embedder.Embedder(sources.find(savedmodel.path), batch_tokens=20)


SENTENCES = [f"{'so ' * (number % 9)}sentence {number} é".encode().split() for number in range(60)]


def test_sentences_come_once_with_the_same_vectors_whatever_their_order_and_from_any_thread(model):
    expected = dict(model.embed(SENTENCES))
    assert sorted(expected) == list(range(60))
    order = random.Random(1).sample(range(60), 60)

    def embed() -> dict[int, np.ndarray]:
        return dict(model.embed([SENTENCES[number] for number in order]))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        runs = [threads.submit(embed) for _ in range(8)]
        for run in runs:
            for number, vectors in run.result().items():
                assert vectors.shape == (3, len(SENTENCES[order[number]]), 16)
                np.testing.assert_allclose(vectors, expected[order[number]], **checks.TOLERANCE)


def test_only_a_sentence_longer_than_a_piece_is_embedded_in_pieces(model, monkeypatch):
    words = [b"word %d" % number for number in range(20)]
    pieces = [words[:8], words[8:16], words[16:]]
    ((_, whole),) = model.embed([words])
    expected = np.concatenate([dict(model.embed([piece]))[0] for piece in pieces], axis=1)
    assert np.abs(whole - expected).max() > 1e-3
    monkeypatch.setattr(batches, "PIECE_TOKENS", 8)
    ((_, cut),) = model.embed([words])
    np.testing.assert_array_equal(cut, expected)


TEXTS = ["the cat  sat", "", b"na\xc3\xafve", ["a b", "c"], np.array(["the", "cat", "sat"])]
TOKENS = [["the", "cat", "sat"], [], ["naïve"], ["a b", "c"], ["the", "cat", "sat"]]


def test_texts_of_all_kinds_come_back_in_their_order_with_their_tokens(model):
    encoded = model.encode(text for text in TEXTS)
    assert [sentence.tokens for sentence in encoded] == TOKENS
    assert [sentence.vectors.shape for sentence in encoded] == [(len(tokens), 16) for tokens in TOKENS]
    np.testing.assert_allclose(encoded[0].vectors, encoded[4].vectors, **checks.TOLERANCE)
    assert model.encode([]) == []


def test_layers_are_chosen_and_pooled(model):
    every = [sentence.vectors for sentence in model.encode(TEXTS, "all")]
    parts = {"top": lambda layers: layers[-1], "average": lambda layers: layers.mean(0)}
    parts |= {"sum": lambda layers: layers.sum(0), "all": lambda layers: layers}
    parts |= {0: lambda layers: layers[0], 1: lambda layers: layers[1]}
    for name, part in parts.items():
        for sentence, layers in zip(model.encode(TEXTS, name), every, strict=True):
            np.testing.assert_allclose(sentence.vectors, part(layers), **checks.TOLERANCE)
        for pool in ("mean", "max"):
            wanted = [getattr(np, pool)(part(layers), -2) for layers in every if layers.size]
            pooled = model.encode(TEXTS, name, pool)
            assert pooled.dtype == np.float32
            assert not pooled[1].any()  # no token, so zeros
            np.testing.assert_allclose(np.delete(pooled, 1, 0), wanted, **checks.TOLERANCE)
    assert model.encode([], pool="mean").shape == (0, 16)
    assert not model.encode([""], "all", "max").any()


@pytest.mark.parametrize(("batch_size", "done"), [(3, [4, 7]), (None, [7])])
def test_batch_size_and_progress_count_texts(model, batch_size, done):
    seen = []
    texts = [
        "a b",
        "",
        "c",
        *(f"a {letter}" for letter in "cdef"),
    ]  # the one without a token is done with the first batch
    model.encode(texts, batch_size=batch_size, progress=lambda *counts: seen.append(counts))
    assert seen == [(count, 7) for count in done]
    for wrong in (0, 2.5, "3", True):
        with pytest.raises(InputError, match=rf"^batch_size: expected a whole number, at least 1, found {wrong!r}$"):
            model.encode(["a"], batch_size=wrong)


@pytest.mark.parametrize(("is_terminal", "end"), [(True, "\r"), (False, "\n")])
def test_progress_shows_a_bar_that_is_redrawn_on_a_terminal_and_printed_elsewhere(model, monkeypatch, is_terminal, end):
    class Stderr(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    monkeypatch.setattr("elmo_tf.files.progress._REDRAW_SECONDS", 0)
    monkeypatch.setattr("elmo_tf.files.progress._LINE_SECONDS", 0)
    monkeypatch.setattr("sys.stderr", stderr := Stderr())
    model.encode(["a", "a b", "a b c"], progress=True, batch_size=1)
    bars = ["[######..............] 1 of 3 texts", "[#############.......] 2 of 3 texts"]
    assert stderr.getvalue().replace("\033[K", "") == "".join(bar + end for bar in bars)


class Table:
    """Iterates over the names of its columns, like pandas' DataFrame."""

    columns = ("text", "label")

    def __iter__(self):
        return iter(self.columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a text",), "texts: expected a list of texts, .text. for a single text, found 'a text'"),
        ((None,), "texts: expected a list of texts, .text. for a single text, found None"),
        (({"q1": "a text"},), "texts: expected a list of texts, or one column of a table, found a dict"),
        ((Table(),), "texts: expected a list of texts, or one column of a table, found a Table"),
        ((np.array("a text"),), "texts: expected a list of texts, .*"),
        ((["a", 3],), "texts: expected sentences that are str or bytes, or lists of tokens, found 3"),
        ((bytearray(b"a b"),), r"texts: expected a list of texts, \[text\] for a single text, found bytearray.*"),
        (([bytearray(b"a b")],), r"texts: expected sentences that are str or bytes, .*, found bytearray\(b'a b'\)"),
        ((["a"], "best"), "layers: expected one of all, top, average, sum, mix, or 0 to 2, found 'best'"),
        ((["a"], 3), "layers: expected .*, found 3"),
        ((["a"], -1), "layers: expected .*, found -1"),
        ((["a"], True), "layers: expected .*, found True"),
        ((["a"], "mix", None, 3), "progress: expected True, False or a function of two numbers, found 3"),
        ((["a"], "mix", "sum"), "pool: expected None or one of mean, max, found 'sum'"),
    ],
)
def test_what_cannot_be_encoded_is_named(model, arguments, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        model.encode(*arguments)
