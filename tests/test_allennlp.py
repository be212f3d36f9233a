"""AllenNLP's embedder: the shapes, orders and files that its documentation gives."""

import io
import json

import h5py
import numpy as np
import pytest

import elmo_tf
from elmo_tf.allennlp import ElmoEmbedder
from elmo_tf.errors import InputError
from elmo_tf.published import models
from tests import checks
from tests.checks import TOLERANCE
from tests.published import published_files as files

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = [["the", "cat", "sat"], ["a", "dog", "barked", "at", "the", "cat"], ["dogs"]]
TEXT = "the cat sat\na dog barked at the cat\ndogs\n"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The two files of a published micro model."""
    values = files.options()
    return files.write_pair(tmp_path_factory.mktemp("published"), values, files.draw_hdf5(values))


@pytest.fixture
def elmo(published):
    return ElmoEmbedder(*published)


def test_a_sentence_has_an_array_of_layers_tokens_and_dimensions(elmo, published):
    vectors = elmo.embed_sentence(SENTENCES[0])
    assert (type(vectors), vectors.shape, vectors.dtype) == (np.ndarray, (3, 3, 16), np.float32)
    (encoded,) = elmo_tf.load(published).encode([SENTENCES[0]], layers="all")
    np.testing.assert_array_equal(vectors, encoded.vectors)
    assert elmo.embed_batch([[]])[0].shape == (3, 0, 16)


def test_a_number_of_a_gpu_chooses_tensorflow(elmo, published):
    on_gpu = ElmoEmbedder(*published, cuda_device=0)
    assert [embedder._elmo.engine for embedder in (elmo, on_gpu)] == ["numpy", "tensorflow"]
    checks.assert_all_close(on_gpu.embed_batch(SENTENCES), elmo.embed_batch(SENTENCES), **TOLERANCE)


def test_sentences_keep_their_order_in_every_batch_size(elmo):
    batch = elmo.embed_batch(SENTENCES)
    assert [vectors.shape for vectors in batch] == [(3, 3, 16), (3, 6, 16), (3, 1, 16)]
    checks.assert_all_close(batch, elmo.embed_sentences(iter(SENTENCES), batch_size=2), **TOLERANCE)


def test_a_sentence_that_is_a_string_is_not_read_as_letters(elmo):
    for embed in (
        lambda: elmo.embed_sentence("The bank"),
        lambda: elmo.embed_batch([["The", "bank"], ""]),
        lambda: elmo.embed_batch("The bank"),
        lambda: list(elmo.embed_sentences([b"The bank"])),
    ):
        with pytest.raises(InputError, match=r"^sentence: expected a list of tokens, sentence.split\(\) for tokenized"):
            embed()
    with pytest.raises(InputError, match=r"^batch_size: expected a whole number, at least 1, found 0$"):
        list(elmo.embed_sentences(SENTENCES, batch_size=0))


@pytest.mark.parametrize(
    ("output_format", "expected"),
    [("all", lambda layers: layers), ("top", lambda layers: layers[2]), ("average", lambda layers: layers.mean(0))],
)
def test_a_file_has_a_dataset_for_each_line_and_the_keys_by_sentence(elmo, tmp_path, output_format, expected):
    elmo.embed_file(io.StringIO(TEXT), str(tmp_path / "vectors.hdf5"), output_format, batch_size=2)
    with h5py.File(tmp_path / "vectors.hdf5") as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index"}
        for number, layers in enumerate(elmo.embed_batch(SENTENCES)):
            assert file[str(number)].dtype == np.float32
            np.testing.assert_allclose(file[str(number)][()], expected(layers), **TOLERANCE)
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
    assert index == dict(zip(TEXT.splitlines(), "012", strict=True))


def test_sentences_can_be_the_keys_or_be_forgotten(elmo, tmp_path):
    elmo.embed_file(io.StringIO(TEXT), tmp_path / "sentences.hdf5", use_sentence_keys=True)
    elmo.embed_file(io.StringIO(TEXT), tmp_path / "numbers.hdf5", forget_sentences=True)
    keys = []
    for name in ("sentences.hdf5", "numbers.hdf5"):
        with h5py.File(tmp_path / name) as file:
            keys.append(set(file))
    assert keys == [set(TEXT.splitlines()), set("012")]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\n\nb\n \n", {}, r"lines \[2, 4\] are blank"),
        ("a\nb\na\n", {"use_sentence_keys": True}, "a sentence occurs twice"),
        ("a\n", {"output_format": "mean"}, "output_format"),
    ],
)
def test_what_allennlp_refuses_is_refused(elmo, tmp_path, text, options, message):
    with pytest.raises(InputError, match=message):
        elmo.embed_file(io.StringIO(text), tmp_path / "vectors.hdf5", **options)
    assert not (tmp_path / "vectors.hdf5").exists()


@pytest.mark.parametrize("host", ["https://allennlp.s3.amazonaws.com", "https://s3-us-west-2.amazonaws.com/allennlp"])
def test_the_addresses_of_a_published_model_and_no_file_at_all_mean_its_name(published, monkeypatch, host):
    asked = []
    monkeypatch.setattr(
        models.PublishedModel, "files", lambda model: asked.append(model.name) or models.Files(*published)
    )
    small = models.find("small")
    ElmoEmbedder(f"{host}/models/elmo/{small.options}", f"{host}/models/elmo/{small.weights}")
    ElmoEmbedder()
    assert asked == ["small", "original"]
    for given in ({"weight_file": "w.hdf5"}, {"options_file": "o.json"}):
        with pytest.raises(InputError, match=r"^options_file, weight_file: give both files, or neither$"):
            ElmoEmbedder(**given)
