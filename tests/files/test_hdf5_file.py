"""HDF5 files that would have other files read."""

import zipfile

import h5py
import numpy as np
import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import hdf5_file
from elmo_tf.probes import learned_weights
from elmo_tf.published import arrays
from elmo_tf.published.options import read_options
from tests.published import published_files


def external(group: h5py.Group, name: str, secret) -> None:
    group.create_dataset(name, (4,), "f4", external=[(str(secret), 0, 16)])


def virtual(group: h5py.Group, name: str, secret) -> None:
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["x"] = np.ones(4, np.float32)
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "x", shape=(4,))
    group.create_virtual_dataset(name, layout)


def external_link(group: h5py.Group, name: str, secret) -> None:
    group[name] = h5py.ExternalLink(str(secret), "/x")


def soft_link(group: h5py.Group, name: str, secret) -> None:
    group[name] = h5py.SoftLink("/char_embed")


NAME = "CNN/b_cnn_0"
KINDS = {
    external: f"the data of {NAME} are not in this file; other files are not read",
    virtual: f"the data of {NAME} are not in this file; other files are not read",
    external_link: f"{NAME} is a link; links are not followed",
    soft_link: f"{NAME} is a link; links are not followed",
}


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "secret").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return tmp_path / "secret"


@pytest.mark.parametrize(("put", "message"), KINDS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_weights_that_would_be_read_from_another_file_are_refused(tmp_path, secret, put, message):
    options = published_files.options()
    values = published_files.draw_hdf5(options)
    del values[NAME]
    paths = published_files.write_pair(tmp_path, options, values)
    with h5py.File(paths[1], "a") as file:
        put(file, NAME, secret)
    with pytest.raises(InputError, match=f"^{paths[1]}: {message}$"):
        dict(arrays.read_weights(paths[1], read_options(paths[0]).model))


@pytest.mark.parametrize("put", KINDS, ids=lambda value: value.__name__)
def test_a_softmax_and_a_mix_are_refused_as_well(tmp_path, secret, put):
    config = read_options(published_files.write_pair(tmp_path, published_files.options(), {})[0]).model
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\na\n")
    with h5py.File(tmp_path / "softmax.hdf5", "w") as file:
        file["kernel"] = np.zeros((4, config.lstm.projection_dim), np.float32)
        put(file, "bias", secret)
    with pytest.raises(InputError, match=r"/softmax.hdf5: .*bias "):
        arrays.read_softmax(tmp_path / "weights.hdf5", config)
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        variables = file.create_group("layers/elmo/mixes/scalar_mix/vars")
        variables["1"] = np.float32(1)
        put(variables, "0", secret)
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.write(tmp_path / "model.weights.h5", "model.weights.h5")
    with pytest.raises(InputError, match=r"/model.keras: .*vars/0 "):
        learned_weights.read(tmp_path / "model.keras")


def test_groups_that_contain_each_other_are_walked_once(tmp_path):
    with h5py.File(tmp_path / "a", "w") as file:
        file["group/array"] = np.zeros(3)
        file["group/itself"] = file["group"]
    with hdf5_file.open_file(tmp_path / "a") as file:
        assert file["group/itself/array"].shape == (3,)
