"""`benchmarks/learning.py`: its runs, its table, and what it does with wrong text."""

import json

from benchmarks import learning, probes


def test_a_recipe_is_a_run_for_each_seed_and_a_line_with_their_mean(tmp_path, monkeypatch, capsys):
    commands = []

    def result(name, command, output, resumes):
        commands.append(command[-1])
        return {"perplexity": 90.0 + 2 * len(commands), "cpu_seconds": 100 * len(commands)}

    monkeypatch.setattr(probes, "result", result)
    monkeypatch.setattr(learning, "preprocess", lambda _: learning.Records(tmp_path / "records", tmp_path / "heldout"))
    recipes = ["--recipe", "preset", "--recipe", "less --steps 7 --set train.dropout_rate=0"]
    texts = ["--train", "train.txt", "--heldout", "valid.txt"]
    learning.main([*texts, "--output", str(tmp_path / "out"), "--seeds", "0", "1", *recipes])
    assert len(commands) == 4 and "--seed 1 --steps 3000 && " in commands[1]
    # If an option is given twice, the last one counts.
    assert "--seed 0 --steps 3000 --steps 7 --set train.dropout_rate=0 && " in commands[2]
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [
        "recipe  perplexity  by seed    CPU seconds",
        "preset  93.0        92.0 94.0  150",
        "less    97.0        96.0 98.0  350",
    ]
    assert [run["recipe"] for run in json.loads(last)] == ["preset", "preset", "less", "less"]
