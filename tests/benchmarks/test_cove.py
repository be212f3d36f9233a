"""CoVe at a small size: it trains, resumes, translates and gives layers of tokens."""

import gzip
import lzma

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import cove, cove_compared
from tests import checks
from tests.tasks import small

# The longest sum is that of a gate of the upper layer: two directions of 8 units, the state and the bias. One from
# another: two layers, the attention and three dense layers of a few words.
TOLERANCE = checks.rounding(16 + 8 + 1, steps=20)

PAIRS = [("Two men sit .", "Zwei M\u00e4nner sitzen."), ("A man, outside.", "Ein Mann, drau\u00dfen.")] * 20


@pytest.mark.slow
def test_a_translator_is_trained_resumed_and_used(tmp_path, monkeypatch, capsys):
    for name, value in (("UNITS", 8), ("WORD_DIM", 5), ("GLOVE_DIM", 3), ("READOUT_DIM", 4), ("BEAM", 2)):
        monkeypatch.setattr(cove, name, value)
    for part in ("train", "val", "test_2016_flickr"):
        for language, texts in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
            path = tmp_path / "multi30k" / f"{part}.{language}.gz"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress("\n".join(texts).encode() + b"\n"))
    (tmp_path / "glove_small").mkdir()
    (tmp_path / "glove_small" / "glove.twitter.27B.25d.12k.txt").write_text("two 1 0 0\nmen 0 1 0\nsleep 0 0 1\n")
    command = ["--data", str(tmp_path), "--workdir", str(tmp_path / "cove")]
    cove.main(["train", *command, "--epochs", "1"])
    cove.main(["train", *command, "--epochs", "2"])
    model = cove.CoVe(tmp_path / "cove")
    assert len(model.history) == 2
    capsys.readouterr()
    cove.main(["translate", *command])
    assert len(capsys.readouterr().out.splitlines()) == len(PAIRS)

    embedded = dict(model.embed([["Two", "men", "sit"], [], [b"sleep"], ["Unseen", "men", "sit"], ["Unseen", "men"]]))
    assert {number: layers.shape for number, layers in embedded.items()} == {
        number: (3, length, 16) for number, length in ((0, 3), (2, 1), (3, 3), (4, 2))
    }
    np.testing.assert_array_equal(embedded[0][0, 1], embedded[3][0, 1])  # a word's own vector, whatever its sentence
    assert not np.allclose(embedded[0][1, 1], embedded[3][1, 1])
    (alone,) = dict(model.embed([["Unseen", "men"]])).values()
    np.testing.assert_allclose(alone, embedded[4], rtol=0, atol=TOLERANCE)

    ids = [np.array([[4, 5]]), np.array([[4, 5]]), np.array([[cove.BEGIN, 4]])]
    wide = [*(np.pad(rows, ((0, 0), (0, 3))) for rows in ids[:2]), ids[2]]
    np.testing.assert_allclose(*(model.network(rows, training=False) for rows in (ids, wide)), rtol=0, atol=TOLERANCE)


class Counted:
    """A model whose layers are the number of each token."""

    def embed(self, sentences):
        for number, tokens in enumerate(sentences):
            yield number, np.full((3, len(tokens), 4), np.arange(len(tokens))[:, None], np.float32)


@pytest.mark.slow
def test_the_top_layer_takes_the_place_of_elmo_in_the_tagger(tmp_path, monkeypatch):
    (tmp_path / "uner_ewt").mkdir()
    for part in ("train", "dev"):
        text = "Anna B-PER\nsleeps O\n\nshe O\nsat O\nin O\nParis B-LOC\n\n" * 20
        (tmp_path / "uner_ewt" / f"{part}.conll.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setattr(cove_compared, "SETTINGS", [*small.SMALL, *small.OWN["ner"].split(), "fit.epochs=3"])
    results = cove_compared.train_ner(Counted(), tmp_path, tmp_path / "run")
    assert results["train_examples"] == 4
    assert 0 <= results["f1"] <= 100

    layer = cove_compared.TopLayer(Counted(), [["a"], ["b", "c"]], 0.0)
    vectors = layer(tf.constant([["a", ""], ["b", "c"]]))
    assert vectors[:, :, 0].numpy().tolist() == [[0, 0], [0, 1]]
    assert vectors._keras_mask.numpy().tolist() == [[True, False], [True, True]]


def test_words_and_marks_are_joined_as_running_text():
    tokens = ["Ein", '"', "roter", '"', "Hut", "(", "neu", ")", ",", "sonst", "nichts", "."]
    assert cove.joined(tokens) == 'Ein "roter" Hut (neu), sonst nichts.'
