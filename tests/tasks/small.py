"""What the tests of systems share: a few examples of each task, and a network of each with random weights."""

import pathlib

import keras

from elmo_tf import config as config_lib
from elmo_tf.annotated import squad
from elmo_tf.annotated.classes import Classified
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.coref_documents import Document
from elmo_tf.annotated.frames import Frame
from elmo_tf.annotated.pairs import Pair
from elmo_tf.config import ModelConfig
from elmo_tf.tasks import systems, trained
from elmo_tf.tasks.recipe import Recipe, chosen
from elmo_tf.tasks.system import Example, System
from elmo_tf.tasks.token_vectors import TokenVectors, word_table


def asked(paragraph: str, question: str, answer: str) -> squad.Question:
    answers = (squad.Answer(answer, paragraph.index(answer)),)
    return squad.question_of(squad.paragraph_of(paragraph), question, answers=answers)


EXAMPLES: dict[str, list[Example]] = {
    "ner": [
        Tagged(["Anna", "sat", "in", "New", "York"], ["B-PER", "O", "O", "B-LOC", "I-LOC"]),
        Tagged(["Boris", "slept"], ["B-PER", "O"]),
        Tagged(["the", "cat", "and", "Anna", "Smith", "sat"], ["O", "O", "O", "B-PER", "I-PER", "O"]),
    ],
    "sentiment": [
        Classified(["a", "fine", "film"], "4"),
        Classified(["a", "poor", "film", "of", "a", "book"], "1"),
        Classified(["well"], "2"),
    ],
    "entailment": [
        Pair(["a", "man", "sleeps"], ["he", "is", "awake"], "contradiction"),
        Pair(["a", "man", "sleeps", "on", "a", "bench"], ["a", "man", "sleeps"], "entailment"),
        Pair(["rain"], ["sun"], "neutral"),
    ],
    "roles": [
        Frame(["the", "cat", "saw", "Anna", "sleep"], 2, ["B-A0", "I-A0", "B-V", "B-A1", "I-A1"]),
        Frame(["the", "cat", "saw", "Anna", "sleep"], 4, ["O", "O", "O", "B-A0", "B-V"]),
        Frame(["Boris", "slept"], 1, ["B-A0", "B-V"]),
    ],
    "coreference": [
        Document(
            "GUM_news_a",
            [["Anna", "Smith", "met", "Boris"], ["she", "saw", "him", "and", "the", "cat"], ["it", "sat"]],
            [[(0, 2), (4, 5)], [(3, 4), (6, 7)], [(8, 10), (10, 11)]],
            [["", "", "", ""], ["Anna"] * 6, ["Boris"] * 2],
        ),
        Document("bc/a", [["he", "saw", "his", "cat"]], [[(0, 1), (2, 3)]]),
        Document("", [["a", "cat", "sat"], ["the", "cat", "slept", "and", "it", "sat"]], [[(0, 2), (3, 5), (7, 8)]]),
    ],
    "answers": [
        asked("Anna sat in New York.", "Where did Anna sit?", "New York"),
        asked("Boris slept", "Who slept?", "Boris"),
        asked("The cat (born 1990) slept.", "When was it born?", "1990"),
    ],
}
# For all systems: small, and nothing random in training.
SMALL = [
    *("recipe=small", "words.dim=6", "words.min_count=1"),
    *("elmo.dropout_rate=0", "elmo.remember=false", "fit.learning_rate=0.01"),
]
OWN = {
    "ner": "network.units=8 network.upper_units=4 network.dropout_rate=0 spelling.filters=5",
    "sentiment": "network.units=8 network.hidden=[8] network.dropout_rate=0 network.encoded_dropout_rate=0 "
    "network.pooled_dropout_rate=0 network.hidden_dropout_rates=[0]",
    "entailment": "network.units=8 network.dropout_rate=0 network.penalty=0 elmo.penalty=0 fit.halve_after=0",
    "roles": "network.layers=2 network.units=8 network.predicate_dim=3 network.dropout_rate=0 elmo.penalty=0",
    # More spans than words, so that spans of several words are among them.
    "coreference": "network.units=8 network.hidden_units=8 network.feature_dim=4 network.max_width=3 network.ratio=1.5 "
    "network.dropout_rate=0 network.lexical_dropout_rate=0 spelling.filters=5",
    "answers": "network.units=6 network.baseline_units=6 network.dropout_rate=0 spelling.filters=5",
}


def recipe_of(task: str, *assignments: str) -> Recipe:
    return chosen(systems.system_class(task).recipes, [*SMALL, *OWN[task].split(), *assignments])


def built(
    task: str, elmo: ModelConfig | None = None, recipe: Recipe | None = None
) -> tuple[System, keras.Model, list[Example]]:
    """Returns a system, its network with weights that the seed decides, and its examples."""
    keras.utils.set_random_seed(0)
    system, examples = systems.system_class(task)(recipe or recipe_of(task)), EXAMPLES[task]
    system.labels = system.labels_of(examples)
    table = word_table(system.recipe, [tokens for example in examples for tokens in system.texts(example)], [])
    return system, system.network(TokenVectors(system.recipe, table, elmo)), examples


def write_untrained(folder: pathlib.Path, task: str) -> None:
    """Writes a workdir of a system with random weights, as training leaves it."""
    system, network, _ = built(task)
    folder.mkdir(parents=True)
    config = {"task": task, "recipe": config_lib.to_dict(system.recipe), "labels": system.labels}
    trained.write_json(folder / trained.CONFIG, config)
    trained.save_network(network, folder)
    trained.write_json(folder / trained.SCORES, {})
