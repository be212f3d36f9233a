"""`elmo-tf verify`: what it compares, and how it names what is wrong."""

import numpy as np
import pytest

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import checksums, contract, standalone_checker, verification
from elmo_tf.savedmodel.contract import SAMPLE_VECTORS_FILE
from tests.helpers import flip


def rewrite(copy, **changes):
    """Stores other sample vectors."""
    np.savez(copy / SAMPLE_VECTORS_FILE, **{**np.load(copy / SAMPLE_VECTORS_FILE), **changes})
    checksums.write(copy)


@pytest.mark.slow
def test_vectors_within_the_tolerance_pass_and_others_are_one_line(copy):
    elmo = np.load(copy / SAMPLE_VECTORS_FILE)["tokens/outputs/elmo"]
    changed = {"tokens/outputs/elmo": elmo + np.float32(3e-5) * np.abs(elmo).max()}
    rewrite(copy, tolerance=1e-4, **changed)
    files, vectors = verification.verify(copy.parent)
    total = sum(about.bytes for about in checksums.check(copy).values())
    assert files == f"{copy}: 8 files, {total:,} bytes, all with the SHA-256 in assets.extra/checksums.json"
    assert vectors == f"{copy}: all its signatures return the values in {SAMPLE_VECTORS_FILE}"
    rewrite(copy, tolerance=1e-5)
    with pytest.raises(InputError) as caught:
        list(verification.verify(copy))
    first = "tokens: output 'elmo' differs from what was exported"
    assert str(caught.value) == f"{copy}: the model does not compute what was exported: {first}"


def test_a_damaged_file_is_named_before_anything_is_loaded(copy, monkeypatch):
    monkeypatch.setattr(verification, "problems_in_fresh_process", None)
    path = copy / "variables" / "variables.data-00000-of-00001"
    flip(path)
    with pytest.raises(InputError, match=rf"^{path}: damaged: its SHA-256 "):
        list(verification.verify(copy))


@pytest.mark.slow
def test_a_model_that_tensorflow_cannot_load_is_refused_with_its_last_line(copy):
    (copy / "saved_model.pb").write_bytes(b"\xff" * 9)
    checksums.write(copy)
    with pytest.raises(InputError, match=rf"^{copy}: .* what was exported: OSError: Cannot parse"):
        list(verification.verify(copy))


def test_every_output_of_every_signature_and_of_the_call_is_compared(copy):
    file = copy / SAMPLE_VECTORS_FILE
    right = dict(np.load(file))

    def changed(name: str, value: np.ndarray) -> np.ndarray:
        if "/outputs/" not in name:
            return value
        if value.dtype.kind == "S":
            return np.where(value == b"bank", b"Bank", value)
        return ~value if value.dtype == bool else value + np.float32(3e-5) * max(1, np.abs(value).max())

    more = {"char_ids/outputs/more": 0, "gone/outputs/elmo": 0}
    np.savez(file, **{name: changed(name, value) for name, value in right.items()}, **more)
    outputs = [name.split("/outputs/") for name in right if "/outputs/" in name]
    outputs += [("__call__", output) for signature, output in outputs if signature == "default"]
    differ = {f"{signature}: output {output!r} differs from what was exported" for signature, output in outputs}
    problems = standalone_checker.main(str(copy), str(file))
    assert set(problems) == differ | {"char_ids: output 'more' is missing", "signature 'gone' is missing"}
    assert {signature for signature, _ in outputs} == {*contract.SIGNATURES, "__call__"}
