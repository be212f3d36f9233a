"""Folders of published files under the names that their publishers gave them."""

import pathlib
import zipfile

import numpy as np
import pytest

import elmo_tf
from elmo_tf.errors import InputError
from tests.published import published_files as files

pytestmark = pytest.mark.usefixtures("loaded_once")

LONG = "elmo_2x4096_512_2048cnn_2xhighway"


@pytest.fixture
def pair(tmp_path) -> tuple[pathlib.Path, pathlib.Path]:
    values = files.options()
    (tmp_path / "model").mkdir()
    return files.write_pair(tmp_path / "model", values, files.draw_hdf5(values))


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ("options.json", "model.hdf5"),
        (f"{LONG}_options.json", f"{LONG}_weights.hdf5"),
        (f"{LONG}_options.json", f"{LONG}_weights_PubMed_only.hdf5"),
        ("options.json", "elmo_pt_weights.hdf5"),
    ],
    ids=["NLPL", "AllenNLP", "PubMed", "Portuguese"],
)
def test_a_folder_is_a_model_under_its_publishers_names(pair, options, weights):
    expected = elmo_tf.load(pair).encode(["the cat"])[0].vectors
    folder = pair[0].parent
    pair[0].rename(folder / options)
    pair[1].rename(folder / weights)
    (folder / "vocab.txt").write_text("the\ncat\n")  # NLPL's has no <S>, and no softmax goes with it
    np.testing.assert_array_equal(elmo_tf.load(folder).encode(["the cat"])[0].vectors, expected)


def test_the_files_of_several_models_are_listed(pair):
    folder = pair[0].parent
    for name in ("small", "large"):
        (folder / f"elmo_{name}_options.json").write_bytes(pair[0].read_bytes())
    pair[0].unlink()
    message = r"several models \(elmo_large_options.json, elmo_small_options.json, weights.hdf5\): give the two files"
    with pytest.raises(InputError, match=message):
        elmo_tf.load(folder)


def test_a_model_of_elmoformanylangs_and_an_archive_are_refused_in_a_sentence(pair, tmp_path):
    for name in ("config.json", "token_embedder.pkl", "encoder.pkl", "char.dic", "word.dic"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=f"^{tmp_path}: a model of ELMoForManyLangs: a different network"):
        elmo_tf.load(tmp_path)
    with zipfile.ZipFile(tmp_path / "193.zip", "w") as archive:
        archive.write(pair[0], "options.json")
    message = f"an archive: unpack it .unzip {tmp_path}/193.zip -d 193. and give the folder"
    with pytest.raises(InputError, match=message):
        elmo_tf.load(tmp_path / "193.zip")
