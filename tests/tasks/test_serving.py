"""Exported systems in a process that knows TensorFlow alone, against `predict`."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import tasks
from elmo_tf.annotated import squad
from elmo_tf.cli import main
from elmo_tf.errors import InputError
from elmo_tf.model.sequence_pooling import SequencePooling
from elmo_tf.savedmodel import verification
from elmo_tf.tasks import serving, systems
from elmo_tf.tasks.layers.token_layers import WordEmbedding
from elmo_tf.tasks.trained import Trained
from tests.helpers import MICRO, slow
from tests.tasks.small import built, recipe_of

PROGRAM = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
for signature, inputs, shape in json.load(sys.stdin):
    kinds = {name: "int32" if name == "predicate" else "string" for name in inputs}
    tensors = {name: tf.constant(value, kinds[name], shape) for name, value in inputs.items()}
    outputs = model.signatures[signature](**tensors)
    rows = {name: value.numpy().tolist() if shape is None else value.shape.as_list() for name, value in outputs.items()}
    print(json.dumps(rows, default=bytes.decode))
assert "elmo_tf" not in sys.modules
"""
RANDOM = np.random.default_rng(0)
WORDS = ["Anna", "sat", "in", "New", "York", "a", "film", "caf\u00e9", "X-1", "."]
SENTENCES = [RANDOM.choice(WORDS, size).tolist() for size in RANDOM.integers(1, 9, 24)]
PREDICATES = [int(RANDOM.integers(len(tokens))) for tokens in SENTENCES]
PAIRS = list(zip(SENTENCES, SENTENCES[::-1], strict=True))
QUESTIONS = [(" ".join(first), f"Who {' '.join(second)}?") for first, second in PAIRS]


def padded(sentences: list[list[str]]) -> list[list[str]]:
    longest = max(map(len, sentences))
    return [[*tokens, *[""] * (longest - len(tokens))] for tokens in sentences]


TEXT = "Anna didn't sit in\u00a0東京."
STRINGS = list(map(" ".join, SENTENCES))
TEXTS = [squad.question_of(squad.paragraph_of(paragraph), question) for paragraph, question in QUESTIONS]
# For each system what `predict` takes, and the inputs of the signatures.
ASKED = {
    "ner": (SENTENCES, {"tokens": {"tokens": padded(SENTENCES)}, "default": {"strings": STRINGS}}),
    "entailment": (
        PAIRS,
        {
            "tokens": {"premise": padded(SENTENCES), "hypothesis": padded(SENTENCES[::-1])},
            "serving_default": {"premise": STRINGS, "hypothesis": STRINGS[::-1]},
        },
    ),
    "roles": (
        list(zip(SENTENCES, PREDICATES, strict=True)),
        {
            "tokens": {"tokens": padded(SENTENCES), "predicate": PREDICATES},
            "default": {"strings": STRINGS, "predicate": PREDICATES},
        },
    ),
}
PARTS = {"paragraph": [text.paragraph.tokens for text in TEXTS], "question": [text.tokens for text in TEXTS]}
ASKED["answers"] = QUESTIONS, {"tokens": {name: padded(tokens) for name, tokens in PARTS.items()}}
ASKED["sentiment"] = ASKED["ner"]


def as_predicted(task: str, outputs: dict[str, list]) -> list[dict]:
    """What a signature returned, a row for each example, as `predict` writes it."""
    rows = [dict(zip(outputs, values, strict=True)) for values in zip(*outputs.values(), strict=True)]
    if task in ("ner", "roles"):
        return [
            {
                "tags": [tag for tag in row["tags"] if tag],
                "spans": [
                    {"start": start, "end": end, "kind": kind}
                    for (start, end), kind in zip(row["spans"], row["kinds"], strict=True)
                    if kind
                ],
            }
            for row in rows
        ]
    if task == "answers":
        spans = [(question, row["first"], row["last"]) for question, row in zip(TEXTS, rows, strict=True)]
        answers = [question.paragraph.text_of(first, last).text for question, first, last in spans]
        return [{"answer": text, "probability": row["probability"]} for text, row in zip(answers, rows, strict=True)]
    return [
        {"label": row["label"], "probabilities": dict(zip(row["classes"], row["probabilities"], strict=True))}
        for row in rows
    ]


def served(version: pathlib.Path, requests: list[tuple[str, dict, list[int] | None]]) -> list[dict[str, list]]:
    """What the signatures of a SavedModel return in a process that does not know this package.

    A request without values has their shape; of its outputs, the shapes are returned.
    """
    command = [sys.executable, "-P", "-c", PROGRAM, version]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=False, cwd=os.sep)
    assert done.returncode == 0, done.stderr
    assert "gradient" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# `import` exports a published system. What the other systems export is verified with `make test-all`.
@pytest.mark.parametrize("source", ["english-ner", *map(slow, ASKED)])
def test_tensorflow_alone_answers_as_predict_does(source, tmp_path, monkeypatch, capsys, traced_once):
    if source == "english-ner":
        # Saves time: `served` is a fresh process too.
        monkeypatch.setattr(verification, "problems_in_fresh_process", lambda *_: [])
        trained = tasks.load(source)
        assert main(["import", source, "--output", str(tmp_path / "model")]) == 0
        version = pathlib.Path(capsys.readouterr().out.strip())
    else:
        trained = Trained(*built(source, MICRO, recipe_of(source, "elmo.place=both"))[:2])
        version = trained.export(tmp_path / "model")
    assert version == tmp_path / "model" / "1"
    task = trained.system.name
    items, asked = ASKED[task]
    requests = [[*request, None] for request in asked.items()]
    for sentences in ([[""]], [[]]):
        inputs = {name: sentences if name != "predicate" else [0] for name in asked["tokens"]}
        requests.append(["tokens", inputs, None])
    if "default" in asked:
        inputs = {name: [""] if name != "predicate" else [0] for name in asked["default"]}
        requests.append(["default", inputs, None])
    shapes = [[0, 0], [2, 0], [0, 3]]
    if task == "ner":
        requests += [["tokens", {"tokens": []}, shape] for shape in shapes]
        requests += [["default", {"strings": []}, [0]], ["default", {"strings": [TEXT]}, None]]
    responses = served(version, requests)
    assert len(responses) == len(requests)
    if task == "ner":
        *responses, first, second, third, no_sentence, text = responses
        assert [response["tags"] for response in (first, second, third)] == shapes
        assert no_sentence["tags"][0] == 0
        # Running text is split as the command splits it.
        assert text["tokens"] == [["Anna", "did", "n't", "sit", "in", "東", "京", "."]]
        assert trained.system.reading.split(TEXT) == ["Anna", "did", "n't", "sit", "in", "東", "京", "."]
    expected = trained.predict(items)
    for response in responses[: len(asked)]:
        for row, wanted in zip(as_predicted(task, response), expected, strict=True):
            for name, value in row.items():
                assert value == (pytest.approx(wanted[name], abs=1e-4) if "prob" in name else wanted[name])
    # The exported tokens are those that sentences were split into.
    assert all(response["tokens"] == padded(SENTENCES) for response in responses[: len(asked)] if "tokens" in response)


def test_a_predicate_outside_its_sentence_is_refused():
    system, network, _ = built("roles")
    root, tokens = serving._root(system, network), tf.constant([["a", "b", "c"], ["a", "b", ""]])
    for predicate in ([-1, 0], [0, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="predicate: expected the index of a token "):
            root.tokens(tokens=tokens, predicate=tf.constant(predicate))


def test_inputs_of_another_shape_are_named(tmp_path):
    system = systems.system_class("entailment")(recipe_of("entailment"), ["yes", "no"])
    inputs = {name: keras.Input((None,), dtype="string", name=name) for name in system.token_inputs}
    pooled = [SequencePooling(["mean"])(WordEmbedding(["a"], 2)(tokens)) for tokens in inputs.values()]
    root = serving._root(system, keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()(pooled))))
    tf.saved_model.save(root, str(tmp_path), {name: getattr(root, name) for name in ("default", "tokens")})
    pairs = tf.saved_model.load(str(tmp_path)).signatures
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"hypothesis: expected shape \[batch\], found \[\]"):
        pairs["default"](premise=tf.constant(["a"]), hypothesis=tf.constant("a"))
    message = r"hypothesis, premise: expected the same number of rows in each, found \[1 2\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        pairs["tokens"](premise=tf.constant([["a"], ["b"]]), hypothesis=tf.constant([["a"]]))


def test_what_tensorflow_alone_cannot_run_is_refused_and_nothing_is_left(tmp_path):
    message = "TensorFlow alone cannot run this system: its spans are chosen in Python"
    with pytest.raises(InputError, match=f"^coreference: {message}$"):
        Trained(*built("coreference")[:2]).export(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
