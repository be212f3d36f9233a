"""The command `task`: the systems of the paper."""

import argparse
import logging
from typing import Any

from elmo_tf import config as config_lib
from elmo_tf.annotated import reading_options
from elmo_tf.cli.arguments import add_command, index_or_name, positive, text_file
from elmo_tf.display import table, with_count
from elmo_tf.files import json_file
from elmo_tf.files.pipes import copied_if_pipe
from elmo_tf.tasks import systems
from elmo_tf.text import tokenizers

_log = logging.getLogger("elmo_tf")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the command of this file."""
    help_text = "train, evaluate, use and export the paper's systems, with and without ELMo; without a name, list them"
    task = add_command(commands, "task", _list, help_text, needs_tensorflow=False)
    names = task.add_subparsers(title="tasks", metavar="NAME")
    for name, about in systems.SYSTEMS.items():
        parser = names.add_parser(name, help=about, description=about, allow_abbrev=False)
        actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
        train = _add_train(actions)
        help_text = "print the scores on a labeled file, in total and of each type or class; the last line is JSON"
        evaluate = add_command(actions, "evaluate", _evaluate, help_text, on_gpu=True)
        evaluate.add_argument("--data", required=True, metavar="FILE", help="in a format of the task")
        if name in ("sentiment", "entailment"):
            help_text = "add the confusion matrix: how often each class was taken for each other"
            evaluate.add_argument("--confusion", action="store_true", help=help_text)
        predict = add_command(actions, "predict", _predict, "print a line of JSON for each sentence", on_gpu=True)
        help_text = "running text, a sentence per line, or a format of the task; - for standard input"
        predict.add_argument("--input", dest="path", required=True, type=text_file, metavar="FILE", help=help_text)
        if name in systems.RAW_TEXT:
            help_text = "read lines of running text, split in this way (default: by the system's own tokenizer)"
            predict.add_argument("--tokenizer", choices=tokenizers.TOKENIZERS, help=help_text)
        if name == "ner":
            help_text = "a line of JSON for each sentence (default), or the input's lines with the predicted tags"
            predict.add_argument("--format", choices=("json", "conll"), default="json", help=help_text)
        text = add_command(actions, "text", _text, "print the sentences of a file, for `preprocess` and `finetune`")
        text.add_argument("--data", required=True, metavar="FILE", help="in a format of the task")
        for parser in (train, evaluate, predict, text):
            _add_reading(parser, name)
        help_text = "write a verified SavedModel that TensorFlow alone can load, and print its folder"
        export = add_command(actions, "export", _export, help_text)
        export.add_argument("--output", required=True, metavar="DIR", help="savedmodels/NAME; a new version is added")
        train.add_argument("--workdir", required=True, metavar="DIR", help="created if it does not exist")
        help_text = "a workdir of `train`, or the name of a published system: english-ner"
        export.add_argument(
            "--model", "--workdir", dest="workdir", required=True, nargs=1, metavar="SOURCE", help=help_text
        )
        several = {"action": "extend", "nargs": "+", "metavar": "SOURCE"}
        help_text += "; the probabilities of several are averaged"
        for action in (evaluate, predict):
            action.add_argument("--model", "--workdir", dest="workdir", required=True, help=help_text, **several)
        for action in (train, evaluate, predict, text, export):
            action.set_defaults(task=name)


def _add_train(actions: argparse._SubParsersAction) -> argparse.ArgumentParser:
    help_text = "train a system; run again with the same --workdir to resume. The last line is JSON with the scores"
    parser = add_command(actions, "train", _train, help_text, on_gpu=True)
    add = parser.add_argument
    add("--train", required=True, metavar="FILE", help="labeled data, plain or compressed")
    add("--dev", required=True, metavar="FILE", help="labeled data for choosing the best epoch, plain or compressed")
    add("--test", metavar="FILE", help="labeled data, scored once at the end")
    help_text = "a SavedModel, a workdir or a model's name; without it a baseline is trained"
    add("--model", dest="elmo", metavar="SOURCE", help=help_text)
    help_text = "word vectors as text, of one file or of several side by side; without it they are learned"
    add("--glove", action="extend", nargs="+", metavar="FILE", help=help_text)
    add("--fraction", type=float, default=1.0, metavar="F", help="fraction of the training data to use (default: 1)")
    add("--seeds", type=positive, default=1, metavar="N", help="number of runs, each in a folder (default: 1)")
    help_text = (
        "recipe=small (two cores, little data) instead of the paper's; or any other setting (an unknown key "
        "prints the nearest one, or all); may be repeated"
    )
    add("--set", action="append", default=[], dest="assignments", metavar="KEY=VALUE", help=help_text)
    return parser


def _add_reading(parser: argparse.ArgumentParser, task: str) -> None:
    """Adds the options for reading files; in other actions than `train`, their defaults are the values of training."""
    add = parser.add_argument
    if task == "ner":
        about = (
            "an index from 0, from the right if negative, or a name in the first line (default: detected from the file)"
        )
        add("--token-column", type=index_or_name, metavar="N", help=f"the column of tokens: {about}")
        add("--tag-column", type=index_or_name, metavar="N", help=f"the column of tags: {about}")
    if task in ("sentiment", "entailment"):
        texts, number = ("premise and hypothesis", 2) if task == "entailment" else ("the sentence", 1)
        about = "in the first line of a table or in JSON (default: as in published data sets)"
        add("--text-column", dest="text_columns", nargs=number, metavar="NAME", help=f"the name of {texts} {about}")
        add("--label-column", metavar="NAME", help=f"the name of the label {about}")
    if task in ("ner", "sentiment", "entailment"):
        help_text = "names of labels that files have as numbers from 0: a,b,c, or a file with one per line"
        add("--labels", metavar="NAMES", help=help_text)
    add(
        "--strict", action="store_true", default=None, help="refuse odd lines (default: leave them out, with a warning)"
    )


def _reading(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the fields of `Reading` that were given."""
    names = ("token_column", "tag_column", "text_columns", "label_column", "labels", "strict")
    given = {name: value for name in names if (value := getattr(arguments, name, None)) is not None}
    if "text_columns" in given:
        given["text_columns"] = tuple(given["text_columns"])
    if getattr(arguments, "format", "json") == "conll":
        given["prefers_columns"] = True
    if "labels" in given:
        given["labels"] = reading_options.label_names(given["labels"])
    return given


def _list(_: argparse.Namespace) -> None:
    for name, about in systems.SYSTEMS.items():
        print(f"{name:14}{about}")


def _train(arguments: argparse.Namespace) -> None:
    from elmo_tf.tasks import runs

    recipe_class = type(systems.system_class(arguments.task).paper_recipe())
    arguments.parser.set_defaults(settings=["recipe", *config_lib.keys(recipe_class)])
    names = ("task", "train", "dev", "workdir", "test", "elmo", "glove", "fraction", "seeds", "assignments")
    given = {name: getattr(arguments, name) for name in names}
    results = runs.train(**given, reading=reading_options.Reading(**_reading(arguments)))
    print(json_file.dumps({name: value for name, value in results.items() if name != "history"}))


def _evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tf.tasks import trained

    system = trained.load_together(arguments.workdir, arguments.task, **_reading(arguments))
    scores = system.evaluate(arguments.data, confusion=getattr(arguments, "confusion", False))
    for line in _score_lines(scores):
        _log.info("%s", line)
    print(json_file.dumps(scores))


def _score_lines(scores: dict[str, Any]) -> list[str]:
    """Returns the scores of `Trained.evaluate` as readable lines."""
    metric, lines = scores["metric"], []
    if by_label := scores.get("by_label"):
        names = ("precision", "recall", "f1")
        rows = [[label, *(f"{row[name]:6.2f}" for name in names), str(row["count"])] for label, row in by_label.items()]
        lines += table([["", *names, "count"], *rows])
    if confusion := scores.get("confusion"):
        rows = [[gold, *map(str, row.values())] for gold, row in confusion.items()]
        lines += ["", *table([["is \\ taken for", *confusion], *rows]), ""]
    lines.append(f"{metric} {scores['score']:.2f} of {with_count(scores['examples'], 'example')}")
    if frequent := scores.get("most_frequent"):
        lines.append(f"{metric} {frequent[metric]:.2f} with {frequent['answer']!r}, the most frequent answer, for all")
    return lines


def _text(arguments: argparse.Namespace) -> None:
    from elmo_tf.tasks.token_vectors import encoded

    kind = systems.system_class(arguments.task)
    system = kind(kind.paper_recipe(), reading=reading_options.Reading(**_reading(arguments)))
    with copied_if_pipe(arguments.data) as path:
        examples = system.read_unlabeled(path)
    sentences = (encoded(tokens) for example in examples for tokens in system.texts(example) if tokens)
    # Each distinct sentence once, its tokens joined by spaces, in order of first occurrence.
    for sentence in dict.fromkeys(b" ".join(tokens).decode() for tokens in sentences):
        print(sentence)


def _export(arguments: argparse.Namespace) -> None:
    from elmo_tf.tasks import trained

    print(trained.load_together(arguments.workdir, arguments.task).export(arguments.output))


def _predict(arguments: argparse.Namespace) -> None:
    from elmo_tf.corpus.sentences import read_lines
    from elmo_tf.tasks import trained

    system = trained.load_together(arguments.workdir, arguments.task, **_reading(arguments))
    tokenizer = getattr(arguments, "tokenizer", None)
    with copied_if_pipe(arguments.path) as path:
        is_text = tokenizer is not None or system.system.is_running_text(path)
        if is_text:
            answers = system.predict(read_lines(str(path), tokenizer or system.system.reading.tokenizer), tokenizer)
        else:
            answers = system.predict_examples(system.system.read_unlabeled(path))
        if getattr(arguments, "format", "json") == "conll":
            tagger: Any = system.system
            texts = tagger.as_conll(None if is_text else path, answers)
        else:
            texts = (json_file.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
        for text in texts:
            # UTF-8 cannot hold half of a surrogate pair, so its escape in JSON is printed.
            print(text.encode(errors="backslashreplace").decode(), end="")
