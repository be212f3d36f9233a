"""Published files to networks and back: values, names, and files and options that are refused."""

import json

import numpy as np
import pytest

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, damage_reported
from elmo_tf.published import weights as published_weights
from elmo_tf.published.options import parse_options, read_options
from elmo_tf.text import char_ids
from tests import checks, float64
from tests.published import published_files as files

SENTENCES = (
    [b"The", b"bank", b"of", b"the", b"river", b".", b"x" * 200],
    ["naïve".encode(), b"</S>", "日本語".encode(), b"", b"\x01"],
    [b"alone"],
)


def message_of(function, *arguments) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def layers_of(bilm, tokens):
    ids = char_ids.encode_tokens(tokens, bilm.config.char_cnn.max_chars_per_token)
    return bilm(ids[None])[0].numpy()[0]


def assert_bits(arrays, expected):
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert (arrays[name].dtype, arrays[name].shape) == (np.float32, array.shape), name
        assert arrays[name].tobytes() == array.tobytes(), name


# Two architectures that differ in everything; the others with `make test-all`.
QUICK = ("everything", "three_layers_tanh")
ARCHITECTURES = [
    pytest.param(changes, id=name, marks=[] if name in QUICK else [pytest.mark.slow])
    for name, changes in files.ARCHITECTURES.items()
]


@pytest.mark.parametrize("changes", ARCHITECTURES)
def test_an_imported_network_agrees_with_the_reference_and_goes_back_bit_for_bit(changes, tmp_path):
    options = files.options(**changes)
    arrays = files.draw_hdf5(options)
    config, bilm = published_weights.load(*files.write_pair(tmp_path, options, arrays))
    weights = files.reference_weights(arrays)
    for tokens in SENTENCES:
        expected = float64.layers(weights, config.model, tokens)
        np.testing.assert_allclose(layers_of(bilm, tokens), expected, **checks.TOLERANCE)
    published_weights.dump(bilm, tmp_path / "back")
    assert_bits(files.read_hdf5(tmp_path / "back" / "weights.hdf5"), arrays)
    expected = files.options(**changes | {"n_characters": 262})
    assert json.loads((tmp_path / "back" / "options.json").read_text()) == expected


def test_a_single_layer_without_its_number_is_read_and_written_with_it(tmp_path):
    options = files.options(n_layers=1)
    arrays = files.draw_hdf5(options)
    dumped = {name.replace("MultiRNNCell/Cell0/", ""): array for name, array in arrays.items()}
    assert "RNN_1/RNN/LSTMCell/W_0" in dumped
    _, bilm = published_weights.load(*files.write_pair(tmp_path, options, dumped))
    published_weights.dump(bilm, tmp_path / "back")
    assert_bits(files.read_hdf5(tmp_path / "back" / "weights.hdf5"), arrays)


CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"
# A name, what becomes of the array of that name, and words of the error.
BAD_WEIGHTS = {
    "missing": (f"{CELL}/W_P_0", lambda _: None, ["(24, 8)", "missing"]),
    "transposed": ("CNN_proj/W_proj", np.transpose, ["(18, 8)", "(8, 18)"]),
    "flat_kernel": ("CNN/W_cnn_1", np.squeeze, ["(1, 2, 4, 6)", "(2, 4, 6)"]),
    "too_much": ("CNN_high_2/W_carry", lambda _: np.eye(18), ["(18, 18)", "options"]),
    "nan": ("CNN_high_0/W_transform", lambda array: np.where(np.arange(18) == 3, np.nan, array), ["finite", "18"]),
    "too_large_for_float32": ("char_embed", lambda array: array.astype("f8") * 1e60, ["finite"]),
    "one_layer_twice": ("RNN_0/RNN/LSTMCell/B", lambda _: np.zeros(96, np.float32), ["RNN_0/RNN/", "(96,)"]),
    "integers": ("CNN/b_cnn_0", lambda array: array.astype(np.int32), ["floats", "int32"]),
}


@pytest.mark.parametrize(("name", "spoil", "words"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights_are_refused_by_name(name, spoil, words, tmp_path):
    arrays = files.draw_hdf5(files.options())
    spoiled = spoil(arrays.pop(name, None))
    arrays |= {} if spoiled is None else {name: spoiled}
    message = message_of(published_weights.load, *files.write_pair(tmp_path, files.options(), arrays))
    words = words if name.startswith("RNN_0/RNN/LSTMCell") else [name, *words]
    assert message.startswith(f"{tmp_path}/weights.hdf5: ") and all(word in message for word in words), message


def test_shapes_are_compared_before_a_network_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(published_weights, "BiLM", lambda *_: pytest.fail("made"))
    pair = files.write_pair(tmp_path, files.options(dim=200_000), files.draw_hdf5(files.options()))
    assert "LSTMCell/W_0 of shape (16, 800000), found (16, 96)" in message_of(published_weights.load, *pair)


def test_too_little_memory_is_not_called_damage():
    with pytest.raises(MemoryError), damage_reported("a complete HDF5 file", "weights.hdf5"):
        raise MemoryError


def test_files_that_are_no_weights_are_refused(tmp_path):
    options, weights = files.write_pair(tmp_path, files.options(), files.draw_hdf5(files.options()))
    whole = weights.read_bytes()
    cut = [whole[:size] for size in (len(whole) // 2, len(whole) - 1, 100, 0)]
    for content in (*cut, b"not HDF5", whole.replace(b"W_cnn_1", b"\xa6_cnn_1")):
        weights.write_bytes(content)
        assert "HDF5" in message_of(published_weights.load, options, weights)
    weights.unlink()
    assert "no such file" in message_of(published_weights.load, options, weights)


def test_training_options_become_the_recipe():
    recipe = {"bidirectional": True, "dropout": 0.2, "all_clip_norm_val": 1, "n_epochs": 3, "n_train_tokens": 1000}
    recipe |= {"batch_size": 16, "n_tokens_vocab": 99, "unroll_steps": 5, "n_negative_samples_batch": 64}
    recipe["learning_rate"] = 0.1
    assert parse_options(files.options() | recipe, vocab_size=99).train == config_lib.TrainConfig(
        dropout_rate=0.2, clip_norm=1.0, epochs=3, batch_size=16, unroll_steps=5, num_sampled=64, learning_rate=0.1
    )
    assert parse_options(files.options() | recipe | {"sample_softmax": False}).train.num_sampled == 0
    assert parse_options(files.options()).train == config_lib.TrainConfig()


def test_missing_options_have_the_defaults_of_bilm_tf():
    options = files.options()
    for key in ("n_layers", "cell_clip", "proj_clip", "use_skip_connections"):
        del options["lstm"][key]
    del options["char_cnn"]["n_highway"]
    expected = config_lib.ModelConfig(
        config_lib.CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 6), (3, 8)), num_highway=0),
        config_lib.LSTMConfig(24, 8, 1, cell_clip=None, proj_clip=None, use_skip_connections=False),
    )
    assert parse_options(options).model == expected
    assert parse_options(options | {"char_cnn": options["char_cnn"] | {"n_highway": None}}).model == expected


@pytest.mark.parametrize(
    "options, words",
    [
        (files.options(n_characters=260), ["char_cnn.n_characters", "261 or 262", "260"]),
        (files.options(dim=4), ["lstm.projection_dim", "lstm.dim", "8"]),
        (files.options(dim=None), ["lstm.dim", "null"]),
        (files.options(filters=[[1, 4], [60, 6]]), ["char_cnn.filters", "60"]),
        (files.options(embedding=4), ["char_cnn.embedding", "4"]),
        (files.options() | {"peepholes": True}, ["peepholes"]),
        (files.options() | {"bidirectional": False}, ["bidirectional", "true", "false"]),
        (files.options() | {"sample_softmax": 0}, ["sample_softmax", "true or false", "0"]),
        (files.options() | {"batch_size": None}, ["batch_size", "null"]),
        ({"lstm": files.options()["lstm"]}, ["char_cnn"]),
        ({"char_cnn": files.options()["char_cnn"]}, ["lstm.dim"]),
        ([], ["object"]),
    ],
)
def test_options_that_cannot_be_had_are_refused_by_key(options, words):
    message = message_of(parse_options, options)
    assert message.startswith("options: ") and all(word in message for word in words), message


def test_an_options_file_that_is_not_there_or_not_json_is_refused(tmp_path):
    path = tmp_path / "options.json"
    assert message_of(read_options, path) == f"{path}: no such file"
    path.write_bytes(b"[]")
    assert message_of(read_options, path) == f"{path}: expected object, found a list of 0"
    path.write_text(json.dumps(files.options(n_layers=0)))
    assert message_of(read_options, path) == f"{path}: expected lstm.n_layers to be int >= 1, found 0"
