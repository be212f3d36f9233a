"""CoVe's layers (`cove.py`) in the probes of ELMo's, and in the place of ELMo in the paper's systems.

    python benchmarks/cove_compared.py pos --data DIR --cove WORKDIR
    python benchmarks/cove_compared.py wsd --data DIR --cove WORKDIR
    python benchmarks/cove_compared.py task NAME --cove WORKDIR --train FILE --dev FILE --workdir DIR

--cove is a workdir of `cove.py train`; --data is a folder with ud_ewt and semcor30, as for `probes.py`. `task` is
`elmo-tf task NAME train` with CoVe's layers in the place of the biLM's, and has its options: `--set elmo.mix=top` takes
the last layer only. `paper_table.py --cove` runs it. Prints a table of probes, then a line of JSON.
"""

import argparse
import json
import logging
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks.cove import CoVe
from benchmarks.probes import FILES
from elmo_tf.annotated import conllu, senses
from elmo_tf.probes import pos, wsd
from elmo_tf.tasks import runs, systems


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    for name in FILES:
        probe = commands.add_parser(name)
        probe.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    task = commands.add_parser("task")
    task.add_argument("task", choices=systems.SYSTEMS, metavar="NAME", help=", ".join(systems.SYSTEMS))
    for name in ("train", "dev", "workdir"):
        task.add_argument(f"--{name}", required=True)
    task.add_argument("--test")
    task.add_argument("--glove", nargs="+")
    task.add_argument("--fraction", type=float, default=1.0)
    task.add_argument("--seeds", type=int, default=1)
    task.add_argument("--set", action="append", default=[], dest="assignments")
    for command in commands.choices.values():
        command.add_argument("--cove", type=pathlib.Path, required=True, help="a workdir of cove.py train")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    """Runs a probe or trains a system."""
    arguments = parse_arguments(argv)
    model = CoVe(arguments.cove)
    if arguments.what == "task":
        logging.basicConfig(format="%(message)s")
        logging.getLogger("elmo_tf").setLevel(logging.INFO)
        names = ("task", "train", "dev", "workdir", "test", "glove", "fraction", "seeds", "assignments")
        trained = runs.train(**{name: getattr(arguments, name) for name in names}, elmo=model.layers())
        result = {name: value for name, value in trained.items() if name != "history"}
    else:
        paths = {name: arguments.data / path for name, path in FILES[arguments.what].items()}
        if arguments.what == "pos":
            scores = pos.probe(model, *(conllu.read_conllu(paths[name]) for name in ("train", "test")))
        else:
            scores = wsd.probe(model, *wsd.split(senses.read_semcor(paths["train"])))
        print(scores.table())
        result = scores.to_json()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
