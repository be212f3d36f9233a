"""Where a model can come from: every kind of source is found, described and read in one place."""

import json
import pathlib
import re
import shutil

import h5py
import numpy as np
import pytest

import elmo_tf
from elmo_tf import cli, sources
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.published import models
from elmo_tf.published import weights as published_weights
from elmo_tf.savedmodel import checksums
from tests import checks
from tests.helpers import MICRO, batch_char_ids, slow
from tests.published import published_files

pytestmark = pytest.mark.usefixtures("loaded_once")
SENTENCES = [["the", "cat", "sat"], ["a", "dog", "barked", "naïvely"]]


@pytest.fixture(scope="module")
def of_all_kinds(savedmodel, workdir, tmp_path_factory):
    """A source of each kind; the published files have the weights of the SavedModel."""
    folder = published_weights.dump(savedmodel.bilm, tmp_path_factory.mktemp("published") / "files")
    pair = folder / models.OPTIONS_FILE, folder / models.WEIGHTS_FILE
    return {
        "version": savedmodel.path,
        "model": savedmodel.path.parent,
        "workdir": workdir,
        "files": folder,
        "pair": pair,
        "name": "english",
    }


@pytest.mark.parametrize("kind", ["version", slow("model"), "workdir", "files", slow("pair"), "name"])
def test_a_source_of_any_kind_says_what_its_model_computes(of_all_kinds, kind):
    source = sources.find(of_all_kinds[kind])
    elmo = elmo_tf.load(of_all_kinds[kind])
    network = elmo_tf.ELMo(of_all_kinds[kind]).bilm
    assert isinstance(network, BiLM) and network.config == source.config
    every = network(batch_char_ids([[word.encode() for word in words] for words in SENTENCES]))[0].numpy()
    assert every.shape[1::2] == (source.num_layers, source.dim)
    encoded = zip(elmo.encode(SENTENCES, "all"), elmo.encode(SENTENCES, "average"), SENTENCES, strict=True)
    for row, (layers, mean, words) in enumerate(encoded):
        np.testing.assert_allclose(layers.vectors, every[row, :, : len(words)], **checks.TOLERANCE)
        np.testing.assert_allclose(elmo.encode([words], "all")[0].vectors, layers.vectors, **checks.TOLERANCE)
        np.testing.assert_allclose(mean.vectors, every[row, :, : len(words)].mean(0), **checks.TOLERANCE)
    if kind not in ("version", "model"):  # a SavedModel has a mix of its own
        np.testing.assert_allclose(elmo.encode(SENTENCES)[1].vectors, mean.vectors, **checks.TOLERANCE)


@pytest.mark.parametrize("kind", ["files", slow("version")])
def test_bfloat16_products_change_vectors_by_their_rounding(of_all_kinds, kind, bfloat16_cpu):
    exact, rounded = (
        elmo_tf.load(of_all_kinds[kind], precision=precision).encode(SENTENCES, "all")
        for precision in ("float32", "bfloat16")
    )
    for sentence, near in zip(exact, rounded, strict=True):
        largest = np.abs(sentence.vectors).max()
        # A layer is at most eight products deep; each rounds two factors and its result to 8 bits.
        assert 0 < np.abs(sentence.vectors - near.vectors).max() <= 8 * 3 * 2.0**-9 * largest


def test_bfloat16_products_are_refused_where_they_would_be_slow(of_all_kinds, bfloat16_cpu):
    with pytest.raises(InputError, match="precision: expected one of float32, bfloat16, found 'int8'"):
        elmo_tf.load(of_all_kinds["files"], precision="int8")
    bfloat16_cpu.write_text("flags : avx2 avx512f\n")
    with pytest.raises(
        InputError, match="precision: expected float32, because this CPU cannot multiply bfloat16 matrices"
    ):
        elmo_tf.load(of_all_kinds["pair"], precision="bfloat16")


def test_a_checksum_is_the_same_until_the_model_changes(of_all_kinds, tmp_path):
    digests = {kind: sources.find(source).sha256() for kind, source in of_all_kinds.items()}
    assert digests == {kind: sources.find(source).sha256() for kind, source in of_all_kinds.items()}
    assert digests["version"] == digests["model"]
    assert digests["files"] == digests["pair"]
    assert len(set(digests.values())) == 4
    changed = shutil.copytree(of_all_kinds["files"], tmp_path / "changed")
    with h5py.File(changed / models.WEIGHTS_FILE, "a") as file:
        file["CNN_proj/b_proj"][0] += 1
    assert sources.find(changed).sha256() != digests["files"]
    config = shutil.copytree(of_all_kinds["workdir"], tmp_path / "workdir") / "config.json"
    config.write_text(config.read_text().replace('"activation": "relu"', '"activation": "tanh"'))
    assert sources.find(config.parent).sha256() != digests["workdir"]
    copy = shutil.copytree(of_all_kinds["version"], tmp_path / "version")
    for name, counts in (("assets/config.json", False), ("saved_model.pb", True)):
        (copy / name).write_bytes((copy / name).read_bytes() + b"\n")
        with pytest.raises(InputError, match=f"{name}: damaged: "):
            sources.SavedModel(str(copy), MICRO, path=copy).sha256()
        checksums.write(copy)
        assert (sources.SavedModel(str(copy), MICRO, path=copy).sha256() != digests["version"]) == counts


def test_a_network_to_train_is_one_with_variables_to_train(of_all_kinds):
    for source in (of_all_kinds["version"], of_all_kinds["workdir"], MICRO, BiLM(MICRO), BiLM(MICRO)):
        assert isinstance(sources.network(source, trainable=True), BiLM)


@pytest.mark.slow
def test_import_makes_a_savedmodel_of_a_name_and_verify_checks_its_files(tmp_path, capsys):
    workdir = tmp_path / "workdir"
    options = ["--mix", "top", "--softmax", "--output", str(tmp_path / "mine"), "--workdir", str(workdir)]
    assert cli.main(["import", "english", *options]) == 0
    version, made = capsys.readouterr().out.split()
    size = models.find("english").size
    assert cli.main(["verify", "--model", "english"]) == 0
    assert capsys.readouterr().out.endswith(f"weights.hdf5: {size:,} bytes, intact by its SHA-256\n")
    assert made == str(workdir)
    assert elmo_tf.load(workdir).encode(["A bank."])[0].tokens == ["A", "bank", "."]  # split as `english` does
    provenance = json.loads((pathlib.Path(version) / "assets" / "provenance.json").read_text())
    assert (provenance["model"], provenance["weights"]["sha256"]) == ("english", models.find("english").sha256)
    top = elmo_tf.load("english").encode(["a bank"], "top")[0].vectors
    for path in (version, tmp_path / "mine"):
        np.testing.assert_allclose(elmo_tf.load(path).encode(["a bank"])[0].vectors, top, **checks.TOLERANCE)
    totals = [elmo_tf.load(model).score(["the bank"])[0].total for model in (version, "english")]
    # Log-probabilities of about 10: sums of 1,024 products, about 20 computed one from another.
    assert totals[0] == pytest.approx(totals[1], abs=checks.rounding(1024, 10, 20))


def test_a_folder_with_a_model_comes_before_the_name_and_stands_for_its_newest_version(
    savedmodel, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "english").mkdir()
    assert sources.find("english").name == "english"
    (tmp_path / "english" / "3").symlink_to(savedmodel.path)
    assert sources.find("english").name == str(tmp_path / "english" / "3")
    for version in ("10", "9", "old"):
        (tmp_path / "english" / version).symlink_to(savedmodel.path)
    assert sources.find("english").name == str(tmp_path / "english" / "10")
    assert sources.find(tmp_path / "english" / "9").name == str(tmp_path / "english" / "9")


@pytest.mark.parametrize("use", [elmo_tf.load, elmo_tf.ELMo, sources.find])
@pytest.mark.parametrize("given", ["bokks", "no/such", "", 3, [1, 2], ["a", "b", "c"]])
def test_what_is_no_source_is_reported_with_the_names_of_models(use, given):
    expected = "expected a SavedModel, .*, or one of the models english, small, "
    message = rf"^source: {expected}.*, found {re.escape(str(given or 'an empty string'))}"
    if isinstance(given, str) and given:
        message = rf"^{given}: no model at this path or of this name \({expected}"
    with pytest.raises(InputError, match=message):
        use(given)


def test_damaged_files_of_a_published_model_are_named(home, tmp_path):
    (home / "pubmed").mkdir(parents=True)
    values = published_files.options()
    _, weights = published_files.write_pair(home / "pubmed", values, published_files.draw_hdf5(values))
    with h5py.File(weights, "a") as file:
        del file["char_embed"]
    with pytest.raises(InputError, match=rf"^{weights}: the array char_embed of shape .* is missing$"):
        elmo_tf.load("pubmed")
