"""The benchmark of tasks: what it keeps of a command, and what it refuses to mix."""

import sys

import pytest

from benchmarks import tasks

SCORES = 'print(\'epoch 1\'); print(\'{"accuracy": {"without ELMo": [0.5, 0.7], "ELMo top": [0.75]}}\')'


def test_the_last_line_is_kept_and_the_command_not_run_again(tmp_path, capsys):
    command = [sys.executable, "-c", SCORES]
    values = tasks.result("polarity_10", command, tmp_path)
    told, epoch, last = capsys.readouterr().out.splitlines()
    assert told.startswith("$ ") and epoch == "epoch 1" and last.startswith("{")
    assert values["accuracy"] == {"without ELMo": [0.5, 0.7], "ELMo top": [0.75]}
    assert tasks.summary(values) == "without ELMo: accuracy 60.0 +- 14.1  ELMo top: accuracy 75.0 +- nan"
    assert tasks.result("polarity_10", command, tmp_path) == values
    assert capsys.readouterr().out == ""


def test_a_command_that_fails_ends_it_and_is_run_again(tmp_path):
    with pytest.raises(SystemExit) as ended:
        tasks.result("pos", [sys.executable, "-c", "raise SystemExit(3)"], tmp_path)
    assert ended.value.code == 3
    assert list(tmp_path.iterdir()) == []


def test_results_of_another_command_are_refused(tmp_path):
    tasks.result("pos", [sys.executable, "-c", "print('{}')"], tmp_path)
    with pytest.raises(SystemExit, match=r"^--output: expected results of .*, found those of .* in .*pos.result.json"):
        tasks.result("pos", [sys.executable, "-c", "print('{}') "], tmp_path)


def test_articles_of_wikigold_are_not_split(tmp_path):
    (tmp_path / "wikigold").mkdir()
    articles = [f"name{number} I-PER\n\nname{number} I-PER\nsat O" for number in range(20)]
    (tmp_path / "wikigold" / "wikigold.conll.txt").write_text("\n\n-DOCSTART- O\n\n".join(articles) + "\n")
    options = tasks.entities("wikigold", tmp_path, tmp_path)
    assert options[::2] == ["--train", "--dev", "--test"]
    parts = [path.read_text().strip().split("\n\n") for path in options[1::2]]
    assert [len(part) for part in parts] == [32, 4, 4]
    names = [{sentence.split()[0] for sentence in part} for part in parts]
    assert [len(one) for one in names] == [16, 2, 2]


def test_less_data_is_passed_over_more_often_but_not_for_as_many_steps(tmp_path):
    options = ["--savedmodel", "1", "--data", "data", "--output", str(tmp_path), "--fractions", "0.005", "0.1", "1"]
    commands = tasks.commands("polarity", tasks.parse_arguments(options))
    passes = {name: command[-1] for name, command in commands.items()}
    assert passes == {"polarity_0.5": 16, "polarity_10": 16, "polarity_100": 4}
