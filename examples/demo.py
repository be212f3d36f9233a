"""The whole workflow on text that comes with Python: `make demo`, three to four minutes on two quiet cores.

The documentation topics of the standard library -> records -> a biLM of preset tiny -> held-out perplexity before and
after training, and of a unigram model -> savedmodels/demo/1 -> the nearest uses of a word with several senses.
"""

import argparse
import json
import pathlib
import pydoc_data.topics
import re
import shutil
import subprocess
import sys
import time

from elmo_tf.records import record_folder
from elmo_tf.training.evaluation import unigram_perplexity
from elmo_tf.workdir import metrics_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "demo"
OUTPUT = ROOT / "savedmodels" / "demo"
COMMAND = pathlib.Path(sys.executable).with_name("elmo-tf")
SENSES = {
    "set": (
        "The attribute is set to the value of the expression .",
        "A set is an unordered collection of distinct hashable objects .",
    ),
}


def main() -> None:
    """Runs the demo."""
    arguments = parse_arguments()
    folder, output = arguments.folder, arguments.output
    for old in (folder, output):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True)
    started = time.monotonic()

    title("Text: the documentation topics of Python's standard library")
    text = folder / "topics.txt"
    sentences = list(tokenized_sentences())
    text.write_text("".join(f"{sentence}\n" for sentence in sentences), "utf-8")
    print(f"{len(sentences):,} sentences in {shown(text)}, for example: {sentences[0]}")

    title("Records: count the words, hold out 5 % of the sentences")
    data, heldout, workdir = folder / "records", folder / "heldout", folder / "tiny"
    options = ("--heldout", heldout, "--heldout-fraction", "0.05", "--min-count", "2")
    elmo("preprocess", "--input", text, "--output", data, *options)

    title(f"Training: {arguments.steps:,} steps of preset tiny")
    train = ("train", "--data", data, "--heldout", heldout, "--workdir", workdir, "--preset", "tiny")
    # Evaluates the untrained model, and writes the checkpoint that training resumes from.
    elmo(*train, "--steps", "0")
    elmo(*train, "--steps", str(arguments.steps))
    untrained = metrics_file.evaluations(workdir / metrics_file.FILE)[0].perplexity

    title("Held-out perplexity after training")
    trained = json.loads(elmo("evaluate", "--workdir", workdir, "--data", heldout).splitlines()[-1])["perplexity"]
    unigram = unigram_perplexity(record_folder.open_folder(data), record_folder.open_folder(heldout))
    print(f"\n  {'untrained':<24}{untrained:>10,.1f}")
    print(f"  {'unigram model':<24}{unigram:>10,.1f}")
    print(f"  {'biLM, preset tiny':<24}{trained:>10,.1f}")

    title("Export, verified in a process that imports only TensorFlow")
    elmo("export", "--workdir", workdir, "--output", output)
    use(output / "1")

    for word, queries in SENSES.items():
        for query in queries:
            title(f"The uses of '{word}' nearest to the one in: {query}")
            options = ("--model", output / "1", "--input", text, "--word", word, "--sentence", query)
            elmo("neighbors", *options, "--same-word", "--count", "5")
    print(f"\nDone in {time.monotonic() - started:.0f} s. The model: {shown(output / '1')}")
    print(f"The curves: {shown(COMMAND.with_name('tensorboard'))} --logdir {shown(workdir / 'logs')}")


def parse_arguments() -> argparse.Namespace:
    """Returns the command line's arguments; existing folders are an error, except for the default ones."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1000, help="training steps (1000)")
    replaced = "the default one is replaced, any other must not exist"
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help=f"work folder; {replaced}")
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT, help=f"folder of the model; {replaced}")
    arguments = parser.parse_args()
    for option, usual in (("folder", FOLDER), ("output", OUTPUT)):
        path = getattr(arguments, option)
        if path != usual and path.exists():
            parser.error(f"--{option}: {path} exists already; name a new folder")
    return arguments


def tokenized_sentences():
    """Yields the sentences of each topic, tokens separated by spaces, without grammar and code examples."""
    for topic in sorted(pydoc_data.topics.topics):
        for paragraph in re.split(r"\n\s*\n", pydoc_data.topics.topics[topic]):
            if re.search(r"::=|>>>|\*\*\*|===|---", paragraph) or paragraph.startswith("     "):
                continue
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z\"(])", " ".join(paragraph.split())):
                tokens = re.findall(r"\w+(?:[-'.]\w+)*|[^\w\s]", sentence)
                if len(tokens) > 2:
                    yield " ".join(tokens)


def elmo(*arguments) -> str:
    """Runs a command of elmo-tf as a user would type it, prints its stdout and returns it."""
    words = [shown(word) if isinstance(word, pathlib.Path) else word for word in arguments]
    print("$ elmo-tf", " ".join(f'"{word}"' if " " in word else word for word in words), flush=True)
    done = subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    print(done.stdout, end="", flush=True)
    return done.stdout


def use(savedmodel: pathlib.Path) -> None:
    """Loads the model as any TensorFlow program would, and prints the code."""
    code = (
        "import tensorflow as tf\n"
        f"elmo = tf.saved_model.load({shown(savedmodel)!r})\n"
        'vectors = elmo.signatures["default"](strings=tf.constant(["The value is set .", "A set of values ."]))\n'
        'print("elmo", vectors["elmo"].shape, "- layers", vectors["layers"].shape)\n'
    )
    print("".join(f"  {line}\n" for line in code.splitlines()), end="", flush=True)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL, check=True)


def title(text: str) -> None:
    """Prints the heading of a step."""
    print(f"\n== {text}", flush=True)


def shown(path: pathlib.Path) -> str:
    """Returns a path as a user in the project's folder would write it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; the demo starts from the beginning each time")
