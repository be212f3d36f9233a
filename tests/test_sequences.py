"""Letters as tokens: FASTA in the commands that read text."""

import dataclasses
import json
import pathlib

import pytest

import elmo_tf
from elmo_tf import cli, sources
from elmo_tf.errors import InputError


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
