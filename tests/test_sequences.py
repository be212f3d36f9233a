"""Letters as tokens, from FASTA to vectors with the commands that a user types; and files of other protein models."""

import dataclasses
import json
import pathlib
import random

import h5py
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import cli, sources
from elmo_tf.errors import InputError
from elmo_tf.published.options import parse_options
from elmo_tf.savedmodel import verification
from tests import checks, float64
from tests.published import published_files as files

PROTEINS = {"sp|P1|ONE_X": "MKVLAAGIVGX", "two": "MSTNPKPQRKTKRN", "three": "", "four": "mkVL" * 40}
TINY = {
    "model.lstm.units": 32,
    "model.lstm.projection_dim": 16,
    "model.char_cnn.filters": "[[1,16],[2,16]]",
    "train.unroll_steps": 40,
    "train.batch_size": 4,
}


def fasta(proteins: dict[str, str]) -> str:
    def wrapped(letters: str) -> str:
        return "\n".join(letters[at : at + 60] for at in range(0, len(letters), 60))

    return "".join(f">{name} made up\n{wrapped(letters)}*\n" for name, letters in proteins.items())


@pytest.mark.slow  # test_fasta.py has the parsing, test_tokenizer.py the tokens
def test_fasta_becomes_a_model_and_vectors_of_residues(tmp_path, monkeypatch, capsys, loaded_once):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda _: [])  # test_whole_way.py has one
    draw = random.Random(0)
    many = {f"id{n}": "M" + "".join(draw.choices("ACDEFGHIKLVX", k=draw.randrange(5, 90))) for n in range(300)}
    pathlib.Path("train.fa").write_text(fasta(many | PROTEINS))
    pathlib.Path("few.fasta").write_text(fasta(PROTEINS))
    settings = " ".join(f"--set {key}={value}" for key, value in TINY.items())
    for command in (
        "preprocess --input train.fa --tokenizer characters --output data --shuffle",
        f"train --data data --workdir run --preset tiny {settings} --steps 3",
        "export --workdir run --output saved",
        "embed --model saved --input few.fasta --tokenizer characters --layers sum --id-column --output out.hdf5",
    ):
        assert cli.main(command.split()) == 0, capsys.readouterr().err
    letters = pathlib.Path("data/vocab.txt").read_text().split()[3:]
    assert set(letters) == set("".join((many | PROTEINS).values()))

    texts = list(PROTEINS.values())
    elmo = elmo_tf.load("saved")
    found = elmo.encode(texts, layers="sum")
    assert ["".join(one.tokens) for one in found] == texts
    with h5py.File("out.hdf5") as file:
        assert set(file) == set(PROTEINS)
        for name, one in zip(PROTEINS, found, strict=True):
            np.testing.assert_allclose(file[name], one.vectors, **checks.TOLERANCE)
    # The same from the model's own graph, from the workdir, and from tokens.
    outputs = elmo._model.signatures["default"](strings=tf.constant(texts))
    trained = elmo_tf.load("run")
    whole, split = (trained.encode(given, layers="sum") for given in (texts, list(map(list, texts))))
    for number, one in enumerate(found):
        size = len(one.tokens)
        assert outputs["tokens"][number, :size].numpy().tolist() == [token.encode() for token in one.tokens]
        assert outputs["offsets"][number, :size].numpy().tolist() == [[at, at + 1] for at in range(size)]
        in_graph = tf.reduce_sum(outputs["layers"][number, :, :size], 0)
        for vectors in (in_graph, split[number].vectors, whole[number].vectors):
            np.testing.assert_allclose(vectors, one.vectors, **checks.TOLERANCE)


# SeqVec's and catELMo's layout: one has their width of 1,024 and all of their convolutions, the other 8 layers.
WIDE = {
    "dim": 1024,
    "projection_dim": 512,
    "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
    "embedding": {"dim": 16},
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [WIDE, {"n_layers": 8}], ids=["width 1024", "8 layers"])
def test_the_sum_of_layers_of_published_files_is_the_references(tmp_path, changes):
    options = files.options(**changes)
    arrays = files.draw_hdf5(options)
    if changes is WIDE:  # as large as in a trained network, so that sums of thousands do not saturate it
        arrays = {name: one / np.sqrt(one.shape[-2]) if one.ndim > 1 else one for name, one in arrays.items()}
    pair = files.write_pair(tmp_path, options, arrays)
    config, weights = parse_options(options).model, files.reference_weights(arrays)
    texts = ["MKVLAXBZ", "cass LG*"]
    for text, found in zip(texts, elmo_tf.load(pair, tokenizer="characters").encode(texts, layers="sum"), strict=True):
        assert found.tokens == [*text.replace(" ", "")]
        expected = float64.layers(weights, config, [letter.encode() for letter in found.tokens])
        assert len(expected) == options["lstm"]["n_layers"] + 1
        assert found.vectors.shape == (len(found.tokens), 2 * options["lstm"]["projection_dim"])
        np.testing.assert_allclose(found.vectors, expected.sum(0), rtol=0, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("score --input p.fas", '"sentence": "AAV"'),
        ("neighbors --input p.fas --word V --sentence MKV --json", '"line": 1, "sentence": ["A", "A", "V"]'),
        ("look --input p.fas --word V --output page.html", "page.html"),
        ("projector --input p.fas --word V --logdir logs", "tensorboard --logdir logs"),
    ],
)
def test_every_command_that_reads_text_reads_fasta(
    workdir, command, expected, tmp_path, monkeypatch, capsys, loaded_once
):
    source = dataclasses.replace(sources.find(workdir), tokenizer="characters")
    monkeypatch.setattr(sources, "find", lambda _: source)
    monkeypatch.chdir(tmp_path)
    pathlib.Path("p.fas").write_text(">sp|P1 a VVV\nMK\nV\n>P2\nAAV*\n")
    assert cli.main([*command.split(), "--model", "proteins"]) == 0, capsys.readouterr().err
    assert expected in capsys.readouterr().out
    if command.startswith("look"):
        assert '"M","K","V"],["A","A","V"' in pathlib.Path("page.html").read_text().replace("\n", "")
    if command.startswith("projector"):
        assert pathlib.Path("logs/uses.tsv").read_text().splitlines() == ["M K [V]", "A A [V]"]


def test_predict_reads_fasta_where_letters_are_tokens(tmp_path, capsys):
    (tmp_path / "p.fas").write_text(">sp|P1 a VVV\nMK\nV\n>P2\nAAV*\n")
    command = ["task", "ner", "predict", "--model", "english-ner", "--tokenizer", "characters", "--input"]
    assert cli.main([*command, str(tmp_path / "p.fas")]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    assert ["".join(line["tokens"]) for line in lines] == ["MKV", "AAV"]


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(InputError, match=r"^tokenizer: expected one of whitespace, .*, found 'letters'$"):
        elmo_tf.load("english", tokenizer="letters")
