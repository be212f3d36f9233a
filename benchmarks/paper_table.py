"""The rows of the paper's Table 1: a system without and with ELMo, the gain, and the relative error reduction.

    python benchmarks/paper_table.py --model MODEL --data DIR --output DIR [--only ROW ...]

--data is a folder with uner_ewt, sst5, snli, propbank_ewt, squad, ontogum, wikigold, wnut17 and sentence_polarity, see
DATA.md. Runs `elmo-tf task NAME train` as a user would, and prints each command, a table and a line of JSON. Every
result is kept in --output; an interrupted run resumes. --fractions makes a learning curve (the paper's figure 1;
--figure draws it above the epochs until the best score), --mixes the variants of Table 2 and supplement A.2, --places
those of Table 3, --cove CoVe in the place of ELMo (section 5.1), --finetuned a biLM fine-tuned on the task's sentences,
with its perplexities (Table 7).
"""

import argparse
import itertools
import json
import lzma
import math
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import finetuned, probes
from benchmarks.histories import first_better
from benchmarks.measuring import aligned
from elmo_tf import config
from elmo_tf.files import stores
from elmo_tf.tasks import recipe, systems

# Settings of the ways to use ELMo; the recipe's own is "elmo".
MIXES = {
    "average": ["elmo.mix=average"],
    "last layer only": ["elmo.mix=top"],
    "lambda 1": ["elmo.penalty=1.0"],
    "lambda 0.001": ["elmo.penalty=0.001"],
    "gamma 1": ["elmo.gamma=1"],
    "last layer only gamma 1": ["elmo.mix=top", "elmo.gamma=1"],
}
PLACES = {"input": ["elmo.place=input"], "input and output": ["elmo.place=both"], "output": ["elmo.place=output"]}
FINETUNED = "fine tuned"
COVE = {"cove all layers": [], "cove last layer": ["elmo.mix=top"]}
# SNLI's dev lines that are trained on; the others choose the epoch.
_SNLI_TRAIN = 6000

# Options with the files of a task, by their names.
Files = dict[str, pathlib.Path]


def main(argv: list[str] | None = None) -> None:
    """Runs what has no result yet, and prints all results."""
    arguments = parse_arguments(argv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    perplexities = {}
    if arguments.finetuned:
        for row in arguments.only:
            task, files = ROWS[row]
            paths = files(arguments.data, arguments.output)
            perplexities[row] = finetuned.tuned(row, task, paths, arguments.model, arguments.output)
    results = {
        name: probes.result(name, command, arguments.output, resumes=True) for name, command in commands(arguments)
    }
    print()
    print(table(results, arguments.output))
    if perplexities:
        print()
        print(finetuned.table(perplexities))
    if arguments.figure:
        draw(results, arguments.figure)
    print(json.dumps(results))


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a SavedModel or a workdir")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for results and trained systems")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--fractions", nargs="+", type=float, default=[1.0], help="of the training data (1.0)")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each (1)")
    more = "4 times the recipe's epochs and patience for a tenth of the data, which has a tenth of the steps in each, "
    more += "and as many dev scores"
    parser.add_argument("--more-epochs", action="store_true", help=more)
    parser.add_argument("--recipe", default="small", help="paper or small (small)")
    help_text = "start from the word vectors of a file, or of several side by side"
    parser.add_argument("--glove", nargs="+", default=[], metavar="FILE", help=help_text)
    parser.add_argument("--mixes", action="store_true", help="other mixes of the layers as well (Table 2, A.2)")
    parser.add_argument("--places", action="store_true", help="other places of ELMo as well (Table 3)")
    help_text = "CoVe's layers in the place of ELMo's as well (Table 2), of a workdir of cove.py"
    parser.add_argument("--cove", type=pathlib.Path, metavar="WORKDIR", help=help_text)
    help_text = "a biLM trained for an epoch on the task's own sentences as well (Table 7, A.1)"
    parser.add_argument("--finetuned", action="store_true", help=help_text)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of all runs")
    parser.add_argument("--figure", type=pathlib.Path, help="a picture of the scores by the size of the training data")
    return parser.parse_args(argv)


def commands(arguments: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Yields name and command of each run; the name is `row_percent_way`."""
    ways: dict[str, list[str] | None] = {"baseline": None, "elmo": []}
    ways |= MIXES if arguments.mixes else {}
    ways |= PLACES if arguments.places else {}
    ways |= COVE if arguments.cove else {}
    ways |= {FINETUNED: []} if arguments.finetuned else {}
    for row in arguments.only:
        task, files = ROWS[row]
        for fraction in arguments.fractions:
            longer = _longer(task, arguments.recipe, fraction) if arguments.more_epochs else []
            for way, settings in ways.items():
                name = f"{row}_{100 * fraction:g}_{way.replace(' ', '-')}"
                command = [sys.executable, "-m", "elmo_tf.cli", "task", task, "train"]
                if way in COVE:
                    command = [sys.executable, "benchmarks/cove_compared.py", "task", task]
                    command += ["--cove", str(arguments.cove)]
                for option, path in files(arguments.data, arguments.output).items():
                    command += [f"--{option}", str(path)]
                if settings is not None and way not in COVE:
                    model = finetuned.workdir(row, arguments.output) if way == FINETUNED else arguments.model
                    command += ["--model", str(model)]
                if arguments.glove:
                    command += ["--glove", *arguments.glove]
                command += ["--fraction", str(fraction), "--seeds", str(arguments.seeds)]
                command += ["--workdir", str(arguments.output / name)]
                for setting in [f"recipe={arguments.recipe}", *longer, *(settings or []), *arguments.set]:
                    command += ["--set", setting]
                yield name, command


def _longer(task: str, recipe: str, fraction: float) -> list[str]:
    """Returns settings for a part of the data: see --more-epochs."""
    fit = systems.system_class(task).recipes[recipe].fit
    factor = 4 ** -math.log10(fraction)
    names = ("epochs", "patience", "judge_every")
    return [f"fit.{name}={round(getattr(fit, name) * factor)}" for name in names] if factor > 1 else []


def table(results: dict[str, dict], output: pathlib.Path) -> str:
    """Returns a line for each row, fraction and way with ELMo, beside the baseline of the same row and fraction.

    Epochs are those until the best dev score (of several seeds their mean) and, of one seed, all that were trained; the
    cap is the most that the settings allow. Hours are those of training. The last column comes from the workdirs in
    `output`.
    """
    titles = ("data, percent, way", "metric", "examples", "baseline", "with ELMo", "difference", "relative")
    lines = [(*titles, "seeds", "recipe", "sizes", "epochs", "cap", "hours", "passes the baseline")]
    for name, result in results.items():
        row, percent, way = name.split("_")
        base = results[f"{row}_{percent}_baseline"]
        if way == "baseline":
            continue
        gain = result["score"] - base["score"]
        relative = 100 * gain / (100 - base["score"]) if base["score"] < 100 else 0.0
        scores = [_with_deviation(run) for run in (base, result)]
        size = f"{result['train_examples']:,}"
        gains = (f"{gain:+.1f}", f"{relative:.1f} %")
        epochs = " / ".join(map(_epochs, (base, result)))
        hours = " / ".join(f"{run['seconds'] / 3600:.2f}" for run in (base, result))
        passes = first_better(output / f"{row}_{percent}_baseline", output / name)
        seeds = str(len(result.get("scores", [0])))
        training = (seeds, *recipe_and_sizes(result), epochs, str(_settings(result)[1].fit.epochs), hours)
        lines.append((f"{row} {percent} {way}", result["metric"], size, *scores, *gains, *training, passes))
    return aligned(lines)


# Settings that a row does not show, or shows in a column of their own.
_UNNAMED = ("fit.epochs", "fit.patience", "fit.judge_every", "fit.seed")


def recipe_and_sizes(run: dict) -> tuple[str, str]:
    """Returns the name of a result's recipe, or "own" with the settings that differ from it; and the sizes."""
    name, chosen = _settings(run)
    named = config.to_dict(systems.system_class(run["task"]).recipes[name])
    changed = [
        f"{group}.{key}={json.dumps(value)}"
        for group, settings in config.to_dict(chosen).items()
        for key, value in settings.items()
        if value != named[group][key] and f"{group}.{key}" not in _UNNAMED
    ]
    sizes = {"words.dim": sum(file["dim"] for file in run.get("glove", [])) or chosen.words.dim}
    network = config.to_dict(chosen)["network"]
    sizes |= {key: size for key, size in network.items() if type(size) in (int, list) and "rate" not in key}
    sizes_text = " ".join(f"{key}={json.dumps(size, separators=(',', ':'))}" for key, size in sizes.items())
    return f"own: {name}, {', '.join(changed)}" if changed else name, sizes_text


def _settings(run: dict) -> tuple[str, recipe.Recipe]:
    """Returns the name of the recipe of a result's command, and the recipe with the command's other settings."""
    words = shlex.split(run["command"])
    assignments = [value for option, value in itertools.pairwise(words) if option == "--set"]
    name = [setting.partition("=")[2] for setting in assignments if setting.startswith("recipe=")][-1]
    return name, recipe.chosen(systems.system_class(run["task"]).recipes, assignments)


def _epochs(run: dict) -> str:
    return str(run.get("best_epoch", "-")) + (f" of {run['epochs']}" if "epochs" in run else "")


# What the pictures call the rows and the ways; others keep their names.
_TITLES = {"propbank": "semantic roles", "uner": "named entities", "baseline": "without ELMo", "elmo": "with ELMo"}


def draw(results: dict[str, dict], path: pathlib.Path) -> None:
    """Draws scores, and below them epochs until the best, by the number of training examples; a column for each row."""
    import matplotlib  # noqa: PLC0415 - only a figure needs it

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    rows = list(dict.fromkeys(name.split("_")[0] for name in results))
    figure, axes = pyplot.subplots(2, len(rows), figsize=(4 * len(rows), 5), squeeze=False, sharex="col")
    for row, score_axis, epoch_axis in zip(rows, *axes, strict=True):
        for way in ("baseline", "elmo"):
            runs = [run for name, run in results.items() if name.startswith(f"{row}_") and name.endswith(f"_{way}")]
            sizes = [run["train_examples"] for run in runs]
            deviations = [run.get("deviation", 0) for run in runs]
            scores = [run["score"] for run in runs]
            score_axis.errorbar(sizes, scores, deviations, marker="o", label=_TITLES[way], capsize=3)
            epoch_axis.plot(sizes, [run.get("best_epoch", float("nan")) for run in runs], marker="o")
        score_axis.set(title=_TITLES.get(row, row), xscale="log", ylabel=runs[0]["metric"].upper())
        epoch_axis.set(xlabel="training examples", ylabel="epochs until the best", ylim=(0, None))
        score_axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def _with_deviation(run: dict) -> str:
    return f"{run['score']:.1f}" + (f" +- {run['deviation']:.1f}" if "deviation" in run else "")


def _uner(data: pathlib.Path, _: pathlib.Path) -> Files:
    return {name: data / "uner_ewt" / f"{name}.conll.xz" for name in ("train", "dev")}


def _sst5(data: pathlib.Path, _: pathlib.Path) -> Files:
    return {name: data / "sst5" / f"{name}.txt.xz" for name in ("train", "dev")}


def _propbank(data: pathlib.Path, _: pathlib.Path) -> Files:
    return {
        name: data / "propbank_ewt" / f"ewt_srl_{name}{end}"
        for name, end in (("train", ".jsonl.xz"), ("dev", ".jsonl"))
    }


def _squad(data: pathlib.Path, _: pathlib.Path) -> Files:
    return {"train": data / "squad" / "train-part.json.xz", "dev": data / "squad" / "dev-half.json.xz"}


def _ontogum(data: pathlib.Path, _: pathlib.Path) -> Files:
    return {name: data / "ontogum" / f"{name}.conll.xz" for name in ("train", "dev")}


def _wnut17(data: pathlib.Path, _: pathlib.Path) -> Files:
    names = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
    return {option: data / "wnut17" / name for option, name in names.items()}


def _snli(data: pathlib.Path, output: pathlib.Path) -> Files:
    """Returns files of label, premise and hypothesis; the first lines of SNLI's dev set are trained on."""
    parts = [(data / "snli" / f"{name}.dev").read_text("utf-8").splitlines() for name in ("labels", "s1", "s2")]
    dev = ["\t".join(part.strip() for part in line) for line in zip(*parts, strict=True)]
    edited = lzma.decompress((data / "snli" / "cad_train.tsv.xz").read_bytes()).decode().splitlines()[1:]
    rows = (line.split("\t") for line in edited)
    train = ["\t".join((label, premise, hypothesis)) for premise, hypothesis, label in rows]
    return _written(output, "snli", {"train": train + dev[:_SNLI_TRAIN], "dev": dev[_SNLI_TRAIN:]})


def _wikigold(data: pathlib.Path, output: pathlib.Path) -> Files:
    """Splits the articles into 8, 1 and 1 tenths: whole articles, because names recur within one."""
    articles = (data / "wikigold" / "wikigold.conll.txt").read_text("utf-8").split("-DOCSTART- O\n")
    articles = [article.strip() for article in articles if article.strip()]
    return _written(output, "wikigold", probes.tenths(articles), "\n\n")


def _polarity(data: pathlib.Path, output: pathlib.Path) -> Files:
    """Of every ten sentences of each class, eight train, one chooses the epoch and one tests."""
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for label in ("pos", "neg"):
        lines = (data / "sentence_polarity" / f"rt-polarity.{label}").read_text("utf-8").split("\n")
        sentences = [" ".join(line.split()) for line in lines if line.strip()]
        for number, sentence in enumerate(sentences):
            parts[{8: "dev", 9: "test"}.get(number % 10, "train")].append(f"{label}\t{sentence}")
    return _written(output, "polarity", parts)


def _written(output: pathlib.Path, name: str, parts: dict[str, list[str]], between: str = "\n") -> Files:
    paths = {part: output / f"{name}.{part}.txt" for part in parts}
    for part, lines in parts.items():
        stores.write(paths[part], (between.join(lines) + "\n").encode())
    return paths


# The task, and what returns its files.
ROWS: dict[str, tuple[str, Callable[[pathlib.Path, pathlib.Path], Files]]] = {
    "uner": ("ner", _uner),
    "sst5": ("sentiment", _sst5),
    "snli": ("entailment", _snli),
    "propbank": ("roles", _propbank),
    "wikigold": ("ner", _wikigold),
    "wnut17": ("ner", _wnut17),
    "polarity": ("sentiment", _polarity),
    "squad": ("answers", _squad),
    "ontogum": ("coreference", _ontogum),
}


if __name__ == "__main__":
    main()
