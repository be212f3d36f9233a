"""The commands `train`, `finetune` and `evaluate`."""

import argparse
import dataclasses
import logging
import os
import shlex
from typing import Any

from elmo_tf import config as config_lib
from elmo_tf.cli.arguments import add_checkpoint_argument, add_command, non_negative, positive
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.workdir.folder import is_workdir, open_workdir

_log = logging.getLogger("elmo_tf")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    help_text = "train a biLM on records; run again with the same --workdir to resume"
    train = add_command(commands, "train", _train, help_text, on_gpu=True)
    train.set_defaults(other_flags={"config": "--preset, --set", "strategy": "--gpus", "train.seed": "--seed"})
    add = train.add_argument
    add("--preset", metavar="NAME", help=f"{', '.join(config_lib.PRESETS)}; not needed to resume")
    help_text = (
        "train a smaller preset as the released model was trained: Adagrad, constant rate, dropout 0.1, float32; in an "
        "existing workdir it replaces these settings, as --set does"
    )
    add("--paper-recipe", action="store_true", help=help_text)
    _add_training_arguments(train)

    help_text = "continue training a biLM on other text"
    finetune = add_command(commands, "finetune", _finetune, help_text, on_gpu=True)
    finetune.set_defaults(other_flags={"config": "--set", "strategy": "--gpus", "train.seed": "--seed"})
    finetune.add_argument("--from", dest="source", required=True, metavar="WORKDIR", help="the model to start from")
    _add_training_arguments(finetune)

    help_text = (
        "print the perplexity of held-out records as JSON (full softmax in float32, or TF32 on GPUs that have it); "
        "each direction predicts `tokens` tokens: the `words` of the text and one boundary per sentence"
    )
    evaluate = add_command(commands, "evaluate", _evaluate, help_text, on_gpu=True)
    add = evaluate.add_argument
    add("--workdir", required=True, metavar="DIR", help="a workdir of `elmo-tf train`")
    add("--data", required=True, metavar="DIR", help="records made with the workdir's vocabulary")
    add_checkpoint_argument(evaluate)
    help_text = (
        "parallel streams, each carrying its LSTM state; the number slightly changes the result (default: the "
        "workdir's train.batch_size, as in `train --heldout`)"
    )
    add("--batch-size", type=positive, metavar="N", help=help_text)
    add("--unigram", metavar="DIR", help="also print the perplexity of a unigram model of these records")


def _add_training_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", required=True, metavar="DIR", help="records to train on")
    add("--workdir", required=True, metavar="DIR", help="checkpoints and logs; created if it does not exist")
    add("--heldout", metavar="DIR", help="records to evaluate on; see train.eval_steps")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=non_negative, metavar="N", help="train up to this step (train.steps)")
    help_text = (
        "train up to this many passes over the data (train.epochs; default in a new workdir: 10; a workdir keeps its "
        "length)"
    )
    length.add_argument("--epochs", type=positive, metavar="N", help=help_text)
    help_text = "stop after N evaluations without a better --heldout perplexity (train.patience, 0 by default: never)"
    add("--patience", type=non_negative, metavar="N", help=help_text)
    add("--seed", type=non_negative, metavar="N", help="random seed (train.seed; default: 0)")
    help_text = "change a setting (docs/settings.md lists all); may be repeated"
    add("--set", action="append", default=[], dest="assignments", metavar="KEY=VALUE", help=help_text)


def _train(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import loop

    assignments = _assignments(arguments)

    def with_options(config: config_lib.Config) -> config_lib.Config:
        recipe = config_lib.with_paper_recipe(config) if arguments.paper_recipe else config
        return config_lib.override(recipe, assignments)

    from_preset = with_options(config_lib.preset(arguments.preset)) if arguments.preset else None
    if is_workdir(arguments.workdir):
        config = with_options(open_workdir(arguments.workdir).config)
        if from_preset:
            # The preset's recipe does not replace the workdir's; a different model will be rejected.
            config = dataclasses.replace(config, model=from_preset.model)
    elif from_preset:
        config = from_preset
    else:
        raise InputError("preset", f"a new workdir needs a preset: {', '.join(config_lib.PRESETS)}")
    loop.train(config, arguments.data, arguments.workdir, **_shared_arguments(arguments))
    _log_next_command(arguments.workdir)


def _finetune(arguments: argparse.Namespace) -> None:
    from elmo_tf.training import finetuning

    paths = arguments.source, arguments.data, arguments.workdir
    finetuning.finetune(*paths, assignments=_assignments(arguments), **_shared_arguments(arguments))
    _log_next_command(arguments.workdir)


def _log_next_command(workdir: str) -> None:
    if "TF_CONFIG" not in os.environ:  # several workers all run this
        _log.info("next: elmo-tf export --workdir %s --output savedmodels/NAME", shlex.quote(workdir))


def _shared_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments that `train` and `finetune` share, from `heldout` on."""
    from elmo_tf.training import cluster

    strategy = cluster.from_environment()
    return {"heldout": arguments.heldout, "strategy": strategy}


def _evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tf import api
    from elmo_tf.records import record_folder
    from elmo_tf.training.evaluation import unigram_perplexity

    unigram = None
    if arguments.unigram is not None:  # checked before the slow evaluation
        unigram = record_folder.open_folder(arguments.unigram)
        open_workdir(arguments.workdir).check_records(unigram)
    result = api.evaluate(arguments.workdir, arguments.data, arguments.checkpoint, arguments.batch_size)
    figures = dataclasses.asdict(result)
    if unigram is not None:
        figures["unigram_perplexity"] = unigram_perplexity(unigram, record_folder.open_folder(arguments.data))
    print(json_file.dumps(figures))


def _assignments(arguments: argparse.Namespace) -> list[str]:
    options = {name: getattr(arguments, name) for name in ("steps", "epochs", "patience", "seed")}
    given = [f"train.{name}={value}" for name, value in options.items() if value is not None]
    if arguments.steps is not None:
        given.append("train.epochs=null")
    if arguments.epochs is not None:
        given.append("train.steps=null")
    return [*arguments.assignments, *given]
