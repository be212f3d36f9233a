"""Named entities, from files to answers, as a user types the commands."""

import json

import pytest

from elmo_tf import tasks
from elmo_tf.annotated.columns import Tagged
from elmo_tf.cli import main
from elmo_tf.errors import InputError
from elmo_tf.tasks.ner import Task

SENTENCES = [
    "anna/B-PER sat/O in/O new/B-LOC york/I-LOC",
    "new/B-LOC york/I-LOC sleeps/O",
    "the/O cat/O and/O anna/B-PER smith/I-PER",
    "boris/B-PER sat/O there/O",
] * 6
SMALL = ["recipe=small", "network.units=6", "network.upper_units=4", "spelling.filters=4", "words.dim=4"]
SETTINGS = [part for one in [*SMALL, "fit.epochs=2", "fit.learning_rate=0.03"] for part in ("--set", one)]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text("\n".join("".join(f"{one.replace('/', ' ')}\n" for one in line.split()) for line in SENTENCES))
    return path


def run(capsys, *arguments) -> list[str]:
    status = main(["task", *map(str, arguments)])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out.splitlines()


def test_a_tagger_with_elmo_is_trained_evaluated_and_used(savedmodel, data, tmp_path, capsys, caplog):
    common = ["--train", data, "--dev", data, "--workdir", tmp_path / "run"]
    results = json.loads(run(capsys, "ner", "train", *common, "--elmo", savedmodel.path, *SETTINGS)[-1])
    assert (results["task"], results["metric"], results["epochs"]) == ("ner", "f1", 2)
    (line,) = run(capsys, "ner", "evaluate", "--workdir", tmp_path / "run", "--data", data)
    evaluation = json.loads(line)
    assert evaluation["examples"] == len(SENTENCES)
    # The layers were computed once, in float16, while it was trained: an answer at the edge may differ.
    assert evaluation["score"] == pytest.approx(results["score"], abs=5)
    (tmp_path / "text").write_text("anna sat there\n\nnew york\n")
    lines = [
        json.loads(one)
        for one in run(capsys, "ner", "predict", "--workdir", tmp_path / "run", "--input", tmp_path / "text")
    ]
    assert [one["tokens"] for one in lines] == [["anna", "sat", "there"], ["new", "york"]]
    assert all(len(one["tags"]) == len(one["tokens"]) for one in lines)
    (tmp_path / "text").write_text("Zo\u00eb, in New York.\n\n\u00ab\U0001f600 new\u00bb\n", "utf-8")
    raw = ["--input", tmp_path / "text", "--tokenizer", "unicode"]
    lines = [json.loads(one) for one in run(capsys, "ner", "predict", "--workdir", tmp_path / "run", *raw)]
    assert [one["tokens"] for one in lines] == [
        ["Zo\u00eb", ",", "in", "New", "York", "."],
        ["\u00ab", "\U0001f600", "new", "\u00bb"],
    ]
    assert [one["offsets"] for one in lines] == [
        [[0, 3], [3, 4], [5, 7], [8, 11], [12, 16], [16, 17]],
        [[0, 1], [1, 2], [3, 6], [6, 7]],
    ]
    with pytest.raises(InputError, match=r"^tokenizer: expected unicode, for ner or sentiment, found 'whitespace' for"):
        tasks.load(tmp_path / "run").predict(["new york"], tokenizer="whitespace")
    (tmp_path / "foreign").write_text("new B-GPE\nyork I-GPE\n\nnew B-LOC\nyork I-LOC\n")
    assert main(["task", "ner", "evaluate", "--workdir", f"{tmp_path}/run", "--data", f"{tmp_path}/foreign"]) == 0
    warning = f"the system was not trained on these labels of {tmp_path}/foreign: B-GPE, L-GPE; it knows B-LOC, B-PER, "
    assert warning in caplog.text


def test_the_list_has_a_line_for_each_system(capsys):
    lines = run(capsys)
    assert [line.split()[0] for line in lines] == list(tasks.SYSTEMS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "fit.epochs=0"], "--set fit.epochs: expected at least 1, found 0"),
        (["--set", "recipe=big"], "--set recipe: expected one of paper, small, found 'big'"),
        (["--dev", "none"], "--dev: expected a readable file, found No such file or directory: none"),
        (["--elmo", "none"], "--elmo: expected a SavedModel, a workdir, "),
        (["--glove", "none"], "--glove: expected a readable file, "),
        (["--fraction", "2"], "--fraction: expected above 0, at most 1, found 2.0"),
    ],
)
def test_wrong_arguments_are_named_by_their_flags(data, tmp_path, capsys, options, message):
    common = ["--train", data, "--dev", data, "--workdir", tmp_path / "run"]
    assert main(["task", "ner", "train", *map(str, common), *options]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"elmo-tf: error: {message}")


def test_spans_are_scored_and_a_span_of_another_kind_is_wrong():
    examples = [Tagged(["a", "b", "c"], ["B-X", "I-X", "O"]), Tagged(["d"], ["B-Y"])]
    system = Task(Task.recipes["small"], Task.labels_of(examples))
    assert system.labels == ["B-X", "L-X", "O", "U-Y"]
    found = system.scores(examples, [["B-X", "I-X", "O"], ["B-X"]])
    assert found == {"precision": 50, "recall": 50, "f1": 50}
    assert system.scores(examples, [["O"] * 3, ["O"]])["f1"] == 0
    assert system.to_json(examples[0], ["B-X", "I-X", "O"])["spans"] == [{"start": 0, "end": 2, "kind": "X"}]
