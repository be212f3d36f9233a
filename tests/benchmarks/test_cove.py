"""CoVe at a small size: it trains, resumes, translates and gives layers of tokens."""

import gzip

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import cove, cove_compared
from elmo_tf import tasks
from tests import checks
from tests.tasks import small

# The longest sum is that of a gate of the upper layer: two directions of 8 units, the state and the bias. One from
# another: two layers, the attention and three dense layers of a few words.
TOLERANCE = checks.rounding(16 + 8 + 1, steps=20)

PAIRS = [("Two men sit .", "Zwei M\u00e4nner sitzen."), ("A man, outside.", "Ein Mann, drau\u00dfen.")] * 20


def check_a_system_with(folder):
    """Trains a system with the last layer of the CoVe in a folder, at its input and its output, and loads it."""
    (folder / "labels").write_text("good\ttwo men sit\nbad\tmen\n" * 4)
    settings = ["elmo.mix=top", "elmo.remember=true", "fit.epochs=1"]
    settings = [part for one in [*small.SMALL, *small.OWN["sentiment"].split(), *settings] for part in ("--set", one)]
    files = [part for name in ("train", "dev") for part in (f"--{name}", str(folder / "labels"))]
    command = ["task", "sentiment", "--cove", str(folder / "cove"), *files, "--workdir", str(folder / "system")]
    cove_compared.main([*command, *settings])
    (prediction,) = tasks.load(folder / "system").predict([["two", "unseen", "men"]])
    assert prediction["probabilities"].keys() == {"bad", "good"}


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

    tokens = tf.constant([["two", "men", ""], ["Unseen", "men", "sit"]])
    layers = model.layers()
    given = layers(tokens)
    np.testing.assert_allclose(given[1], embedded[3], rtol=0, atol=TOLERANCE)
    assert not np.any(given[0, :, 2])
    restored = cove.Layers.from_config(layers.get_config())
    restored.encoder.set_weights(layers.encoder.get_weights())
    np.testing.assert_array_equal(restored(tokens), given)

    check_a_system_with(tmp_path)

    ids = [np.array([[4, 5]]), np.array([[4, 5]]), np.array([[cove.BEGIN, 4]])]
    wide = [*(np.pad(rows, ((0, 0), (0, 3))) for rows in ids[:2]), ids[2]]
    np.testing.assert_allclose(*(model.network(rows, training=False) for rows in (ids, wide)), rtol=0, atol=TOLERANCE)


def test_words_and_marks_are_joined_as_running_text():
    tokens = ["Ein", '"', "roter", '"', "Hut", "(", "neu", ")", ",", "sonst", "nichts", "."]
    assert cove.joined(tokens) == 'Ein "roter" Hut (neu), sonst nichts.'
