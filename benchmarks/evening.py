"""What learns most from your text in an evening? Vectors of several systems from the same text and CPU time.

    python3 -m venv build/evening
    build/evening/bin/pip install -e '.[beam,tasks]' -r benchmarks/evening-requirements.txt
    build/evening/bin/python benchmarks/evening.py --data DIR --output DIR

--data is a folder with litbank_gutenberg (the text), ud_ewt, uner_ewt, semcor30 and blimp. Each system starts from
nothing, reads the text's sentences in the same random order, and trains in a process of its own until it has used the
CPU time. Then come:

- the linear probes of `encoders.py`: parts of speech, named entities, senses; each with the best of its vectors;
- BLiMP, if it gives probabilities to sentences: the share of pairs whose acceptable sentence is the likelier one.

Prints a table and a line of JSON. The results of each budget are kept in --output; an interrupted run resumes.
"""

import argparse
import itertools
import json
import lzma
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import encoder_scores, measuring, probes
from benchmarks.evening_budget import Budget
from benchmarks.evening_systems import Elmo, FastText, Spacy
from elmo_tf.files import stores
from elmo_tf.probes.blimp import read_minimal_pairs
from elmo_tf.text import penn

_SYSTEMS = {"tiny": lambda: Elmo("tiny"), "small": lambda: Elmo("small"), "fasttext": FastText, "spacy": Spacy}
_IN_TORCH = {"bert": "Bert", "flair": "Flair"}
NAMES = ("tiny", "small", "fasttext", "bert", "spacy", "flair")
_TASKS = {"pos": "part of speech", "entities": "named entities", "senses": "senses"}


def system(name: str):
    """Returns the system of that name."""
    if name in _SYSTEMS:
        return _SYSTEMS[name]()
    sys.modules["triton"] = None  # its LLVM and TensorFlow's end a process that loads both
    from benchmarks import evening_torch  # noqa: PLC0415 - PyTorch is only in the environment of this benchmark

    return getattr(evening_torch, _IN_TORCH[name])()


def folder_of(name: str, arguments: argparse.Namespace) -> pathlib.Path:
    """Returns the folder of a system with this budget."""
    return arguments.output / f"{arguments.cpu_hours:g}" / name


def train(name: str, arguments: argparse.Namespace) -> dict:
    """Trains a system until the budget is spent; returns the CPU hours and the passes over the text."""
    folder = folder_of(name, arguments)
    folder.mkdir(parents=True, exist_ok=True)
    text = arguments.output / "text.txt"
    if not text.exists():
        lines = lzma.decompress((arguments.data / "litbank_gutenberg/train.txt.xz").read_bytes()).splitlines()
        order = np.random.default_rng(0).permutation(len(lines))
        stores.write(text, b"".join(lines[number] + b"\n" for number in order))
    trained = system(name)
    budget = Budget(folder, arguments.cpu_hours * 3600)
    passes = trained.train(text, folder, budget)
    return {"cpu_hours": budget.spent / 3600, "passes": passes}


def scores(name: str, arguments: argparse.Namespace) -> dict:
    """Returns the probes' scores of each of a system's vectors."""
    encoder = system(name).encoder(folder_of(name, arguments))
    return encoder_scores.scores_of(*encoder, arguments.data, arguments.sentences)


def blimp(name: str, arguments: argparse.Namespace) -> dict:
    """Returns BLiMP's accuracy, the mean of its paradigms, or {} for a system without probabilities; a tie counts half.

    All paradigms have the same number of pairs.
    """
    trained = system(name)
    if not hasattr(trained, "log_probabilities"):
        return {}
    by_paradigm = itertools.groupby(
        read_minimal_pairs(arguments.data / "blimp/blimp-part.jsonl.xz"), lambda pair: pair.UID
    )
    pairs = [pair for _, paradigm in by_paradigm for pair in itertools.islice(paradigm, arguments.pairs)]
    sentences = [penn.split(text) for pair in pairs for text in (pair.sentence_good, pair.sentence_bad)]
    totals = np.array(trained.log_probabilities(folder_of(name, arguments), sentences))
    return {"accuracy": float(np.mean((np.sign(totals[::2] - totals[1::2]) + 1) / 2)), "pairs": len(pairs)}


_STAGES = {"train": train, "scores": scores, "blimp": blimp}


def table(results: dict[str, dict]) -> str:
    """Returns a line for each system, with the best of its vectors in each probe."""
    lines = [("system", *_TASKS.values(), "BLiMP", "passes", "CPU hours")]
    for name, result in results.items():
        layers = {layer: row for layer, row in result["scores"].items() if layer not in probes.TIMES}
        best = {task: max(layers, key=lambda layer, task=task: layers[layer][task]) for task in _TASKS}
        cells = [f"{100 * layers[layer][task]:.1f} ({layer})" for task, layer in best.items()]
        accuracy = result["blimp"].get("accuracy")
        used = [f"{result['train'][figure]:.2f}" for figure in ("passes", "cpu_hours")]
        lines.append((name, *cells, "-" if accuracy is None else f"{100 * accuracy:.1f}", *used))
    return measuring.aligned(lines)


def main(argv: list[str] | None = None) -> None:
    """Runs what has no result yet, and prints all results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for models and results")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--cpu-hours", type=float, default=4.0, help="of each system's training (4)")
    parser.add_argument("--sentences", type=int, default=6000, help="of each part of a probe's data, at most (6000)")
    parser.add_argument("--pairs", type=int, default=100, help="of each of BLiMP's paradigms (100)")
    parser.add_argument("--stage", choices=_STAGES, help="run one stage of one system in this process, and print JSON")
    arguments = parser.parse_args(argv)
    if arguments.stage:
        print(json.dumps(_STAGES[arguments.stage](arguments.only[0], arguments)))
        return
    folder = arguments.output / f"{arguments.cpu_hours:g}"
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--data", str(arguments.data), "--output", str(arguments.output)]
    for option in ("cpu_hours", "sentences", "pairs"):
        command += [f"--{option.replace('_', '-')}", str(getattr(arguments, option))]
    results = {
        name: {
            stage: probes.result(f"{name}.{stage}", [*command, "--only", name, "--stage", stage], folder, resumes=True)
            for stage in _STAGES
        }
        for name in arguments.only
    }
    print(table(results))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
