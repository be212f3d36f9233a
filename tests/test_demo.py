"""`make demo`: its text is real, and its path goes through."""

import json
import os
import re
import sys

import pytest

from elmo_tf.records import record_folder
from elmo_tf.training.evaluation import unigram_perplexity
from examples import demo
from tests.helpers import run_python


def test_the_text_is_thousands_of_english_sentences_without_grammar_and_code():
    sentences = list(demo.tokenized_sentences())
    assert sentences == list(demo.tokenized_sentences())
    assert len(sentences) > 3000
    tokens = [token for sentence in sentences for token in sentence.split(" ")]
    assert len(tokens) > 70_000
    assert all(tokens)
    assert all(token.split() == [token] for token in tokens)
    assert tokens.count("the") > 3000
    assert not {"::=", ">>>", "***", "==="} & set(tokens)
    for word, queries in demo.SENSES.items():
        assert sum(word in sentence.split() for sentence in sentences) > 20
        assert all(word in query.split() for query in queries)


@pytest.mark.slow  # `make demo` is the same
@pytest.mark.skipif(not demo.COMMAND.exists(), reason=f"no {demo.COMMAND}; `make setup` installs it")
def test_the_demo_goes_from_text_to_the_nearest_uses(tmp_path):
    folder, output = tmp_path / "work", tmp_path / "models" / "demo"
    done = run_python("examples/demo.py", "--steps", "2", "--folder", folder, "--output", output, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(folder)) == ["heldout", "records", "tiny", "topics.txt"]

    data, heldout = (record_folder.open_folder(folder / name) for name in ("records", "heldout"))
    lines = (folder / "topics.txt").read_text("utf-8").splitlines()
    assert lines == list(demo.tokenized_sentences())
    assert data.info.sentences + heldout.info.sentences == len(lines)
    assert 0.03 < heldout.info.sentences / len(lines) < 0.07

    (before,) = re.findall(r"step 0: held-out perplexity ([\d.]+) ", done.stderr)
    (after,) = (json.loads(line)["perplexity"] for line in done.stdout.splitlines() if line.startswith("{"))
    unigram = unigram_perplexity(data, heldout)
    # An untrained model knows that words are in order of their counts.
    assert unigram < float(before) < len(data.vocabulary)
    table = dict(re.findall(r"^  (untrained|unigram model|biLM, preset tiny) +([\d,.]+)$", done.stdout, re.MULTILINE))
    assert table == {"untrained": before, "unigram model": f"{unigram:,.1f}", "biLM, preset tiny": f"{after:,.1f}"}
    assert table["untrained"] != table["biLM, preset tiny"]
    assert "elmo (2, 5, 256) - layers (2, 3, 5, 256)" in done.stdout
    uses = re.findall(r"^ ?[\d.-]+  +[\d,]+  (.*\[set\].*)$", done.stdout, re.MULTILINE)
    assert len(uses) == 5 * len(demo.SENSES["set"])
    assert {use.replace("[set]", "set") for use in uses} <= set(lines)


def test_the_demo_removes_no_folder_that_is_not_its_own(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").touch()
    for option in ("--folder", "--output"):
        monkeypatch.setattr(sys, "argv", ["demo.py", option, str(tmp_path)])
        with pytest.raises(SystemExit, match="2"):
            demo.main()
        assert re.search(f"{option}: .* exists already; name a new folder", capsys.readouterr().err)
    assert (tmp_path / "mine").exists()
