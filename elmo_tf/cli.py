"""The command line `elmo-tf`: each subcommand reads its arguments and calls the library.

Exit status 0, 1 (failed: one line on stderr), 2 (usage) or 130 (interrupted). Logs go to stderr, results to stdout.
"""

import argparse
import contextlib
import dataclasses
import json
import logging
import os
import sys

from elmo_tf import __version__, staging
from elmo_tf import config as config_lib
from elmo_tf.errors import InputError


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    _configure_logging()
    try:
        if argv[:1] == ["preprocess"]:  # its options are Beam's as well, which argparse need not know
            from pipelines import preprocess

            preprocess.run(argv[1:])
        else:
            arguments = _parser().parse_args(argv)
            with _quiet_stderr():
                import tensorflow

                gpus = tensorflow.config.list_physical_devices("GPU")  # the first look for them has its say as well
                if gpus and not arguments.on_gpu:
                    tensorflow.config.set_visible_devices([], "GPU")
            arguments.run(arguments)
    except InputError as error:
        return _fail(error)
    except OSError as error:
        return _fail(f"{error.strerror}: {error.filename}" if error.filename else error)
    except KeyboardInterrupt:
        return 130
    return 0


def _fail(message: object) -> int:
    print("elmo-tf: error:", " ".join(str(message).split()), file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="elmo-tf", description="ELMo: from a text corpus to a SavedModel.")
    parser.add_argument("--version", action="version", version=f"elmo-tf {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name, run, help_text):
        added = commands.add_parser(name, help=help_text, description=help_text, allow_abbrev=False)
        # The others run on the CPU: TensorFlow would take all of a GPU's memory, and compute there with less precision.
        added.set_defaults(run=run, on_gpu=name in ("train", "finetune", "evaluate"))
        return added

    commands.add_parser("preprocess", help="make a folder of records from text, with Apache Beam", add_help=False)

    train = command("train", _train, "train a biLM on records; run again with the same workdir, it resumes")
    train.add_argument("--preset", metavar="NAME", help=f"{', '.join(config_lib.PRESETS)}; not needed to resume")
    _add_training_arguments(train)

    finetune = command("finetune", _finetune, "go on with a trained language model on other text")
    finetune.add_argument("--from", dest="source", required=True, metavar="WORKDIR", help="the model to start from")
    _add_training_arguments(finetune)

    evaluate = command("evaluate", _evaluate, "print held-out perplexity as JSON: full softmax, every token")
    evaluate.add_argument("--workdir", required=True, metavar="DIR", help="of `elmo-tf train`")
    evaluate.add_argument("--data", required=True, metavar="DIR", help="records made with the workdir's vocabulary")
    evaluate.add_argument(
        "--batch-size", type=_positive, default=32, metavar="N", help="streams, the LSTM state carried along each (32)"
    )

    export = command("export", _export, "write a verified SavedModel; prints its folder")
    export.add_argument("--workdir", required=True, metavar="DIR", help="of `elmo-tf train`")
    export.add_argument("--output", required=True, metavar="DIR", help="savedmodels/NAME; gets a new version inside")
    _add_mix_arguments(export)

    imported = command(
        "import", _import, "turn published weights or a bilm-tf checkpoint into a SavedModel or a workdir"
    )
    imported.add_argument("--options", required=True, metavar="FILE", help="options.json")
    source = imported.add_mutually_exclusive_group(required=True)
    source.add_argument("--weights", metavar="FILE", help="the published weights.hdf5 that goes with it")
    source.add_argument("--checkpoint", metavar="PREFIX", help="a training checkpoint, softmax and Adagrad included")
    imported.add_argument("--vocab", metavar="FILE", help="with --checkpoint: the vocabulary it was trained with")
    imported.add_argument("--output", metavar="DIR", help="with --weights: savedmodels/NAME; gets a new version inside")
    imported.add_argument("--workdir", metavar="DIR", help="a new workdir, to train, evaluate or export")
    _add_mix_arguments(imported)

    dump = command("dump-weights", _dump_weights, "write options.json and weights.hdf5 for bilm-tf and AllenNLP")
    dump.add_argument("--workdir", required=True, metavar="DIR", help="of `elmo-tf train`")
    dump.add_argument("--output", required=True, metavar="DIR", help="a new folder")

    neighbors = command("neighbors", _neighbors, "print the nearest uses of a word in context")
    neighbors.add_argument("--savedmodel", required=True, metavar="DIR", help="a version's folder")
    neighbors.add_argument("--text", required=True, metavar="FILE", help="one tokenised sentence a line")
    neighbors.add_argument("--word", required=True, metavar="W")
    neighbors.add_argument("--sentence", required=True, metavar='"..."', help="tokens between spaces, W among them")
    neighbors.add_argument("--count", type=_positive, default=10, metavar="N", help="uses to print (10)")
    return parser


def _add_training_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="DIR", help="records to train on")
    parser.add_argument("--workdir", required=True, metavar="DIR", help="checkpoints and logs; made if not there")
    parser.add_argument("--heldout", metavar="DIR", help="records to evaluate on at every checkpoint")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=_natural, metavar="N", help="train up to this step (--epochs)")
    length.add_argument(
        "--epochs",
        type=_positive,
        metavar="N",
        help="train up to so many passes over the data (train.epochs, as a rule 10)",
    )
    parser.add_argument("--gpus", metavar="0,1,..", help="GPUs to train on (all there are; the CPU if there are none)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="change the configuration; an unknown key lists them all; may be repeated",
    )


def _add_mix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mix",
        default="average",
        metavar="MIX",
        help="average (default), top, or one number a layer, token layer first, softmax-normalized: 0.1,0.5,-0.2",
    )
    parser.add_argument("--gamma", type=float, default=1.0, help="scale of the ELMo vector (1)")


def _train(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import checkpoints, loop

    assignments = _assignments(arguments)
    asked = arguments.preset and config_lib.override(config_lib.preset(arguments.preset), assignments)
    if checkpoints.exists(arguments.workdir):
        config = config_lib.override(checkpoints.open_workdir(arguments.workdir).config, assignments)
        if asked:  # the recipe so far goes on, but another model is refused
            config = dataclasses.replace(config, model=asked.model)
    elif asked:
        config = asked
    else:
        raise InputError(f"--preset: expected one of {', '.join(config_lib.PRESETS)} for a new workdir, found none")
    loop.train(config, arguments.data, arguments.workdir, arguments.heldout, arguments.steps, _strategy(arguments.gpus))


def _finetune(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import finetuning

    finetuning.finetune(
        arguments.source,
        arguments.data,
        arguments.workdir,
        _assignments(arguments),
        arguments.heldout,
        arguments.steps,
        _strategy(arguments.gpus),
    )


def _evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tf.data import records as records_lib
    from elmo_tf.training import checkpoints, evaluation

    workdir = checkpoints.open_workdir(arguments.workdir)
    records = records_lib.open_folder(arguments.data)
    evaluation.check_records(workdir.config.model, workdir.vocabulary, records, "--data")
    result = evaluation.evaluate(workdir.trained_bilm(), records, arguments.batch_size)
    print(json.dumps(dataclasses.asdict(result)))


def _export(arguments: argparse.Namespace) -> None:
    from elmo_tf import export
    from elmo_tf.training import checkpoints

    workdir = checkpoints.open_workdir(arguments.workdir)
    bilm = workdir.trained_bilm()
    mix = export.parse_mix(arguments.mix, bilm.config.lstm.num_layers)
    provenance = checkpoints.provenance(workdir)
    print(export.export(bilm, workdir.config, arguments.output, mix, arguments.gamma, provenance))


def _import(arguments: argparse.Namespace) -> None:
    from elmo_tf import export, published
    from elmo_tf.training import importing

    options, weights, output, workdir = arguments.options, arguments.weights, arguments.output, arguments.workdir
    if arguments.checkpoint is not None:
        if arguments.vocab is None or workdir is None or output is not None:
            raise InputError("--checkpoint: expected --vocab and --workdir, and no --output, with it; then export")
        print(importing.import_checkpoint(arguments.checkpoint, options, arguments.vocab, workdir).path)
        return
    if arguments.vocab is not None:
        raise InputError("--vocab: expected --checkpoint with it; the published weights have no softmax")
    if output is None and workdir is None:
        raise InputError("--weights: expected --output, --workdir or both with it, found neither")
    if workdir is not None:
        staging.check_absent(workdir, "--workdir")
    config, bilm = published.load(options, weights)
    mix = export.parse_mix(arguments.mix, config.model.lstm.num_layers)
    if output is not None:
        described = published.provenance(options, weights)
        print(export.export(bilm, config, output, mix, arguments.gamma, described))
    elif any(mix) or arguments.gamma != 1:
        raise InputError("--mix, --gamma: expected --output with it; a workdir gets its mix when it is exported")
    if workdir is not None:
        print(importing.save_new(workdir, config, bilm).path)


def _dump_weights(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import importing

    print(importing.dump_weights(arguments.workdir, arguments.output))


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tf import neighbors

    uses = neighbors.nearest_uses(
        arguments.savedmodel, arguments.text, arguments.word, arguments.sentence, arguments.count
    )
    for use in uses:
        tokens = list(use.sentence)
        tokens[use.position] = f"[{tokens[use.position]}]"
        print(f"{use.similarity:.3f}  {' '.join(tokens)}")


def _assignments(arguments: argparse.Namespace) -> list[str]:
    epochs = [] if arguments.epochs is None else [f"train.epochs={arguments.epochs}"]
    return [*arguments.assignments, *epochs]


def _strategy(gpus: str | None):
    """Returns the strategy for `--gpus`; None when it is not given."""
    import tensorflow as tf

    if gpus is None:
        return None
    there = tf.config.list_physical_devices("GPU")
    wanted = gpus.split(",")
    numbers = [str(number) for number in range(len(there))]
    if not set(wanted) <= set(numbers) or len(set(wanted)) < len(wanted):
        raise InputError(
            f"--gpus: expected different ones of the GPUs here, {', '.join(numbers) or 'none'}, found {gpus!r}"
        )
    # TensorFlow takes the memory of every GPU it sees.
    tf.config.set_visible_devices([there[int(number)] for number in wanted], "GPU")
    return tf.distribute.MirroredStrategy([f"GPU:{number}" for number in range(len(wanted))])


def _positive(text: str) -> int:
    return _at_least(1, text)


def _natural(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least {least}, found {text!r}")
    return int(text)


def _configure_logging() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("elmo_tf").setLevel(logging.INFO)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def _quiet_stderr():
    """Keeps what TensorFlow's C++ side says of itself when loaded off the terminal; Python's errors still come out."""
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] in ("0", "1"):  # somebody wants to see it
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


if __name__ == "__main__":
    sys.exit(main())
