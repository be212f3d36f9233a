"""The commands `export`, `models`, `import` and `dump-weights`."""

import argparse
import dataclasses
import json
from typing import Any

from elmo_tf.cli.arguments import add_checkpoint_argument, add_command
from elmo_tf.errors import InputError, renamed
from elmo_tf.files import staging
from elmo_tf.savedmodel import contract

# Options of `_add_savedmodel_arguments` that are arguments of `writing.export`, where their defaults stand.
_SETTINGS = ("mix", "gamma", "tokenizer", "warm_text")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    export = add_command(
        commands,
        "export",
        _export,
        "write a verified SavedModel and print its folder",
        parameters={"checkpoint": "--checkpoint"},
    )
    export.add_argument("--workdir", required=True, metavar="DIR", help="a workdir of `elmo-tf train`")
    export.add_argument("--output", required=True, metavar="DIR", help="savedmodels/NAME; gets a new version")
    add_checkpoint_argument(export)
    export.add_argument("--softmax", action="store_true", help="export the softmax too, for the signature score")
    _add_savedmodel_arguments(export)

    models = add_command(
        commands, "models", _models, "list the published models, and which are on this machine", needs_tensorflow=False
    )
    models.add_argument("--json", action="store_true", help="print one line of JSON")

    imported = add_command(
        commands,
        "import",
        _import,
        "turn a published model, published files or a bilm-tf checkpoint into a SavedModel or a workdir",
        parameters={"prefix": "--checkpoint"},
    )
    source = imported.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "name", nargs="?", metavar="NAME", help="a published model: `elmo-tf models` lists them; fetched once"
    )
    source.add_argument("--weights", metavar="FILE", help="a published weights.hdf5")
    source.add_argument("--checkpoint", metavar="PREFIX", help="a training checkpoint of bilm-tf")
    imported.add_argument(
        "--options", metavar="FILE", help="with --weights or --checkpoint: the options.json that belongs to it"
    )
    imported.add_argument("--vocab", metavar="FILE", help="with --checkpoint: the vocabulary it was trained with")
    imported.add_argument("--output", metavar="DIR", help="not with --checkpoint: savedmodels/NAME; gets a new version")
    imported.add_argument("--workdir", metavar="DIR", help="a new workdir for further training, evaluation or export")
    _add_savedmodel_arguments(imported)

    dump = add_command(
        commands, "dump-weights", _dump_weights, "write options.json and weights.hdf5 for bilm-tf and AllenNLP"
    )
    dump.add_argument("--workdir", required=True, metavar="DIR", help="a workdir of `elmo-tf train`")
    dump.add_argument("--output", required=True, metavar="DIR", help="a new folder")
    add_checkpoint_argument(dump)


def _add_savedmodel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mix",
        default=argparse.SUPPRESS,
        metavar="MIX",
        help="weights of the layers: average (default), top, the number of a layer, or one number per layer before the "
        "softmax, token layer first: 0.1,0.5,-0.2",
    )
    parser.add_argument("--gamma", type=float, default=argparse.SUPPRESS, help="scale of the ELMo vector (1)")
    parser.add_argument(
        "--tokenizer",
        choices=contract.TOKENIZERS,
        default=argparse.SUPPRESS,
        help="how the signature default splits sentences: whitespace (default), or unicode, as preprocess "
        "--tokenizer unicode does; programs that load such a model have to import tensorflow_text first",
    )
    parser.add_argument(
        "--initial-state",
        choices=("zero", "warm"),
        default="zero",
        help="the LSTM states before a sentence: zero (default), or their average after the text of --warm-text",
    )
    parser.add_argument(
        "--warm-text",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="typical sentences, one per line; the first 1,024 are read",
    )


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings of `writing.export` that were given."""
    warm = arguments.initial_state == "warm"
    if warm != ("warm_text" in arguments):
        missing = "`warm_text`" if warm else "`initial_state` warm"
        raise InputError("initial_state, warm_text", "both for a warm state", f"no {missing}")
    return {name: getattr(arguments, name) for name in _SETTINGS if name in arguments}


def _export(arguments: argparse.Namespace) -> None:
    from elmo_tf import api

    print(
        api.export(
            arguments.workdir, arguments.output, arguments.which, softmax=arguments.softmax, **_settings(arguments)
        )
    )


def _models(arguments: argparse.Namespace) -> None:
    from elmo_tf.published import fetching, models

    rows = []
    for model in models.MODELS:
        here = "yes" if fetching.are_here(model) else "no"
        rows.append(dataclasses.asdict(model) | {"checked": model.checked, "here": here, "urls": model.urls})
    if arguments.json:
        print(json.dumps(rows))
        return
    table = [("name", "parameters", "vector", "download", "checked by", "language", "text", "license", "here")]
    for row in rows:
        size = _download(row)
        parameters = f"{row['parameters'] / 1e6:.1f} M"
        named = (row[name] for name in ("checked", "language", "about", "license", "here"))
        table.append((row["name"], parameters, str(row["dim"]), size, *named))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _download(row: dict[str, Any]) -> str:
    if not row["weights"]:
        return "comes with elmo_tf"
    return f"{row['size'] / 1e6:.0f} MB" if row["size"] else "?"


def _import(arguments: argparse.Namespace) -> None:
    from elmo_tf.published import fetching, models
    from elmo_tf.published import weights as published_weights
    from elmo_tf.savedmodel import writing
    from elmo_tf.training import importing

    options, weights, output, workdir = arguments.options, arguments.weights, arguments.output, arguments.workdir
    if (options is None) != (arguments.name is not None):
        given = "weights" if arguments.weights is not None else "checkpoint"
        expected = f"a file, which belongs to `{given}`" if options is None else "none with a published model's name"
        raise InputError("options", expected, "none" if options is None else options)
    if arguments.checkpoint is not None:
        if arguments.vocab is None or workdir is None or output is not None:
            given = [name for name in ("vocab", "workdir", "output") if getattr(arguments, name) is not None]
            found = ", ".join(f"`{name}`" for name in given) or "neither"
            raise InputError("checkpoint", "`vocab` and `workdir` with it, and no `output`; export later", found)
        print(importing.import_checkpoint(arguments.checkpoint, options, arguments.vocab, workdir).path)
        return
    if arguments.vocab is not None:
        raise InputError("vocab", "`checkpoint` with it", "published weights, which have no softmax")
    if output is None and workdir is None:
        given = "weights" if arguments.name is None else "name"
        raise InputError(given, "`output`, `workdir` or both with it", "neither")
    if workdir is not None:
        with renamed(path="workdir"):
            staging.check_absent(workdir)
    provenance = {}
    if arguments.name is not None:
        provenance = {"model": arguments.name}
        options, weights = fetching.files(models.find(arguments.name))
    config, bilm = published_weights.load(options, weights)
    settings = _settings(arguments)
    if output is not None:
        provenance |= published_weights.provenance(options, weights)
        print(writing.export(bilm, config, output, provenance=provenance, **settings))
    elif settings:
        parameters = "mix, gamma, tokenizer, initial_state"
        raise InputError(parameters, "`output` with settings of a SavedModel", "`workdir` alone; export later")
    if workdir is not None:
        print(importing.save_new(workdir, config, bilm).path)


def _dump_weights(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import importing

    print(importing.dump_weights(arguments.workdir, arguments.output, arguments.which))
