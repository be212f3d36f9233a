"""The commands `export`, `models`, `import`, `dump-weights` and `push`."""

import argparse
import dataclasses
import logging
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from elmo_tf.cli import quiet
from elmo_tf.cli.arguments import add_checkpoint_argument, add_command
from elmo_tf.display import table
from elmo_tf.errors import InputError
from elmo_tf.extras import check_keras_backend
from elmo_tf.files import json_file, staging
from elmo_tf.files.download import without_credentials
from elmo_tf.text import tokenizers

# Options of `_add_savedmodel_arguments` that are arguments of `writing.export`.
_SETTINGS = ("mix", "gamma", "tokenizer")
_SOFTMAX = "also export the softmax, for the signature score"
# The sources of `import`: usage text, required options, forbidden options.
_SOURCES = {
    "name": ("--output, --workdir or both", set(), {"options", "vocab"}),
    "weights": ("--options, and --output, --workdir or both", {"options"}, {"vocab"}),
    "prefix": ("--options, --vocab and --workdir", {"options", "vocab", "workdir"}, {"output"}),
}

_log = logging.getLogger("elmo_tf")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    export = add_command(commands, "export", _export, "write a verified SavedModel and print its folder")
    export.add_argument("--workdir", required=True, metavar="DIR", help="a workdir of `elmo-tf train`")
    export.add_argument("--output", required=True, metavar="DIR", help="savedmodels/NAME; a new version is added")
    add_checkpoint_argument(export)
    export.add_argument("--softmax", action="store_true", help=_SOFTMAX)
    _add_savedmodel_arguments(export)

    help_text = "list the published models, and which are on this machine"
    models = add_command(commands, "models", _models, help_text, needs_tensorflow=False)
    models.add_argument("--json", action="store_true", help="print one line of JSON")

    _add_import(commands)

    help_text = "write options.json and weights.hdf5 for bilm-tf and AllenNLP"
    dump = add_command(commands, "dump-weights", _dump_weights, help_text)
    dump.add_argument("--workdir", required=True, metavar="DIR", help="a workdir of `elmo-tf train`")
    dump.add_argument("--output", required=True, metavar="DIR", help="a new folder")
    help_text = "also write softmax.hdf5 and vocab.txt, which only elmo_tf reads"
    dump.add_argument("--softmax", action="store_true", help=help_text)
    add_checkpoint_argument(dump)

    help_text = "share a model on Hugging Face's hub; as published files, with its softmax if it has one, and a card"
    push = add_command(commands, "push", _push, help_text, needs_tensorflow=False)
    push.add_argument("source", metavar="SOURCE", help="a workdir, a SavedModel, published files or a name")
    push.add_argument("address", metavar="ADDRESS", help="hf://owner/name; made if it does not exist")
    help_text = "the license, as the hub writes it: cc-by-sa-4.0, apache-2.0, other"
    push.add_argument("--license", dest="license_code", required=True, metavar="CODE", help=help_text)
    push.add_argument("--language", metavar="CODE", help="the language of the text: en")
    push.add_argument("--private", action="store_true", help="make a new model private")
    push.add_argument("--revision", metavar="BRANCH", help="commit to this branch (default: main); made if needed")
    push.add_argument("--dry-run", metavar="DIR", help="write the files to this new folder, and push nothing")


def _add_import(commands: argparse._SubParsersAction) -> None:
    help_text = "turn a published model, published files or a bilm-tf checkpoint into a SavedModel or a workdir"
    parser = add_command(commands, "import", _import, help_text)
    source = parser.add_mutually_exclusive_group(required=True)
    help_text = "a published model (`elmo-tf models` lists them), hf://owner/name, or a folder of published files"
    source.add_argument("name", nargs="?", metavar="NAME", help=help_text)
    source.add_argument("--weights", metavar="FILE", help="a published weights.hdf5")
    source.add_argument("--checkpoint", dest="prefix", metavar="PREFIX", help="a training checkpoint of bilm-tf")
    add = parser.add_argument
    add("--options", metavar="FILE", help="with --weights or --checkpoint: its options.json")
    add("--vocab", metavar="FILE", help="with --checkpoint: the vocabulary it was trained with")
    add("--output", metavar="DIR", help="not with --checkpoint: savedmodels/NAME; a new version is added")
    add("--workdir", metavar="DIR", help="a new workdir for further training, evaluation or export")
    parser.add_argument("--softmax", action="store_true", help=_SOFTMAX)
    _add_savedmodel_arguments(parser)


def _add_savedmodel_arguments(parser: argparse.ArgumentParser) -> None:
    # `api.export` and `writing.export` supply the defaults.
    not_given = argparse.SUPPRESS
    add = parser.add_argument
    help_text = (
        "weights of the layers: average (default), top, the number of a layer, or one number per layer before the "
        "softmax, token layer first: 0.1,0.5,-0.2"
    )
    add("--mix", default=not_given, metavar="MIX", help=help_text)
    add("--gamma", type=float, default=not_given, help="scale of the ELMo vector (1)")
    help_text = (
        "how the signature default splits sentences, as in preprocess --tokenizer (default: for export, as the "
        "training text was split; for import, penn for english, whitespace for others); programs that load a model "
        "with unicode must import tensorflow_text first"
    )
    add("--tokenizer", choices=tokenizers.TOKENIZERS, default=not_given, help=help_text)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings of `writing.export` that were given."""
    return {name: getattr(arguments, name) for name in _SETTINGS if name in arguments}


def _export(arguments: argparse.Namespace) -> None:
    from elmo_tf import api

    settings = _settings(arguments) | {"softmax": arguments.softmax}
    print(api.export(arguments.workdir, arguments.output, arguments.checkpoint, **settings))


def _models(arguments: argparse.Namespace) -> None:
    from elmo_tf.published import models

    rows = []
    for model in models.MODELS:
        here = "yes" if model.is_local else "no"
        urls = {name: without_credentials(url) for name, url in model.urls.items()}
        rows.append(dataclasses.asdict(model) | {"checked": model.checked, "here": here, "urls": urls})
    if arguments.json:
        print(json_file.dumps(rows))
        return
    cells = [("name", "weights", "vector", "download", "language", "text", "here")]
    for row in rows:
        size = f"{row['size'] / 1e6:.0f} MB" if row["size"] else "?"
        download = size if row["weights"] else "none"
        numbers = (f"{row['parameters'] / 1e6:.1f} M", str(row["dim"]), download)
        cells.append((row["name"], *numbers, row["language"], row["about"], row["here"]))
    print(*table(cells), sep="\n")
    print("\nLicenses, addresses and checksums: elmo-tf models --json")


def _import(arguments: argparse.Namespace) -> None:
    from elmo_tf.published import models
    from elmo_tf.training import importing

    if models.is_system(arguments.name):
        _import_system(arguments)
        return
    _check_import(arguments)
    if arguments.prefix is not None:
        print(importing.import_checkpoint(arguments.prefix, arguments.options, arguments.vocab, arguments.workdir).path)
    else:
        _import_published(arguments)


def _import_system(arguments: argparse.Namespace) -> None:
    from elmo_tf import tasks

    others = (arguments.options, arguments.vocab, arguments.workdir)
    if arguments.output is None or any(others) or _settings(arguments):
        raise InputError(arguments.name, "for a trained system, give only --output")
    print(tasks.load(arguments.name).export(arguments.output))


def _check_import(arguments: argparse.Namespace) -> None:
    """Rejects options that cannot be combined."""
    source = next(name for name in _SOURCES if getattr(arguments, name) is not None)
    usage, required, forbidden = _SOURCES[source]
    given = [name for name in ("options", "vocab", "output", "workdir") if getattr(arguments, name) is not None]
    if not required <= set(given) or forbidden & set(given) or not {"output", "workdir"} & set(given):
        options = ", ".join(f"--{name}" for name in given) or "none of them"
        raise InputError(source, f"requires {usage}; found: {options}")
    if arguments.output is None and (_settings(arguments) or arguments.softmax):
        parameters = "mix, gamma, tokenizer, softmax"
        raise InputError(parameters, "settings of a SavedModel need --output; with --workdir alone, export later")


def _import_published(arguments: argparse.Namespace) -> None:
    from elmo_tf import sources
    from elmo_tf.model.fast import new_softmax
    from elmo_tf.published import arrays, models
    from elmo_tf.published import weights as published_weights
    from elmo_tf.savedmodel import writing
    from elmo_tf.training import importing

    if arguments.workdir is not None:
        staging.check_absent(arguments.workdir)
    find: Callable[..., sources.Source] = sources.named if models.is_name(arguments.name) else sources.find
    source = find(arguments.name or (arguments.options, arguments.weights))
    if not isinstance(source, sources.Published):
        raise InputError(source.name, "not published files; use it as it is, or export it")
    options, weights, settings = source.options, source.weights_file, _settings(arguments)
    settings.setdefault("tokenizer", source.tokenizer)
    provenance = {} if pathlib.Path(source.name).is_absolute() else {"model": source.name}
    config, bilm = published_weights.load(options, weights)
    stored = arrays.read_softmax(weights, config.model)
    if arguments.softmax and stored is None:
        raise InputError(str(weights), f"the model has no softmax: no {models.SOFTMAX_FILE} beside this file")
    if stored is not None:
        bilm.softmax = new_softmax(stored.kernel, stored.bias)
    words, tokenizer = stored and stored.vocabulary, settings["tokenizer"]
    if arguments.output is not None:
        provenance |= published_weights.provenance(options, weights)
        settings |= {"vocabulary": words if arguments.softmax else None}
        print(writing.export(bilm, config, arguments.output, provenance=provenance, **settings))
    if arguments.workdir is not None:
        print(importing.save_new(arguments.workdir, config, bilm, vocabulary=words, tokenizer=tokenizer).path)


def _dump_weights(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import importing

    print(importing.dump_weights(arguments.workdir, arguments.output, arguments.checkpoint, arguments.softmax))


def _push(arguments: argparse.Namespace) -> None:
    from elmo_tf import push, sources
    from elmo_tf.published import hub

    address = "@".join(filter(None, (arguments.address, arguments.revision)))
    hub.parse(address)
    source = sources.find(arguments.source)
    if source.needs_tensorflow:
        check_keras_backend()
        quiet.load_tensorflow(on_gpu=False)
    with tempfile.TemporaryDirectory() as scratch:
        output = arguments.dry_run or pathlib.Path(scratch, "model")
        folder = push.write_folder(source, output, address, arguments.license_code, arguments.language)
        for path in sorted(folder.iterdir()):
            _log.info("%s: %s bytes", path.name, f"{path.stat().st_size:,}")
        if not arguments.dry_run:
            _log.info("pushing these files to %s%s", address, ", private" if arguments.private else "")
        print(arguments.dry_run or hub.upload(address, folder, arguments.private, push.FILES))
