"""The command `task`: from files to predictions, as a user types it."""

import json
import os
import pathlib
import threading

import pytest

from elmo_tf.cli import main
from elmo_tf.errors import InputError
from elmo_tf.tasks import systems, trained
from tests.tasks.small import OWN, SMALL

SENTENCES = [
    "anna/B-PER sat/O in/O new/B-LOC york/I-LOC",
    "new/B-LOC york/I-LOC sleeps/O",
    "the/O cat/O and/O anna/B-PER smith/I-PER",
    "boris/B-PER sat/O there/O",
] * 6


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text("\n".join("".join(f"{word.replace('/', ' ')}\n" for word in line.split()) for line in SENTENCES))
    return path


def run(capsys, *arguments) -> list[dict]:
    status = main(["task", *map(str, arguments)])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return [json.loads(line) for line in captured.out.splitlines()]


def train(capsys, task, data, workdir, *options) -> dict:
    settings = [part for setting in [*SMALL, *OWN[task].split(), "fit.epochs=2"] for part in ("--set", setting)]
    return run(capsys, task, "train", "--train", data, "--dev", data, "--workdir", workdir, *settings, *options)[-1]


def test_a_tagger_with_elmo_is_trained_evaluated_and_used(savedmodel, data, tmp_path, capsys, caplog, traced_once):
    workdir = tmp_path / "run"
    options = ["--model", savedmodel.path, "--set", "elmo.remember=true"]
    results = train(capsys, "ner", data, workdir, *options)
    assert (results["task"], results["metric"], results["epochs"]) == ("ner", "f1", 2)
    (evaluation,) = run(capsys, "ner", "evaluate", "--workdir", workdir, "--data", data)
    assert evaluation["examples"] == len(SENTENCES)
    # In training, the layers were computed once, in float16: a close decision may differ.
    assert evaluation["score"] == pytest.approx(results["score"], abs=5)
    (tmp_path / "text").write_text("anna sat there\n\nnew york\n")
    lines = run(capsys, "ner", "predict", "--workdir", workdir, "--input", tmp_path / "text")
    assert [row["tokens"] for row in lines] == [["anna", "sat", "there"], [], ["new", "york"]]
    assert all(len(row["tags"]) == len(row["tokens"]) for row in lines)
    (tmp_path / "text").write_text("Zo\u00eb, in New York.\n\n\u00ab\U0001f600 new\u00bb\n", "utf-8")
    raw = ["--input", tmp_path / "text", "--tokenizer", "unicode"]
    lines = run(capsys, "ner", "predict", "--workdir", workdir, *raw)
    assert [row["tokens"] for row in lines] == [
        ["Zo\u00eb", ",", "in", "New", "York", "."],
        [],
        ["\u00ab", "\U0001f600", "new", "\u00bb"],
    ]
    assert [row["offsets"] for row in lines] == [
        [[0, 3], [3, 4], [5, 7], [8, 11], [12, 16], [16, 17]],
        [],
        [[0, 1], [1, 2], [3, 6], [6, 7]],
    ]
    (tmp_path / "foreign").write_text("new B-GPE\nyork I-GPE\n\nnew B-LOC\nyork I-LOC\n")
    system = trained.load(str(workdir), "ner")
    system.evaluate(tmp_path / "foreign")
    assert f"labels of {tmp_path}/foreign that the training data lacks: B-GPE, L-GPE" in caplog.text
    with pytest.raises(InputError, match=r"^tokenizer: expected one of whitespace, penn, .*, for ner or .*, found 'a'"):
        system.predict(["new york"], tokenizer="a")
    with pytest.raises(InputError, match=r"^sentences: expected texts, which the tokenizer splits, found"):
        system.predict([["new", "york"]], tokenizer="penn")
    # In published files, comments and indices are not tokens, and predicted tags go into the column of tags.
    (tmp_path / "universal").write_text("# text = anna sat\n1\tanna\tO\t-\n2\tsat\tO\t-\n")
    command = ["task", "ner", "predict", "--workdir", str(workdir), "--input", str(tmp_path / "universal")]
    (line,) = run(capsys, *command[1:])
    assert line["tokens"] == ["anna", "sat"]
    assert main([*command, "--format", "conll"]) == 0
    tags = line["tags"]
    assert capsys.readouterr().out == f"# text = anna sat\n1\tanna\t{tags[0]}\t-\n2\tsat\t{tags[1]}\t-\n"
    (tmp_path / "text").write_text("anna didn't sit.\n")
    command[-1] = str(tmp_path / "text")
    assert main([*command, "--format", "conll"]) == 0
    words = [row.split("\t")[0] for row in capsys.readouterr().out.splitlines()]
    assert words == ["anna", "did", "n't", "sit", ".", ""]
    (tmp_path / "odd").write_text("anna\tO\n\tO\n")
    for options in (["evaluate", "--data"], ["predict", "--input"]):
        strict = ["task", "ner", options[0], "--workdir", str(workdir), options[1], str(tmp_path / "odd"), "--strict"]
        assert main(strict) == 1
        assert "line 2: an empty token; without --strict it is left out" in capsys.readouterr().err
    rows = [{"tokens": ["anna", "sat"], "ner_tags": [1, 0]}]
    (tmp_path / "rows").write_text("\n".join(map(json.dumps, rows)))
    options = ["--workdir", workdir, "--data", tmp_path / "rows", "--labels", "O,B-PER"]
    (evaluation,) = run(capsys, "ner", "evaluate", *options)
    assert evaluation["examples"] == 1


PARAGRAPH = "Anna (born in 1990) sat in\u00a0New York."
QUESTIONS = [
    {"question": question, "id": name, "answers": [{"text": text, "answer_start": PARAGRAPH.index(text)}]}
    for question, text, name in (("Where?", "New York", "q1"), ("When was she born?", "1990", "q2"))
]
FRAMES = """1 anna saw boris ||| B-A0 B-V B-A1
1 boris slept ||| B-A0 B-V
3 the cat that slept saw anna ||| B-A0 I-A0 B-R-A0 B-V O O
4 the cat that slept saw anna ||| B-A0 I-A0 I-A0 I-A0 B-V B-A1
"""


def test_the_list_has_a_line_for_each_system(capsys):
    assert main(["task"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(systems.SYSTEMS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "fit.epochs=0"], "--set fit.epochs: expected int >= 1, found 0"),
        (["--fraction", "2"], "--fraction: expected above 0, at most 1, found 2.0"),
    ],
)
def test_wrong_arguments_are_named_by_their_flags(data, tmp_path, capsys, options, message):
    common = ["--train", data, "--dev", data, "--workdir", tmp_path / "run"]
    assert main(["task", "ner", "train", *map(str, common), *options]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"elmo-tf: error: {message}"


def test_the_distinct_sentences_of_a_tasks_files_are_printed(data, tmp_path, capsys):
    def printed(task, path, *options) -> list[str]:
        assert main(["task", task, "text", "--data", str(path), *options]) == 0
        return capsys.readouterr().out.splitlines()

    expected = printed("ner", data)
    assert expected[:2] == ["anna sat in new york", "new york sleeps"]
    os.mkfifo(tmp_path / "pipe")
    content = pathlib.Path(data).read_bytes()
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True).start()
    assert printed("ner", tmp_path / "pipe") == expected
    (tmp_path / "pairs").write_text("neutral\ta man sleeps\the dreams\nentailment\ta man sleeps\ta man rests\n")
    assert printed("entailment", tmp_path / "pairs") == ["a man sleeps", "he dreams", "a man rests"]
    (tmp_path / "table.csv").write_text('stars,review\n5,"a ""fine""\nfilm"\n')
    options = ["--text-column", "review", "--label-column", "stars"]
    assert printed("sentiment", tmp_path / "table.csv", *options) == ['a " fine " film']
    options = ["--text-column", "stars", "review"]
    assert printed("entailment", tmp_path / "table.csv", *options) == ["5", 'a " fine " film']
    (tmp_path / "single").write_text("John NNP O\n")
    assert printed("ner", tmp_path / "single") == ["John NNP O"]
    assert printed("ner", tmp_path / "single", "--tag-column=-1") == ["John"]
    (tmp_path / "frames").write_text(FRAMES)
    assert printed("roles", tmp_path / "frames") == ["anna saw boris", "boris slept", "the cat that slept saw anna"]
    (tmp_path / "squad").write_text(json.dumps({"data": [{"paragraphs": [{"context": PARAGRAPH, "qas": QUESTIONS}]}]}))
    assert printed("answers", tmp_path / "squad")[1] == "Where ?"
