"""The tables of probes and of tasks: what is kept of a command, what is refused, and the rows."""

import json
import pathlib
import re
import shlex
import sys

import pytest

from benchmarks import cove_compared, finetuned, paper_table, probes
from benchmarks.histories import first_better
from elmo_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from elmo_tf.workdir.folder import open_workdir
from tests.helpers import MICRO, ROOT, new_untrained

SCORES = 'print("epoch 1"); print(\'{"scores": {"layer 0": {"accuracy": 0.5}, "mix": {"accuracy": 0.75}}}\')'


def test_the_last_line_is_kept_and_the_command_not_run_again(tmp_path, capsys):
    command = [sys.executable, "-c", SCORES]
    values = probes.result("pos", command, tmp_path)
    told, epoch, last = capsys.readouterr().out.splitlines()
    assert told.startswith("$ ") and epoch == "epoch 1" and last.startswith("{")
    assert probes.summary(values) == "layer 0 50.0  mix 75.0"
    assert probes.result("pos", command, tmp_path) == values
    assert capsys.readouterr().out == ""


def test_results_of_another_command_are_refused(tmp_path):
    probes.result("pos", [sys.executable, "-c", "print('{}')"], tmp_path)
    with pytest.raises(SystemExit, match=r"^--output: expected results of .*, found those of .* in .*pos.result.json"):
        probes.result("pos", [sys.executable, "-c", "print('{}') "], tmp_path)


@pytest.mark.parametrize("resumes", [True, False])
def test_what_an_interrupted_run_left_is_kept_if_the_command_resumes(tmp_path, resumes):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state").touch()
    probes.result("run", [sys.executable, "-c", "print('{}')"], tmp_path, resumes)
    assert (tmp_path / "run" / "state").exists() == resumes


def test_articles_of_wikigold_are_not_split(tmp_path):
    (tmp_path / "wikigold").mkdir()
    articles = [f"name{number} I-PER\n\nname{number} I-PER\nsat O" for number in range(20)]
    (tmp_path / "wikigold" / "wikigold.conll.txt").write_text("\n\n-DOCSTART- O\n\n".join(articles) + "\n")
    _, files = paper_table.ROWS["wikigold"]
    parts = {name: path.read_text().strip().split("\n\n") for name, path in files(tmp_path, tmp_path).items()}
    assert {name: len(part) for name, part in parts.items()} == {"train": 32, "dev": 4, "test": 4}
    assert [len({sentence.split()[0] for sentence in part}) for part in parts.values()] == [16, 2, 2]


def test_every_way_is_a_command_and_a_row_beside_the_baseline(tmp_path):
    options = f"--model model --data data --output {tmp_path} --only uner --mixes --seeds 2".split()
    arguments = paper_table.parse_arguments([*options, "--fractions", "0.1", "1"])
    commands = dict(paper_table.commands(arguments))
    assert list(commands)[:3] == ["uner_10_baseline", "uner_10_elmo", "uner_10_average"]
    assert len(commands) == 2 * 8
    assert "--model" not in commands["uner_100_baseline"]
    assert commands["uner_100_lambda-1"][-4:] == ["--set", "recipe=small", "--set", "elmo.penalty=1.0"]

    assert commands["uner_100_last-layer-only-gamma-1"][-4:] == ["--set", "elmo.mix=top", "--set", "elmo.gamma=1"]
    assert commands["uner_100_average"][-1] == "elmo.mix=average"

    with_words = paper_table.parse_arguments([*options, "--glove", "a.txt", "b.txt", "--set", "fit.epochs=3"])
    command = dict(paper_table.commands(with_words))["uner_100_baseline"]
    assert command[command.index("--glove") :][:4] == ["--glove", "a.txt", "b.txt", "--fraction"]
    assert command[-1] == "fit.epochs=3"

    more = paper_table.parse_arguments([*options, "--fractions", "0.01", "1", "--more-epochs"])
    commands = dict(paper_table.commands(more))
    assert commands["uner_1_elmo"][-7::2] == ["recipe=small", "fit.epochs=320", "fit.patience=80", "fit.judge_every=16"]
    assert commands["uner_100_elmo"][-2:] == ["--set", "recipe=small"]


def test_a_row_has_scores_seeds_recipe_sizes_epochs_cap_and_hours(tmp_path):
    command = "python -m elmo_tf.cli task ner train --set recipe=paper --set fit.epochs=30 --set fit.patience=5"
    values = {"task": "ner", "metric": "f1", "train_examples": 1000, "seconds": 5400, "best_epoch": 7}
    values |= {"deviation": 0.5, "scores": {"seed_0": 61.0, "seed_1": 60.0, "seed_2": 59.0}}
    results = {
        "uner_100_baseline": values | {"score": 60.0, "command": command},
        "uner_100_elmo": values | {"score": 70.0, "command": command, "epochs": 12},
    }
    row = paper_table.table(results, tmp_path).splitlines()[1].split("  ")
    cells = [cell.strip() for cell in row if cell]
    assert cells == [
        "uner 100 elmo",
        "f1",
        "1,000",
        "60.0 +- 0.5",
        "70.0 +- 0.5",
        "+10.0",
        "25.0 %",
        "3",
        "paper",
        "words.dim=50 units=200 upper_units=100",
        "7 / 7 of 12",
        "30",
        "1.50 / 1.50",
        "-",
    ]
    paper_table.draw(results, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_a_recipe_with_other_sizes_is_not_called_by_its_name():
    command = "task sentiment train --set recipe=paper --set network.hidden=[60,30] --set network.units=30"
    name, sizes = paper_table.recipe_and_sizes({"task": "sentiment", "command": command, "glove": [{"dim": 25}] * 2})
    assert name == "own: paper, network.units=30, network.hidden=[60, 30]"
    assert sizes == "words.dim=50 units=30 hidden=[60,30] classes=5"


def test_seconds_that_a_command_knows_itself_are_kept(tmp_path):
    command = [sys.executable, "-c", "print('{\"seconds\": 7200}')"]
    assert probes.result("run", command, tmp_path, resumes=True)["seconds"] == 7200


def test_the_first_epoch_above_the_baselines_best_is_given_with_its_updates(tmp_path):
    def write(name: str, scores: list[float | None], steps: int) -> pathlib.Path:
        history = [{"steps": steps} | ({} if score is None else {"dev": {"f1": score}}) for score in scores]
        path = tmp_path / name / "scores.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"metric": "f1", "history": history}))
        return tmp_path / name.partition("/")[0]

    baseline = write("base", [10, 30, 29, 60, 50], 100)
    assert first_better(baseline, write("elmo", [60, None, 61], 50)) == "epoch 3, not 4: 62 % fewer updates"
    assert first_better(baseline, write("worse", [60], 100)) == "never"
    for seed, score in enumerate((70, 20)):
        several = write(f"several/seed_{seed}", [20, 50], 100)
        better = write(f"better/seed_{seed}", [score, 70], 100)
    (several / "scores.json").write_text('{"metric": "f1"}')
    assert first_better(several, better) == "epoch 1.5, not 2: 25 % fewer updates"
    assert first_better(several, baseline) == "-"


def test_cove_and_a_fine_tuned_model_are_ways_of_their_own(tmp_path):
    options = f"--model english --data data --output {tmp_path} --only uner --cove workdir --finetuned".split()
    commands = dict(paper_table.commands(paper_table.parse_arguments(options)))
    names = ["uner_100_baseline", "uner_100_elmo", "uner_100_cove-all-layers", "uner_100_cove-last-layer"]
    assert list(commands) == [*names, "uner_100_fine-tuned"]
    last = commands["uner_100_cove-last-layer"]
    arguments = cove_compared.parse_arguments(last[2:])  # what `elmo-tf task ner train` has, but for the model
    assert arguments.cove == pathlib.Path("workdir") and arguments.workdir == str(tmp_path / names[-1])
    assert arguments.assignments == ["recipe=small", "elmo.mix=top"]
    assert "--model" not in last and "--model" not in commands["uner_100_baseline"]
    tuned = commands["uner_100_fine-tuned"]
    assert tuned[tuned.index("--model") + 1] == str(tmp_path / "uner.finetuned")


def test_the_options_on_the_page_of_findings_are_known():
    page = (ROOT / "docs" / "findings.md").read_text("utf-8")
    vectors = re.search(r"`VECTORS` are the options\s+`([^`]+)`", page)[1]
    found = re.findall(r"`(--only [^`]+)`", page)
    assert len(found) > 10
    for options in found:
        words = shlex.split(options.replace("VECTORS", vectors))
        paper_table.parse_arguments(["--model", "english", "--data", "data", "--output", "results", *words])


def test_results_of_another_clone_are_kept(tmp_path):
    values = probes.result("pos", [sys.executable, "-c", "print('{}')"], tmp_path)
    path = tmp_path / "pos.result.json"
    path.write_text(json.dumps(values).replace(sys.executable, "/another/python"))
    assert "/another/python" in path.read_text()
    assert probes.result("pos", [sys.executable, "-c", "print('{}')"], tmp_path)["command"].startswith("/another/")


@pytest.mark.slow
def test_a_model_is_fine_tuned_once_on_a_tasks_sentences(tmp_path, capfd):
    text = "Anna B-PER\nsleeps O\n\nshe O\nsat O\nin O\nParis B-LOC\n\n"
    for part, times in (("train", 30), ("dev", 1)):
        (tmp_path / part).write_text(text * times + f"{part} O\n\n")
    words = Vocabulary([*SPECIAL_TOKENS, b"she", b"sat", b"in"])
    source = new_untrained(tmp_path / "source", MICRO, words)
    files = {part: tmp_path / part for part in ("train", "dev")}
    arguments = ("tags", "ner", files, str(source.path), tmp_path)
    values = finetuned.tuned(*arguments)
    assert values["sentences"] == 3
    assert (tmp_path / "tags.dev.sentences.txt").read_text() == "Anna sleeps\nshe sat in Paris\ndev\n"
    assert open_workdir(finetuned.workdir("tags", tmp_path)).vocabulary.tokens == words.tokens
    assert values["after"] < values["before"]
    capfd.readouterr()
    assert finetuned.tuned(*arguments) == values
    assert [line.split()[4] for line in capfd.readouterr().out.splitlines() if line[0] == "$"] == ["finetune"]
    assert finetuned.table({"tags": {"sentences": 1200, "before": 50.0, "after": 40.0}}).splitlines() == [
        "data  distinct sentences  perplexity before  after  lower by",
        "tags  1,200               50.0               40.0   20 %",
    ]
