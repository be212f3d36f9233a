"""The streaming endpoint and what sentences start from."""

import json

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import contract, writing
from tests import checks
from tests.helpers import MICRO_CONFIG, batch_char_ids
from tests.savedmodel.calls import LENGTHS, LONGEST, SAME, WORDS, assert_same, embed, embed_tokens

TYPICAL = "the bank by the river\n\nlends money to the people\nof the town\n" * 20


def stream(model, sentences: list[list[bytes]], states: dict) -> tuple[dict, dict]:
    """Returns the ordinary outputs, and the states."""
    longest = max(map(len, sentences))
    tokens = tf.constant([words + [b""] * (longest - len(words)) for words in sentences], tf.string)
    lengths = tf.constant([len(words) for words in sentences], tf.int32)
    found = model.signatures["stream"](tokens=tokens, sequence_len=lengths, **states)
    found = {name: value.numpy() for name, value in found.items()}
    return {name: value for name, value in found.items() if name not in states}, {name: found[name] for name in states}


def test_from_the_initial_states_a_stream_is_what_the_other_signatures_give(loaded):
    expected = embed_tokens(loaded, WORDS, LONGEST)
    for rows in (len(WORDS), 1):
        found, _ = stream(loaded, WORDS, loaded.initial_states(rows))
        assert_same(found, expected)
    assert all(not np.any(state) for state in loaded.initial_states(3).values())


def test_states_carry_on_row_by_row_as_in_the_network(loaded, savedmodel):
    first, second = WORDS, WORDS[::-1]
    _, carried = stream(loaded, first, loaded.initial_states(len(first)))
    found, _ = stream(loaded, second, carried)
    bilm = savedmodel.bilm
    _, _, between = bilm.embed(batch_char_ids(first), bilm.zero_states(len(first)))
    layers, _, _ = bilm.embed(batch_char_ids(second), between)
    np.testing.assert_allclose(found["layers"], layers, **SAME)
    without = embed_tokens(loaded, second, LONGEST)["layers"]
    changed = np.abs(found["layers"] - without).max((1, 2, 3)) > 1e-4
    assert changed.tolist() == [after > 0 and before > 0 for before, after in zip(LENGTHS, LENGTHS[::-1], strict=True)]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("forward_cell1", (3, 24), r"forward_cell1: expected shape \[5, 24\] or \[1, 24\], found \[3 24\]"),
        ("backward_recurrent2", (5, 7), r"backward_recurrent2: expected shape \[5, 8\] or \[1, 8\], found \[5 7\]"),
    ],
)
def test_states_that_do_not_fit_are_refused(loaded, name, shape, message):
    states = dict(loaded.initial_states(len(WORDS))) | {name: tf.zeros(shape)}
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError), match=message):
        stream(loaded, WORDS, states)


@pytest.fixture(scope="module")
def warm(savedmodel, tmp_path_factory):
    """The model of `savedmodel`, warm, as a user loads it, and its folder."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "text.txt").write_text(TYPICAL)
    path = checks.export_unverified(savedmodel.bilm, MICRO_CONFIG, folder / "model", warm_text=folder / "text.txt")
    return tf.saved_model.load(str(path)), path


@pytest.mark.slow
def test_a_warm_model_starts_from_the_average_state_after_the_text(warm, savedmodel):
    sentences = [line.encode().split() for line in TYPICAL.splitlines() if line]
    bilm, ends = savedmodel.bilm, []
    embed_ids = tf.function(bilm.embed, reduce_retracing=True)
    for part in np.array_split(np.arange(len(sentences)), 32):
        states = bilm.zero_states(1)
        for number in part:
            _, _, states = embed_ids(tf.constant(batch_char_ids([sentences[number]])), states)
        ends.append(tf.nest.flatten(states))
    found = warm[0].initial_states(2)
    for name, every in zip(contract.states(2), zip(*ends, strict=True), strict=True):
        np.testing.assert_allclose(found[name], np.repeat(np.mean(every, 0), 2, 0), **checks.TOLERANCE, err_msg=name)
    about = json.loads((warm[1] / "assets" / "provenance.json").read_text())["initial_state"]
    assert about.keys() == {"kind", "text_sha256", "sentences"}
    assert (about["kind"], about["sentences"]) == ("warm", 60)


@pytest.mark.slow
def test_every_signature_of_a_warm_model_starts_warm_and_rows_stay_independent(warm, loaded):
    model, _ = warm
    found = embed_tokens(model, WORDS, LONGEST)
    assert_same(stream(model, WORDS, model.initial_states(len(WORDS)))[0], found)
    np.testing.assert_array_equal(found["word_emb"], embed_tokens(loaded, WORDS, LONGEST)["word_emb"])
    assert np.abs(found["layers"][0] - embed_tokens(loaded, WORDS, LONGEST)["layers"][0]).max() > 1e-4
    for row, words in enumerate(WORDS):
        alone = embed(model, [b" ".join(words)])["layers"]
        np.testing.assert_allclose(alone[0], found["layers"][row, :, : len(words)], **SAME)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.txt.gz", "a b", "plain text, found a compressed file"),
        ("text.txt", None, "a text file, found No such"),
        ("text.txt", " \n\n", "a text with words, found none"),
    ],
)
def test_a_text_that_warms_nothing_is_refused(savedmodel, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    before = list(tmp_path.iterdir())
    with pytest.raises(InputError, match=f"^{tmp_path / name}: expected {message}"):
        writing.export(savedmodel.bilm, MICRO_CONFIG, tmp_path / "model", warm_text=tmp_path / name)
    assert list(tmp_path.iterdir()) == before
