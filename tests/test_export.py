"""The SavedModel contract: signatures, values, what must not matter, what can be trained, what is refused."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import __version__, verify_savedmodel
from elmo_tf import config as config_lib
from elmo_tf import export as export_lib
from elmo_tf.bilm import BiLM
from elmo_tf.errors import InputError
from elmo_tf.layers.scalar_mix import ScalarMix
from tests import checks, reference
from tests.helpers import MICRO, MICRO_CONFIG, batch_char_ids

TEXT = [
    b"The bank of the river .",
    b"",
    b"  A\tbank lends\nmoney to whoever asks  ",
    "naïve 日本語".encode(),
    b"x" * 200 + b" <S> \x00 </S>",
]
WORDS = [sentence.split() for sentence in TEXT]
LENGTHS = [len(words) for words in WORDS]
LONGEST = max(LENGTHS)
# MICRO has 2 layers above the token layer and a projection of 8.
OUTPUTS = {
    "layers": ((None, 3, None, 16), tf.float32),
    "word_emb": ((None, None, 8), tf.float32),
    "lstm_outputs1": ((None, None, 16), tf.float32),
    "lstm_outputs2": ((None, None, 16), tf.float32),
    "elmo": ((None, None, 16), tf.float32),
    "default": ((None, 16), tf.float32),
    "mask": ((None, None), tf.bool),
}
STRINGS = {"strings": ((None,), tf.string)}
INPUTS = {
    "default": STRINGS,
    "serving_default": STRINGS,
    "tokens": {"tokens": ((None, None), tf.string), "sequence_len": ((None,), tf.int32)},
    "char_ids": {"char_ids": ((None, None, 50), tf.int32)},
}
SAME = {"rtol": 0, "atol": 1e-6}


@pytest.fixture(scope="module")
def loaded(savedmodel):
    """The model as a user loads it, for tests that only call it."""
    return tf.saved_model.load(str(savedmodel.path))


def embed(model, sentences: list[bytes], name: str = "default") -> dict[str, np.ndarray]:
    found = model.signatures[name](strings=tf.constant(sentences, tf.string))
    return {name: value.numpy() for name, value in found.items()}


def embed_tokens(model, sentences: list[list[bytes]], max_length: int, filler: bytes = b"") -> dict[str, np.ndarray]:
    tokens = [words + [filler] * (max_length - len(words)) for words in sentences]
    lengths = tf.constant([len(words) for words in sentences], tf.int32)
    found = model.signatures["tokens"](tokens=tf.constant(tokens, tf.string), sequence_len=lengths)
    return {name: value.numpy() for name, value in found.items()}


def embed_char_ids(model, sentences: list[list[bytes]], max_length: int) -> dict[str, np.ndarray]:
    found = model.signatures["char_ids"](char_ids=tf.constant(batch_char_ids(sentences, max_length)))
    return {name: value.numpy() for name, value in found.items()}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], **SAME, err_msg=name)


def described(specs) -> dict:
    return {name: (tuple(spec.shape), spec.dtype) for name, spec in specs.items()}


def test_signatures_have_the_names_shapes_and_dtypes_of_the_contract(loaded):
    assert set(loaded.signatures) == set(INPUTS)
    for name, signature in loaded.signatures.items():
        positional, keywords = signature.structured_input_signature
        assert positional == ()
        assert described(keywords) == INPUTS[name], name
        assert described(signature.structured_outputs) == OUTPUTS, name


def test_real_shapes_and_the_mask_follow_the_batch(loaded):
    found = embed(loaded, TEXT)
    sizes = {"batch": len(TEXT), "time": LONGEST}
    assert {name: (value.shape, value.dtype) for name, value in found.items()} == {
        "layers": ((sizes["batch"], 3, sizes["time"], 16), np.float32),
        "word_emb": ((sizes["batch"], sizes["time"], 8), np.float32),
        "lstm_outputs1": ((sizes["batch"], sizes["time"], 16), np.float32),
        "lstm_outputs2": ((sizes["batch"], sizes["time"], 16), np.float32),
        "elmo": ((sizes["batch"], sizes["time"], 16), np.float32),
        "default": ((sizes["batch"], 16), np.float32),
        "mask": ((sizes["batch"], sizes["time"]), np.bool_),
    }
    np.testing.assert_array_equal(found["mask"], np.arange(LONGEST) < np.array(LENGTHS)[:, None])


def test_all_signatures_and_the_call_agree(loaded):
    expected = embed(loaded, TEXT)
    assert_same(embed(loaded, TEXT, "serving_default"), expected)
    assert_same(embed_tokens(loaded, WORDS, LONGEST), expected)
    assert_same(embed_char_ids(loaded, WORDS, LONGEST), expected)
    for training in ({}, {"training": False}, {"training": True}):
        called = loaded(tf.constant(TEXT), **training)
        assert_same({name: value.numpy() for name, value in called.items()}, expected)


def test_layers_are_those_of_the_network_and_of_the_reference(loaded, savedmodel):
    found = embed(loaded, TEXT)
    layers, mask = savedmodel.bilm(batch_char_ids(WORDS))
    np.testing.assert_allclose(found["layers"], layers, **SAME)
    np.testing.assert_array_equal(found["mask"], mask)
    weights = reference.weights_of(savedmodel.bilm)
    for words, values in zip(WORDS, found["layers"], strict=True):
        if words:
            expected = reference.layers(weights, MICRO, words)
            np.testing.assert_allclose(values[:, : len(words)], expected, **checks.TOLERANCE)


def test_elmo_is_gamma_times_the_weighted_sum_of_the_layers(loaded, savedmodel):
    found = embed(loaded, TEXT)
    layers = np.moveaxis(found["layers"].astype(np.float64), 1, 0)
    expected = reference.scalar_mix(layers, np.array(savedmodel.scalar_parameters), savedmodel.gamma)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found["elmo"], expected, **checks.TOLERANCE)


def test_the_other_outputs_are_parts_and_means_of_these(loaded):
    found = embed(loaded, TEXT)
    np.testing.assert_array_equal(found["word_emb"], found["layers"][:, 0, :, :8])
    np.testing.assert_array_equal(found["lstm_outputs1"], found["layers"][:, 1])
    np.testing.assert_array_equal(found["lstm_outputs2"], found["layers"][:, 2])
    for words, mean, vectors in zip(WORDS, found["default"], found["elmo"], strict=True):
        expected = vectors[: len(words)].astype(np.float64).mean(0) if words else np.zeros(16)
        np.testing.assert_allclose(mean, expected, **SAME)


def test_a_sentence_is_the_same_alone_among_others_in_any_order_and_again(loaded):
    expected = embed(loaded, TEXT)
    assert_same(embed(loaded, TEXT), expected)
    order = [3, 0, 4, 2, 1]
    assert_same(embed(loaded, [TEXT[n] for n in order]), {name: value[order] for name, value in expected.items()})
    for row, length in enumerate(LENGTHS):
        alone = embed(loaded, [TEXT[row]])
        assert alone["mask"].shape == (1, length)
        for name, value in alone.items():
            there = expected[name][row]
            there = there[:, :length] if name == "layers" else there if name == "default" else there[:length]
            np.testing.assert_allclose(value[0], there, **SAME, err_msg=name)


@pytest.mark.parametrize("filler", [b"", b"word", b"<S>"])
def test_padding_is_exactly_0_and_what_stands_there_does_not_matter(loaded, filler):
    expected = embed(loaded, TEXT)
    found = embed_tokens(loaded, WORDS, LONGEST + 3, filler)
    assert_same(embed_char_ids(loaded, WORDS, LONGEST + 3), found)
    for name in ("layers", "word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "mask"):
        time = 2 if name == "layers" else 1
        values, wide = (np.moveaxis(one[name], time, 1) for one in (expected, found))
        np.testing.assert_allclose(wide[:, :LONGEST], values, **SAME, err_msg=name)
        for row, length in enumerate(LENGTHS):
            assert not wide[row, length:].any(), name
    np.testing.assert_allclose(found["default"], expected["default"], **SAME)


def test_ready_tokens_are_taken_as_they_are(loaded, savedmodel):
    words = [b"", b"two words", b"", b"last"]
    found = embed_tokens(loaded, [words], 5)
    assert found["mask"].tolist() == [[True] * 4 + [False]]
    expected = reference.layers(reference.weights_of(savedmodel.bilm), MICRO, words)
    np.testing.assert_allclose(found["layers"][0, :, :4], expected, **checks.TOLERANCE)


@pytest.mark.parametrize("sentences", [[], [b""], [b" ", b""]])
def test_a_batch_without_tokens_gives_empty_outputs(loaded, sentences):
    found = embed(loaded, sentences)
    assert found["layers"].shape == (len(sentences), 3, 0, 16)
    np.testing.assert_array_equal(found["default"], np.zeros((len(sentences), 16)))


FRESH = """
import sys
sys.modules.update(elmo_tf=None, keras=None)  # importing either fails; TensorFlow itself tries Keras
import numpy as np
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
found = model.signatures["default"](strings=tf.constant(list(np.load(sys.argv[2])["text"])))
np.savez(sys.argv[3], **{name: value.numpy() for name, value in found.items()})
print(sorted(name for name, module in sys.modules.items() if module and name.startswith(("elmo_tf", "keras"))))
"""


def test_a_fresh_process_needs_tensorflow_only_and_no_file_elsewhere(savedmodel, loaded, tmp_path):
    moved = shutil.copytree(savedmodel.path, tmp_path / "moved")
    np.savez(tmp_path / "text.npz", text=np.array(TEXT[:4]))
    arguments = [moved, tmp_path / "text.npz", tmp_path / "found.npz"]
    command = [sys.executable, "-I", "-c", FRESH, *map(str, arguments)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert_same(dict(np.load(tmp_path / "found.npz")), embed(loaded, TEXT[:4]))


def test_the_mix_alone_is_trainable_and_a_step_changes_elmo_accordingly(savedmodel):
    model = tf.saved_model.load(str(savedmodel.path))
    scalar_parameters, gamma = model.trainable_variables
    np.testing.assert_allclose(scalar_parameters, savedmodel.scalar_parameters, rtol=1e-6)
    np.testing.assert_allclose(gamma, savedmodel.gamma, rtol=1e-6)
    assert list(model.regularization_losses) == []
    others = [variable for variable in model.variables if variable.shape not in ((3,), ())]
    network = savedmodel.bilm.trainable_variables
    assert sum(v.shape.num_elements() for v in others) == sum(int(np.prod(v.shape)) for v in network)
    before = embed(model, TEXT)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(others)
        loss = tf.reduce_sum(tf.square(model(tf.constant(TEXT))["elmo"]))
    gradients = tape.gradient(loss, [scalar_parameters, gamma])
    assert all(np.abs(gradient).max() > 1e-3 for gradient in gradients)
    assert all(gradient is None or not np.any(gradient) for gradient in tape.gradient(loss, others))
    np.testing.assert_allclose(gradients[1], 2 * loss / gamma, rtol=1e-4)  # elmo is proportional to gamma
    scalar_parameters.assign_sub(0.1 * gradients[0])
    gamma.assign_sub(0.01 * gradients[1])
    after = embed(model, TEXT)
    np.testing.assert_array_equal(after["layers"], before["layers"])
    assert np.abs(after["elmo"] - before["elmo"]).max() > 1e-3
    layers = np.moveaxis(after["layers"].astype(np.float64), 1, 0)
    expected = reference.scalar_mix(layers, scalar_parameters.numpy(), gamma.numpy())
    np.testing.assert_allclose(after["elmo"], expected, **checks.TOLERANCE)


def test_assets_hold_the_configuration_and_where_the_model_comes_from(savedmodel):
    assets = {path.name: json.loads(path.read_text("utf-8")) for path in (savedmodel.path / "assets").iterdir()}
    assert config_lib.from_dict(assets.pop("config.json")) == MICRO_CONFIG
    assert assets == {"provenance.json": {"elmo_tf": __version__, "vocabulary": {"size": 3}}}


def test_the_first_version_is_1_and_the_next_leaves_those_there_as_they_are(savedmodel, tmp_path):
    assert savedmodel.path.name == "1"
    output = tmp_path / "micro"
    first = shutil.copytree(savedmodel.path, output / "9")
    (output / "README.md").write_text("not a version")
    contents = {path: path.read_bytes() for path in first.rglob("*") if path.is_file()}
    further = checks.randomize(BiLM(MICRO), scale=0.4, seed=1)
    assert export_lib.export(further, MICRO_CONFIG, output) == output / "10"
    assert sorted(os.listdir(output)) == ["10", "9", "README.md"]
    assert {path: path.read_bytes() for path in first.rglob("*") if path.is_file()} == contents
    further_layers = embed(tf.saved_model.load(str(output / "10")), TEXT)
    np.testing.assert_allclose(further_layers["layers"], further(batch_char_ids(WORDS))[0], **SAME)
    np.testing.assert_allclose(further_layers["elmo"], further_layers["layers"].mean(1), **checks.TOLERANCE)  # no mix
    assert sorted(os.listdir(output / "10" / "assets")) == ["config.json", "provenance.json"]


def test_what_becomes_of_the_network_later_does_not_reach_the_savedmodel(savedmodel, loaded):
    before = embed(loaded, TEXT)
    try:
        checks.randomize(savedmodel.bilm, scale=0.4, seed=1)
        assert_same(embed(tf.saved_model.load(str(savedmodel.path)), TEXT), before)
    finally:
        checks.randomize(savedmodel.bilm, scale=0.4)


def corrupt(bilm: BiLM, folder: str) -> None:
    """Damages what was written."""
    data = os.path.join(folder, "variables", "variables.data-00000-of-00001")
    with open(data, "r+b") as file:
        file.seek(-400, os.SEEK_END)
        file.write(bytes(300))


def differ(bilm: BiLM, folder: str) -> None:
    """Makes the network another one than was written."""
    bilm.lstms[1][0].bias.assign(bilm.lstms[1][0].bias + 0.01)


@pytest.mark.parametrize(("damage", "message"), [(corrupt, ""), (differ, "output 'lstm_outputs1' differs")])
def test_a_model_that_fails_its_verification_leaves_nothing_behind(tmp_path, monkeypatch, damage, message):
    bilm = checks.randomize(BiLM(MICRO), scale=0.4)
    real = tf.saved_model.save

    def save(root, folder, **options):
        real(root, folder, **options)
        assert os.listdir(tmp_path) == ["new"]
        damage(bilm, folder)

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(RuntimeError, match=rf"(?s)failed its verification.*{message}"):
        export_lib.export(bilm, MICRO_CONFIG, tmp_path / "new" / "micro")
    assert os.listdir(tmp_path) == []


def test_verification_compares_every_output_of_every_signature(savedmodel, loaded, tmp_path):
    right = embed(loaded, TEXT[:4])

    def problems(**changes):
        np.savez(tmp_path / "expected.npz", **{"probes": TEXT[:4], **right, **changes})
        return verify_savedmodel.main(str(savedmodel.path), str(tmp_path / "expected.npz"))

    assert problems() == []
    wrong = {name: value + np.float32(3e-5) * max(1, np.abs(value).max()) for name, value in right.items()}
    wrong["mask"] = ~right["mask"]
    found = problems(**wrong, another=np.zeros(3))
    assert {line for line in found if "alone differs" not in line} == {
        f"{way}: output {name!r} {fault}"
        for way in (*INPUTS, "__call__")
        for name, fault in [*((name, "differs from what was exported") for name in right), ("another", "is missing")]
    }
    assert len([line for line in found if "alone differs" in line]) == 3  # one sentence is empty


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("average", [1 / 3, 1 / 3, 1 / 3]),
        ("top", [0, 0, 1]),
        ("0,0,0", [1 / 3, 1 / 3, 1 / 3]),
        ("0.1,0.5,-0.2", np.exp([0.1, 0.5, -0.2]) / np.exp([0.1, 0.5, -0.2]).sum()),
        ("1e2, 0,0", [1, 0, 0]),
    ],
)
def test_a_mix_gives_the_layers_their_weights(text, weights):
    mix = ScalarMix(3)
    mix.build(None)
    mix.scalar_parameters.assign(export_lib.parse_mix(text, 2))
    found = mix(tf.reshape(tf.eye(3), (1, 3, 1, 3)))
    np.testing.assert_allclose(found[0, 0], weights, atol=1e-7)


@pytest.mark.parametrize("text", ["", "Top", "1", "1,2", "1,2,3,4", "1,,2", "a,b,c", "nan,0,0", "0,inf,0", "0,0,1e39"])
def test_a_mix_that_is_none_is_refused(text):
    with pytest.raises(InputError) as caught:
        export_lib.parse_mix(text, 2)
    assert str(caught.value) == f"--mix: expected average, top or 3 numbers between commas, found {text!r}"


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        ("file", {}, r"^--output: expected a folder for the model's versions, found a file: .*file$"),
        ("new", {"scalar_parameters": [0.0, 1.0]}, r"^--mix: expected 3 numbers, one a layer, found 2$"),
        ("new", {"gamma": float("nan")}, r"^--gamma: expected a finite number, found nan$"),
        ("new", {"gamma": 1e39}, r"^--gamma: expected a finite number, found 1e\+39$"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_leaves_nothing_behind(tmp_path, output, options, message):
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match=message):
        export_lib.export(BiLM(MICRO), MICRO_CONFIG, tmp_path / output, **options)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "text"


def test_a_version_is_no_place_for_versions(savedmodel, workdir):
    with pytest.raises(InputError, match="--output: expected the folder of a model's versions, found one version"):
        export_lib.export(workdir.trained_bilm(), workdir.config, savedmodel.path)
