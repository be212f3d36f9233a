"""`elmo-tf verify`: what it compares, and how it names what is wrong."""

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import checksums, contract, standalone_checker, verification
from elmo_tf.savedmodel.contract import SAMPLE_VECTORS_FILE
from tests.savedmodel.calls import flip


@pytest.fixture
def in_this_process(monkeypatch):
    """Has the vectors compared here, which takes less time; `savedmodel` has been through the other way."""

    def problems(folder):
        return standalone_checker.main(str(folder), str(folder / SAMPLE_VECTORS_FILE))

    monkeypatch.setattr(verification, "problems_in_fresh_process", problems)


def rewrite(file, **changes):
    """Stores other sample vectors."""
    np.savez(file, **{**np.load(file), **changes})


@pytest.mark.slow
def test_vectors_within_the_tolerance_pass_and_others_are_one_line(copy, in_this_process):
    elmo = np.load(copy / SAMPLE_VECTORS_FILE)["elmo"]
    rewrite(copy / SAMPLE_VECTORS_FILE, elmo=elmo + np.float32(3e-5) * np.abs(elmo).max(), tolerance=1e-4)
    checksums.write(copy)
    files, vectors = verification.verify(copy.parent)
    total = sum(about.bytes for about in checksums.check(copy).values())
    assert files == f"{copy}: 8 files, {total:,} bytes, all with the SHA-256 in assets.extra/checksums.json"
    ways = "serving_default, default, tokens, char_ids, stream"
    assert vectors == f"{copy}: the signatures {ways} and the call return the vectors in {SAMPLE_VECTORS_FILE}"
    rewrite(copy / SAMPLE_VECTORS_FILE, tolerance=1e-5)
    checksums.write(copy)
    with pytest.raises(InputError) as caught:
        list(verification.verify(copy))
    first = "serving_default: output 'elmo' differs from what was exported"
    assert str(caught.value) == f"{copy}: expected what was exported, found {first}"


def test_a_damaged_file_is_named_before_anything_is_loaded(copy, monkeypatch):
    monkeypatch.setattr(verification, "problems_in_fresh_process", None)
    path = copy / "variables" / "variables.data-00000-of-00001"
    flip(path)
    with pytest.raises(InputError, match=rf"^{path}: expected SHA-256 "):
        list(verification.verify(copy))


@pytest.mark.slow
def test_a_model_that_tensorflow_cannot_load_is_refused_with_its_last_line(copy):
    (copy / "saved_model.pb").write_bytes(b"\xff" * 9)
    checksums.write(copy)
    with pytest.raises(InputError, match=rf"^{copy}: expected what was exported, found OSError: Cannot parse"):
        list(verification.verify(copy))


def test_every_output_of_every_signature_is_compared(copy, monkeypatch):
    samples = copy / SAMPLE_VECTORS_FILE
    texts = standalone_checker._texts

    def with_a_wrong_token(*arguments):
        found = texts(*arguments)
        found["tokens"][0, 0] = b"Another"
        return found

    monkeypatch.setattr(standalone_checker, "_texts", with_a_wrong_token)
    right = dict(np.load(samples))

    def problems(**changes):
        np.savez(samples, **{**right, **changes})
        return standalone_checker.main(str(copy), str(samples))

    kept = ("layers", "elmo", "default", "mask")
    differs = "differs from what was exported"
    parts = ("word_emb", "lstm_outputs1", "lstm_outputs2")
    wrong = {name: right[name] + np.float32(3e-5) * max(1, np.abs(right[name]).max()) for name in kept[:3]}
    found = problems(**wrong, mask=~right["mask"], another=np.zeros(3))
    faults = [*((name, differs) for name in kept + parts), ("another", "is missing")]
    assert {line for line in found if "alone differs" not in line} == {
        *(f"{way}: output {name!r} {fault}" for way in (*contract.SIGNATURES, "__call__") for name, fault in faults),
        *(f"{way}: output 'tokens' {differs}" for way in ("serving_default", "default", "tokens", "__call__")),
    }
    # One sentence is empty.
    assert len([line for line in found if "alone differs" in line]) == 3


def test_a_lost_signature_is_named(savedmodel, tmp_path):
    model = tf.saved_model.load(str(savedmodel.path))
    signatures = {name: model.signatures[name] for name in ("default", "tokens", "char_ids", "stream")}
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=signatures)
    found = standalone_checker.main(str(tmp_path / "model"), str(savedmodel.path / SAMPLE_VECTORS_FILE))
    assert found == ["signature 'serving_default' is missing"]
