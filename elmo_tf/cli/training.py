"""The commands `train`, `finetune` and `evaluate`."""

import argparse
import dataclasses
import json

from elmo_tf import config as config_lib
from elmo_tf.cli.arguments import add_checkpoint_argument, add_command, natural, positive
from elmo_tf.errors import InputError


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    train = add_command(
        commands, "train", _train, "train a biLM on records; run again with the same workdir, it resumes", on_gpu=True
    )
    train.add_argument("--preset", metavar="NAME", help=f"{', '.join(config_lib.PRESETS)}; not needed to resume")
    train.add_argument(
        "--paper-recipe",
        action="store_true",
        help="train a smaller preset as the released model was: Adagrad, constant rate, dropout 0.1 (original: always)",
    )
    _add_training_arguments(train)

    finetune = add_command(
        commands, "finetune", _finetune, "go on with a trained language model on other text", on_gpu=True
    )
    finetune.add_argument("--from", dest="source", required=True, metavar="WORKDIR", help="the model to start from")
    _add_training_arguments(finetune)

    evaluate = add_command(
        commands, "evaluate", _evaluate, "print held-out perplexity as JSON: full softmax, every token", on_gpu=True
    )
    evaluate.add_argument("--workdir", required=True, metavar="DIR", help="of `elmo-tf train`")
    evaluate.add_argument("--data", required=True, metavar="DIR", help="records made with the workdir's vocabulary")
    add_checkpoint_argument(evaluate)
    evaluate.add_argument(
        "--batch-size", type=positive, default=32, metavar="N", help="streams, the LSTM state carried along each (32)"
    )
    evaluate.add_argument(
        "--unigram", metavar="DIR", help="the records trained on: prints the perplexity of their word counts as well"
    )


def _add_training_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="DIR", help="records to train on")
    parser.add_argument("--workdir", required=True, metavar="DIR", help="checkpoints and logs; made if not there")
    parser.add_argument("--heldout", metavar="DIR", help="records to evaluate on at every checkpoint")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=natural, metavar="N", help="train up to this step (--epochs)")
    length.add_argument(
        "--epochs",
        type=positive,
        metavar="N",
        help="train up to so many passes over the data (train.epochs, as a rule 10)",
    )
    parser.add_argument(
        "--patience",
        type=natural,
        metavar="N",
        help="stop after N evaluations without a better --heldout perplexity (train.patience: 0, never)",
    )
    parser.add_argument("--seed", type=natural, metavar="N", help="makes a run repeatable (train.seed: 0)")
    parser.add_argument("--profile", action="store_true", help="trace five steps for TensorBoard's profiler")
    parser.add_argument("--gpus", metavar="0,1,..", help="GPUs to train on (all there are; the CPU if there are none)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="KEY=VALUE",
        help="change the configuration; an unknown key lists them all; may be repeated",
    )


def _train(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import checkpoints, loop

    assignments = _assignments(arguments)
    asked = arguments.preset and config_lib.preset(arguments.preset)
    if asked and arguments.paper_recipe:
        asked = config_lib.with_paper_recipe(asked)
    asked = asked and config_lib.override(asked, assignments)
    if checkpoints.exists(arguments.workdir):
        config = config_lib.override(checkpoints.open_workdir(arguments.workdir).config, assignments)
        if asked:  # the recipe so far goes on, but another model is refused
            config = dataclasses.replace(config, model=asked.model)
    elif asked:
        config = asked
    else:
        raise InputError(f"--preset: expected one of {', '.join(config_lib.PRESETS)} for a new workdir, found none")
    loop.train(
        config,
        arguments.data,
        arguments.workdir,
        arguments.heldout,
        arguments.steps,
        _strategy(arguments.gpus),
        arguments.profile,
    )


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
        arguments.profile,
    )


def _evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tf.records import record_folder
    from elmo_tf.records.unigram import unigram_perplexity
    from elmo_tf.training import checkpoints, evaluation

    workdir = checkpoints.open_workdir(arguments.workdir)
    folders = {"--data": arguments.data, "--unigram": arguments.unigram}
    records = {option: record_folder.open_folder(path, option) for option, path in folders.items() if path is not None}
    for option, one in records.items():
        evaluation.check_records(workdir.config.model, workdir.vocabulary, one, option)
    data = records["--data"]
    result = evaluation.evaluate(workdir.trained_bilm(which=arguments.checkpoint), data, arguments.batch_size)
    found = dataclasses.asdict(result)
    if "--unigram" in records:
        found["unigram_perplexity"] = unigram_perplexity(records["--unigram"], data)
    print(json.dumps(found))


def _assignments(arguments: argparse.Namespace) -> list[str]:
    options = {name: getattr(arguments, name) for name in ("epochs", "patience", "seed")}
    return [*arguments.assignments, *(f"train.{name}={value}" for name, value in options.items() if value is not None)]


def _strategy(gpus: str | None):
    """Returns the strategy for `--gpus` and `TF_CONFIG`; None when neither is given."""
    import tensorflow as tf

    from elmo_tf.training import workers

    if gpus is None:
        return workers.from_environment()
    there = tf.config.list_physical_devices("GPU")
    wanted = gpus.split(",")
    numbers = [str(number) for number in range(len(there))]
    if not set(wanted) <= set(numbers) or len(set(wanted)) < len(wanted):
        raise InputError(
            f"--gpus: expected different ones of the GPUs here, {', '.join(numbers) or 'none'}, found {gpus!r}"
        )
    # TensorFlow takes the memory of every GPU it sees.
    tf.config.set_visible_devices([there[int(number)] for number in wanted], "GPU")
    if several := workers.from_environment():
        return several
    return tf.distribute.MirroredStrategy([f"GPU:{number}" for number in range(len(wanted))])
