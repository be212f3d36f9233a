"""Our metrics of three tasks on files with gold and predicted annotations, to compare with the official scorers.

    python benchmarks/official_scores.py FOLDER

FOLDER has coref_gold.conll and coref_predicted.conll (CoNLL-2012's columns), srl.json (a list of objects with IOB2 tags
`gold` and `predicted`, one for each predicate) and squad.json (`gold`: a list of objects with `id` and `answers`;
`predicted`: texts by id). Prints a line of JSON with as many digits as the official scorers.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from elmo_tf.annotated.coref_documents import read_documents
from elmo_tf.tasks.scores import coref_eval, squad_eval, srl_eval
from elmo_tf.tasks.scores.f1 import Counts


def main(argv: list[str] | None = None) -> None:
    """Prints all scores."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    folder = parser.parse_args(argv).folder
    print(json.dumps({"coref": coref(folder), "srl": srl(folder), "squad": squad(folder)}))


def coref(folder: pathlib.Path) -> dict:
    """Returns MUC, B-cubed, CEAFe and their mean."""
    gold, predicted = (read_documents(folder / f"coref_{name}.conll") for name in ("gold", "predicted"))
    clusters_of = {document.key: document.clusters for document in predicted}
    clusters = [clusters_of.get(document.key, []) for document in gold]
    counts = coref_eval.score([document.clusters for document in gold], clusters)
    scores = {name: cut_off(metric) for name, metric in counts.items()}
    mean = sum(score["f1"] for score in scores.values()) / len(scores)  # of what the official scorer prints
    return scores | {"average_f1": round(mean, 4)}


def cut_off(counts: Counts) -> dict[str, float]:
    """Returns recall, precision and F1 in percent, truncated to two decimals like the official scorer's."""
    recall = counts.recalled / counts.gold if counts.gold else 0
    precision = counts.precise / counts.predicted if counts.predicted else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    return {name: int(10000 * rate) / 100 for name, rate in (("recall", recall), ("precision", precision), ("f1", f1))}


def srl(folder: pathlib.Path) -> dict:
    """Returns the counts, precision, recall and F1 of arguments."""
    entries = json.loads((folder / "srl.json").read_bytes())
    by_label = srl_eval.by_label([entry["gold"] for entry in entries], [entry["predicted"] for entry in entries])
    counts = sum(by_label.values(), Counts())
    correct = int(counts.precise)
    wrong = {"correct": correct, "excess": int(counts.predicted) - correct, "missed": int(counts.gold) - correct}
    return wrong | {name: round(value, 2) for name, value in counts.scores().items()}


def squad(folder: pathlib.Path) -> dict:
    """Returns exact match and F1 of answers."""
    entries = json.loads((folder / "squad.json").read_bytes())
    predicted = [entries["predicted"].get(question["id"], "") for question in entries["gold"]]
    return squad_eval.score([question["answers"] for question in entries["gold"]], predicted)


if __name__ == "__main__":
    main()
