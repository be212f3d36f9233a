"""The files of the model in the box: smaller, and what published files are."""

import shutil

import h5py
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from benchmarks import pack_model
from elmo_tf.errors import InputError
from elmo_tf.published import weights as published_weights
from elmo_tf.training import importing
from tests.published import published_files


@pytest.fixture
def dumped(tmp_path):
    (tmp_path / "dumped").mkdir()
    values = published_files.options()
    published_files.write_pair(tmp_path / "dumped", values, published_files.draw_hdf5(values))
    return tmp_path / "dumped"


def test_packed_files_are_smaller_and_load_with_the_weights_rounded_to_float16(dumped, tmp_path):
    output = tmp_path / "packed"
    output.mkdir()
    (output / "README.md").write_text("a model card")
    about = pack_model.pack([dumped], output)
    assert {path.name for path in output.iterdir()} == {"README.md", "options.json", "weights.hdf5"}
    assert about["bytes"] == sum((output / name).stat().st_size for name in ("options.json", "weights.hdf5"))
    before, after = (published_files.read_hdf5(folder / "weights.hdf5") for folder in (dumped, output))
    assert after.keys() == before.keys()
    assert about["parameters"] == sum(values.size for values in before.values())
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values.astype(np.float16))
    assert 0 < about["largest_change"] <= 2**-11
    read = [published_weights.load(folder / "options.json", folder / "weights.hdf5")[1] for folder in (dumped, output)]
    for exact, packed in zip(*(bilm.variables for bilm in read), strict=True):
        np.testing.assert_array_equal(np.float16(exact.numpy()), packed.numpy())


def test_dividing_the_token_layer_leaves_the_bits_of_all_other_layers(dumped, tmp_path):
    with h5py.File(dumped / "weights.hdf5", "a") as file:
        file["CNN_proj/W_proj"][0, 0] = 2.0**-14  # float16 has no eighth of 2^-14 * 1.001
        file["CNN_proj/W_proj"][0, 1] = 2.0**-14 * (1 + 2.0**-10)
    pack_model.pack([dumped], tmp_path / "plain")
    pack_model.pack([dumped], tmp_path / "divided", divide_tokens_by=8)
    ids = tf.random.stateless_uniform((2, 5, 50), (0, 0), 1, 262, tf.int32)
    plain, divided = (
        published_weights.load(tmp_path / name / "options.json", tmp_path / name / "weights.hdf5")[1](ids)[0].numpy()
        for name in ("plain", "divided")
    )
    np.testing.assert_array_equal(8 * divided[:, 0], plain[:, 0])
    np.testing.assert_array_equal(divided[:, 1:], plain[:, 1:])
    with pytest.raises(InputError, match="expected a power of two, found 6"):
        pack_model.pack([dumped], tmp_path / "divided", divide_tokens_by=6)


def test_several_models_give_the_mean_of_their_weights(dumped, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(dumped, other)
    with h5py.File(other / "weights.hdf5", "a") as file:
        file["CNN_proj/b_proj"][:] += 1
    pack_model.pack([dumped, other], tmp_path / "packed")
    before, after = (published_files.read_hdf5(folder / "weights.hdf5") for folder in (dumped, tmp_path / "packed"))
    np.testing.assert_allclose(after["CNN_proj/b_proj"], before["CNN_proj/b_proj"] + 0.5, rtol=2**-11)
    np.testing.assert_array_equal(after["CNN_proj/W_proj"], before["CNN_proj/W_proj"].astype(np.float16))
    (other / "vocab.txt").write_text("<S>\n</S>\n<UNK>\na\n")
    with pytest.raises(InputError, match=r"^dumped: expected models that differ .*, found different files vocab.txt$"):
        pack_model.pack([dumped, other], tmp_path / "packed")


def test_the_softmax_is_packed_too(workdir, tmp_path):
    importing.dump_weights(workdir, tmp_path / "dumped", softmax=True)
    pack_model.pack([tmp_path / "dumped"], tmp_path / "packed")
    names = {"options.json", "weights.hdf5", "softmax.hdf5", "vocab.txt"}
    assert {path.name for path in (tmp_path / "packed").iterdir()} == names
    before, after = (published_files.read_hdf5(tmp_path / name / "softmax.hdf5") for name in ("dumped", "packed"))
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values.astype(np.float16))
    (tmp_path / "packed" / "softmax.hdf5").write_bytes(b"no")
    with pytest.raises(InputError, match=r"softmax.hdf5: not a complete HDF5 file"):
        elmo_tf.load(tmp_path / "packed").score(["the cat sat"])


def test_weights_too_large_for_float16_are_refused_and_nothing_is_replaced(dumped, tmp_path):
    with h5py.File(dumped / "weights.hdf5", "a") as file:
        file["CNN/b_cnn_0"][0] = 1e6
    with pytest.raises(InputError, match="expected weights of CNN/b_cnn_0 below 65504"):
        pack_model.pack([dumped], tmp_path / "packed")
    assert list((tmp_path / "packed").iterdir()) == []
