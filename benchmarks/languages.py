"""Other languages: what `tiny` learns from five million words of novels in a given CPU time, beside fastText.

    python benchmarks/languages.py --data DATA --output OUT --cpu-hours 0.25 --only hungarian german

--data is a folder with `novels_LANGUAGE` and `ud_LANGUAGE`, for two languages also `ner_LANGUAGE`, see DATA.md. For
each language, `tiny` and fastText's subword vectors train on one text for the same CPU time, as in `evening.py`, whose
environment this needs. Then come the held-out perplexity, the size of the export, and a linear probe of parts of speech
and of one feature, for all words and for those that do not occur in the text. `untrained` is `tiny` with its initial
weights. A word of the treebank is split as the model splits text; its vector is the mean of its pieces'. Last comes the
system for named entities, recipe `small`, without ELMo and with `tiny`. Prints three tables and a line of JSON. Every
result is kept in --output; an interrupted run resumes.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import encoder_scores, measuring, probes
from benchmarks.evening_budget import Budget
from benchmarks.evening_systems import Elmo, FastText
from elmo_tf.annotated import columns
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.conllu import read_conllu
from elmo_tf.corpus import corpora, sentences
from elmo_tf.files import stores
from elmo_tf.probes import pos
from elmo_tf.text import tokenizers

# The feature that is probed beside parts of speech; Chinese has none.
FEATURES = {
    "hungarian": "Case",
    "german": "Case",
    "chinese": None,
    "ukrainian": "Case",
    "slovenian": "Case",
    "polish": "Case",
    "french": "Number",
}
ENTITIES = ("hungarian", "chinese")  # the languages with a corpus of named entities
SYSTEMS = ("untrained", "fasttext", "tiny")
_TOKENIZER = "unicode"
_SPLIT = ("--tokenizer", _TOKENIZER, "--line", sentences.PARAGRAPH)
_FEW = 1000  # sentences
_STREAMS = "32"


def elmo_tf_command(*arguments: str | os.PathLike) -> str:
    """Runs a command and returns the last line that it prints."""
    command = [sys.executable, "-m", "elmo_tf.cli", *map(str, arguments)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return printed.strip().rpartition("\n")[2]


class Run(NamedTuple):
    """One language with a budget."""

    language: str
    data: pathlib.Path
    folder: pathlib.Path
    cpu_hours: float

    @property
    def novels(self) -> pathlib.Path:
        """The folder of the text."""
        return self.data / f"novels_{self.language}"

    @property
    def text(self) -> pathlib.Path:
        """The sentences of the text, as the model splits them."""
        return self.folder / "text.txt"

    @property
    def records(self) -> pathlib.Path:
        """The records to train on."""
        return self.folder / "tiny" / "records"


def split_text(run: Run) -> dict:
    """Writes the sentences of the text, one per line, for fastText and for the words that occur."""
    (file,) = corpora.match([str(run.novels / "train.txt.xz")])
    task = corpora.Task(0, (0,), (corpora.Slice(file),))
    batches = sentences.Reader(sentences.Settings(_TOKENIZER, sentences.PARAGRAPH)).read(task)
    split = [b" ".join(words) + b"\n" for batch in batches for words in batch.sentences]
    stores.write(run.text, b"".join(split))
    return {"sentences": len(split), "tokens": sum(map(bytes.count, split, [b" "] * len(split))) + len(split)}


def train_tiny(run: Run) -> dict:
    """Preprocesses and trains until the budget is spent."""
    folder = run.folder / "tiny"
    folder.mkdir(exist_ok=True)
    budget = Budget(folder, run.cpu_hours * 3600)
    if not run.records.exists():
        text = run.novels / "train.txt.xz"
        elmo_tf_command("preprocess", "--input", text, *_SPLIT, "--min-count", "3", "--output", run.records)
        budget.save()
    passes = Elmo("tiny").train(run.text, folder, budget)
    return {"cpu_hours": budget.spent / 3600, "passes": passes}


def train_fasttext(run: Run) -> dict:
    """Trains until the budget is spent."""
    folder = run.folder / "fasttext"
    folder.mkdir(exist_ok=True)
    budget = Budget(folder, run.cpu_hours * 3600)
    passes = FastText().train(run.text, folder, budget)
    return {"cpu_hours": budget.spent / 3600, "passes": passes}


def evaluate(run: Run) -> dict:
    """Returns the figures of `elmo-tf evaluate`, and the bytes of the export."""
    workdir, heldout = run.folder / "tiny" / "workdir", run.folder / "heldout"
    if not heldout.exists():
        known = ("--vocab", run.records / "vocab.txt")
        elmo_tf_command("preprocess", "--input", run.novels / "heldout.txt.xz", *_SPLIT, *known, "--output", heldout)
    options = ("--workdir", workdir, "--data", heldout, "--unigram", run.records, "--batch-size", _STREAMS)
    figures = json.loads(elmo_tf_command("evaluate", *options))
    exported = elmo_tf.export(workdir, run.folder / "savedmodel")
    size = sum(path.stat().st_size for path in exported.rglob("*") if path.is_file())
    words = len((run.records / "vocab.txt").read_bytes().splitlines())
    return figures | {"vocabulary": words, "savedmodel": str(exported), "bytes": size}


def encoder_of(system: str, run: Run) -> encoder_scores.Encode:
    """Returns an encoder; the last of its vectors, ELMo's average of layers, are those to probe."""
    if system == "fasttext":
        return FastText().encoder(run.folder / "fasttext")[0]
    workdir = run.folder / system / "workdir"
    if system == "untrained" and not workdir.exists():
        config = elmo_tf.override(elmo_tf.preset("tiny"), ["train.learning_rate=1e-30", "train.look_steps=0"])
        elmo_tf.train(config, run.records, workdir, steps=1)
    return encoder_scores.elmo(str(workdir))[0]


def pieces_of(tagged: list[Tagged]) -> tuple[list[list[str]], list[list[tuple[int, int]]]]:
    """Returns the tokens into which the words of each sentence are split, and the span of each word in them."""
    words = [token for sentence in tagged for token in sentence.tokens]
    split = [
        [piece.decode() for piece in pieces] for pieces in tokenizers.split(list(map(str.encode, words)), _TOKENIZER)
    ]
    rest = iter([pieces or [word] for word, pieces in zip(words, split, strict=True)])
    tokens, spans = [], []
    for sentence in tagged:
        of_words = [next(rest) for _ in sentence.tokens]
        ends = np.cumsum([0, *map(len, of_words)]).tolist()
        tokens.append([piece for pieces in of_words for piece in pieces])
        spans.append(list(itertools.pairwise(ends)))
    return tokens, spans


def scores(system: str, run: Run) -> dict:
    """Returns the probe's accuracies by label and by the number of training sentences, and the encoder's speed."""
    encode, treebank = encoder_of(system, run), run.data / f"ud_{run.language}"
    files = [treebank / "train.conllu.xz", treebank / "test.conllu"]
    parts = [pieces_of(read_conllu(path)) for path in files]
    seen = set(run.text.read_text("utf-8").split())
    vectors = [encoder_scores.spans_of(encode, *parts[0])]
    _, cpu_seconds = measuring.timed(lambda: vectors.append(encoder_scores.spans_of(encode, *parts[1])))
    features = [part[:, -1].astype(np.float32) for part in vectors]
    new = np.array(
        [not seen.issuperset(tokens[a:b]) for tokens, spans in zip(*parts[1], strict=True) for a, b in spans]
    )
    results: dict[str, dict] = {}
    for label in filter(None, ("upos", FEATURES[run.language])):
        train, test = (read_conllu(path, label) for path in files)
        few = set(encoder_scores.sampled(list(range(len(train))), _FEW))
        choices = {len(train): set(range(len(train))), len(few): few}
        results[label] = {
            str(number): accuracies(features, train, test, chosen, new) for number, chosen in choices.items()
        }
    return {"labels": results, "sentences_per_cpu_second": len(parts[1][0]) / cpu_seconds}


def accuracies(
    features: list[np.ndarray], train: list[Tagged], test: list[Tagged], chosen: set[int], new: np.ndarray
) -> dict:
    """Returns the accuracies of a classifier and of each word's most frequent label, and of both on new words.

    Args:
        features: the vectors of all words of both parts, float32 `(words, dim)`.
        train: the sentences of which the classifier gets those with a number in `chosen`.
        test: the sentences to predict; a word whose label is "" has none.
        chosen: numbers of training sentences.
        new: whether each word of `test` does not occur in the text, `(words,)`.
    """
    inside = [number in chosen for number, sentence in enumerate(train) for _ in sentence.tokens]
    words = [[word for sentence in part for word in sentence.tokens] for part in (train, test)]
    tags = [[tag for sentence in part for tag in sentence.labels or []] for part in (train, test)]
    use = [np.array([bool(tag) for tag in tags[0]]) & np.array(inside), np.array([bool(tag) for tag in tags[1]])]
    gold = [np.array(labels)[rows] for labels, rows in zip(tags, use, strict=True)]
    predicted = pos.classify(features[0][use[0]], features[1][use[1]], gold[0])
    frequent = most_frequent(np.array(words[0])[use[0]], gold[0], np.array(words[1])[use[1]])
    unseen = new[use[1]]
    figures: dict = {"train_words": len(gold[0]), "words": len(unseen), "new_words": int(unseen.sum())}
    for name, labels in (("accuracy", predicted), ("most_frequent", frequent)):
        right = labels == gold[1]
        figures |= {name: float(right.mean()), f"{name}_new": float(right[unseen].mean()) if unseen.any() else None}
    return figures


def entities(system: str, run: Run) -> dict:
    """Returns the result of `elmo-tf task ner`, without ELMo or with `tiny`; tokens are the words' pieces."""
    corpus, folder = run.data / f"ner_{run.language}", run.folder / "entities"
    folder.mkdir(exist_ok=True)
    options: list[str | os.PathLike] = ["--workdir", folder / system, "--set", "recipe=small"]
    for part in ("train", "dev", "test"):
        options += [f"--{part}", folder / f"{part}.conll"]
        stores.write(folder / f"{part}.conll", columns_of_pieces(columns.read_columns(corpus / f"{part}.conll.xz")))
    if system == "tiny":
        options += ["--model", run.folder / "tiny" / "workdir"]
    return json.loads(elmo_tf_command("task", "ner", "train", *options))


def columns_of_pieces(tagged: list[Tagged]) -> bytes:
    """Returns a line with a piece of a word and its tag for each piece; a word's later pieces are inside its entity."""
    lines = []
    for sentence, tokens, spans in zip(tagged, *pieces_of(tagged), strict=True):
        for label, (start, end) in zip(sentence.labels or [], spans, strict=True):
            tags = [label, *[label.replace("B-", "I-")] * (end - start - 1)]
            lines += [f"{piece}\t{tag}" for piece, tag in zip(tokens[start:end], tags, strict=True)]
        lines.append("")
    return "\n".join(lines).encode()


def most_frequent(words: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Returns each test word's most frequent label among `words`; a word that is not there gets the most frequent."""
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for word, label in zip(words, labels, strict=True):
        counts[word][label] += 1
    default = collections.Counter(labels).most_common(1)[0][0]
    return np.array([counts[word].most_common(1)[0][0] if word in counts else default for word in test])


STAGES: dict[str, Callable[[Run], dict]] = {
    "text": split_text,
    "tiny": train_tiny,
    "evaluate": evaluate,
    "scores_tiny": lambda run: scores("tiny", run),
    "fasttext": train_fasttext,
    "scores_fasttext": lambda run: scores("fasttext", run),
    "scores_untrained": lambda run: scores("untrained", run),
    "entities_without": lambda run: entities("without", run),
    "entities_tiny": lambda run: entities("tiny", run),
}


def tables(results: dict[str, dict]) -> str:
    """Returns a line for each language's model, for each of its probes, and for its named entities, if measured."""
    models = [("language", "tokens", "passes", "vocabulary", "unknown", "perplexity", "unigram", "sentences/s", "MB")]
    probed = [("language", "label", "sentences", "words", "most frequent", *SYSTEMS)]
    tagged = [("language", "sentences", "F1 without", "F1 with tiny")]
    for language, stages in results.items():
        figures, of_tiny = stages["evaluate"], stages["scores_tiny"]
        models.append(
            (
                language,
                f"{stages['text']['tokens']:,}",
                f"{stages['tiny']['passes']:.2f}",
                f"{figures['vocabulary']:,}",
                f"{figures['unknown_rate']:.1%}",
                f"{figures['perplexity']:.1f}",
                f"{figures['unigram_perplexity']:.1f}",
                f"{of_tiny['sentences_per_cpu_second']:.0f}",
                f"{figures['bytes'] / 1e6:.1f}",
            )
        )
        for label, by_sentences in of_tiny["labels"].items():
            for number in by_sentences:
                rows = [stages[f"scores_{system}"]["labels"][label][number] for system in SYSTEMS]
                for suffix, count in (("", "words"), ("_new", "new_words")):
                    shares = [rows[0][f"most_frequent{suffix}"], *(row[f"accuracy{suffix}"] for row in rows)]
                    cells = ["-" if share is None else f"{100 * share:.1f}" for share in shares]
                    kind = f"{rows[0][count]:,}{' new' if suffix else ''}"
                    probed.append((language, label, number, kind, *cells))
        if language in ENTITIES:
            without, with_tiny = stages["entities_without"], stages["entities_tiny"]
            f1 = [f"{result['score']:.1f}" for result in (without, with_tiny)]
            tagged.append((language, f"{without['train_examples']:,}", *f1))
    return "\n\n".join(measuring.aligned(lines) for lines in (models, probed, tagged) if len(lines) > 1)


def languages(arguments: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    """Yields each language with the results of its stages, each of which runs in a process of its own."""
    program = [os.path.relpath(path) for path in (sys.executable, __file__)]  # the same in another copy of this folder
    options = [
        "--data",
        str(arguments.data),
        "--output",
        str(arguments.output),
        "--cpu-hours",
        f"{arguments.cpu_hours:g}",
    ]
    for language in arguments.only:
        folder = arguments.output / f"{arguments.cpu_hours:g}" / language
        folder.mkdir(parents=True, exist_ok=True)
        command = [*program, *options, "--only", language, "--stage"]
        stages = [name for name in STAGES if language in ENTITIES or "entities" not in name]
        yield language, {name: probes.result(name, [*command, name], folder, resumes=True) for name in stages}


def main(argv: list[str] | None = None) -> None:
    """Runs what has no result yet, and prints all results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for models and results")
    parser.add_argument("--cpu-hours", type=float, required=True, help="of each system's training")
    help_text = ", ".join(FEATURES)
    parser.add_argument("--only", nargs="+", choices=FEATURES, default=list(FEATURES), metavar="LANG", help=help_text)
    parser.add_argument("--stage", choices=STAGES, help="run one stage of one language in this process, and print JSON")
    arguments = parser.parse_args(argv)
    if arguments.stage:
        (language,) = arguments.only
        folder = arguments.output / f"{arguments.cpu_hours:g}" / language
        print(json.dumps(STAGES[arguments.stage](Run(language, arguments.data, folder, arguments.cpu_hours))))
        return
    results = {}
    for language, stages in languages(arguments):
        results[language] = stages
        print(f"\n{arguments.cpu_hours:g} CPU hours\n{tables(results)}", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
