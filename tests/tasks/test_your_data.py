"""The commands on the page of formats read its lines as it says."""

import re

import pytest

from elmo_tf import cli
from elmo_tf.annotated import conllu, senses
from elmo_tf.annotated.reading_options import Reading
from elmo_tf.annotated.word_vectors import read_word_vectors
from elmo_tf.cli import tasks as task_commands
from elmo_tf.tasks import systems
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "your-data.md").read_text("utf-8")
BLOCKS = re.findall(r"^\*\*.+?\*\*\n\n```text\n(.*?)^```\n\n```sh\nelmo-tf (.*?)\n```", PAGE, re.DOTALL | re.MULTILINE)
# By the file's name: how many examples and tokens it has, and its labels. Counted by hand.
EXPECTED = {
    "train.conll": (1, 3, {"B-ORG", "O", "B-LOC"}),
    "chunks.conll": (1, 3, {"B-NP", "B-VP"}),
    "train.iob2": (1, 4, {"B-PER", "O", "B-LOC"}),
    "wikiann.txt": (1, 3, {"B-PER", "O"}),
    "bmes.txt": (1, 3, {"B-PER", "I-PER"}),
    "table.tsv": (1, 2, {"B-PER", "O"}),
    "rows.jsonl": (2, 4, {"B-PER", "O", "B-LOC", "I-LOC"}),
    "sentiment train.trees": (3, 8, {"1", "3", "4"}),
    "sentiment reviews.csv": (2, 15, {"5", "1"}),
    "sentiment train.tsv": (3, 10, {"good", "bad"}),
    "sentiment sst2.tsv": (2, 7, {"negative", "positive"}),
    "sentiment train.jsonl": (3, 10, {"0", "1"}),
    "entailment snli.jsonl": (2, 15, {"entailment", "neutral"}),
    "entailment train.jsonl": (3, 22, {"entailment", "neutral", "contradiction"}),
    "entailment qnli.tsv": (2, 14, {"entailment", "not_entailment"}),
    "entailment train.tsv": (3, 22, {"entails", "neutral"}),
    "answers train.json": (2, 16, {"York", None}),
    "answers train.jsonl": (3, 28, {"York", None, "小明"}),
    "coreference train.conll": (1, 4, {((0, 2), (3, 4)), ((3, 4),)}),
    "coreference train.jsonl": (3, 9, {((0, 1), (2, 3))}),
    "coreference train.conllu": (1, 3, {((0, 1), (2, 3))}),
}


def labels_of(example) -> set:
    """The labels of an example, whatever its class."""
    if hasattr(example, "clusters"):
        return {tuple(cluster) for cluster in example.clusters}
    if hasattr(example, "answers"):
        return {answer.text for answer in example.answers} or {None}
    return set(getattr(example, "labels", None) or [example.label])


TASKS = [(text, command) for text, command in BLOCKS if command.startswith("task ") and "--glove" not in command]


@pytest.mark.parametrize(("text", "command"), TASKS, ids=[command.split(" --dev")[0] for _, command in TASKS])
def test_the_lines_of_each_format_are_read_by_their_command(tmp_path, text, command):
    arguments = cli._parser().parse_args(command.split())
    path = tmp_path / arguments.train
    path.write_text(text, "utf-8")
    kind = systems.system_class(arguments.task)
    system = kind(kind.recipes["small"], reading=Reading(strict=True, **task_commands._reading(arguments)))
    examples = system.examples(system.read(path), training=False)
    tokens = sum(len(tokens) for example in examples for tokens in system.texts(example))
    counted = len(examples), tokens, set().union(*map(labels_of, examples))
    name = arguments.train if arguments.task == "ner" else f"{arguments.task} {arguments.train}"
    assert counted == EXPECTED.pop(name)
    assert len(system.read_unlabeled(path)) >= len(examples)


def test_the_other_formats_are_read(tmp_path):
    texts = {command.split(" --output")[0]: text for text, command in BLOCKS if command.startswith("probe")}
    (vectors,) = [text for text, command in BLOCKS if "--glove" in command]
    pos, plus, trees, semcor, framework = texts.values()
    names = ("a.conllu", "a.conllup", "a.mrg", "semcor.tsv", "a.data.xml", "vectors")
    for name, text in zip(names, (pos, plus, trees, semcor, framework, vectors), strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "a.gold.key.txt").write_text("d0.s0.t0 art%1:09:00:: art%1:06:00::\n")
    assert conllu.read_labels(tmp_path / "a.conllu")[0].labels == ["PROPN", "VERB"]
    assert conllu.read_labels(tmp_path / "a.conllup", "VerbForm")[0].labels == ["", "Fin"]
    assert conllu.read_labels(tmp_path / "a.mrg")[0].labels == ["NNP", "VBD"]
    assert [len(sentence.uses) for sentence in senses.read_senses(tmp_path / "semcor.tsv")] == [2]
    assert senses.read_senses(tmp_path / "a.data.xml")[0].tokens == ["The", "art"]
    assert read_word_vectors(tmp_path / "vectors", {"the", "cat"})[1].shape == (2, 3)
