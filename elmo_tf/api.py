"""What a program does with a trained model: `elmo_tf.evaluate`, `export` and `load`."""

import logging
import os
import pathlib
from collections.abc import Sequence

from elmo_tf import extras, sources
from elmo_tf.embedder import Embedder
from elmo_tf.errors import renamed
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import writing
from elmo_tf.training import devices, evaluation, precision
from elmo_tf.training.evaluation import Evaluation
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import Workdir, open_workdir

_log = logging.getLogger("elmo_tf")


def evaluate(
    workdir: str | os.PathLike,
    data: str | os.PathLike,
    checkpoint: str | int = "latest",
    batch_size: int | None = None,
) -> Evaluation:
    """Returns the perplexity of a trained model on held-out text: full softmax, every token, each direction.

    All GPUs that TensorFlow sees divide the streams among them.

    Args:
        workdir: what `train` returned, or its path.
        data: a folder of records made with the model's vocabulary.
        checkpoint: `"latest"`, `"best"` (by held-out perplexity during training) or a step.
        batch_size: streams that the sentences are dealt to; the LSTM state is carried along each. None: the workdir's
            `train.batch_size`, as in training and in the command `elmo-tf evaluate`.

    Raises:
        InputError: if a folder or checkpoint is missing or damaged, the model has no softmax, or the records do not
            fit it.
    """
    opened = open_workdir(workdir)
    records = open_records(data, opened, "data")
    devices.warn_of_unused_gpus()
    strategy = devices.all_gpus()
    with strategy.scope():
        bilm, progress = opened.trained(str(checkpoint))
    recipe = opened.config.train
    result = evaluation.evaluate(bilm, records, batch_size or recipe.batch_size, recipe.unroll_steps, strategy)
    products, names = precision.of_products("float32"), devices.names(strategy)
    _log.info("step %s: %s, %s products, on %s", f"{progress.step:,}", result.summary(), products, names)
    return result


def open_records(path: str | os.PathLike, workdir: Workdir, parameter: str = "data") -> record_folder.Records:
    """Returns records that the workdir's model can read; `InputError` about `parameter` if it cannot."""
    with renamed(path=parameter, records=parameter):
        records = record_folder.open_folder(path)
        evaluation.check_records(workdir, records)
    return records


def export(
    workdir: str | os.PathLike,
    output: str | os.PathLike,
    checkpoint: str | int = "latest",
    mix: str | int | Sequence[float] = "average",
    gamma: float = 1.0,
    tokenizer: str = "whitespace",
    warm_text: str | os.PathLike | None = None,
) -> pathlib.Path:
    """Writes a trained model as the SavedModel `output/<version>/`, once a fresh process has verified it.

    Args:
        workdir: what `train` returned, or its path.
        output: the model's folder; the new version is one above those in it.
        checkpoint: `"latest"`, `"best"` (by held-out perplexity during training) or a step.
        mix: weights of the layers: `"average"`, `"top"`, the number of a layer, 0 being the token layer, or scalar
            parameters, one per layer, softmax-normalized.
        gamma: scale of the ELMo vector.
        tokenizer: how the signature `default` splits sentences: `"whitespace"`, or `"unicode"`, which needs
            tensorflow-text (`elmo-tf[text]`) here and in every program that loads the model.
        warm_text: a text file, one sentence per line; every sentence then starts from the LSTM state after this text
            instead of from zero.

    Returns:
        the new version's folder.

    Raises:
        InputError: if the workdir or checkpoint is missing or damaged, or an argument cannot be used.
        OSError: if the model cannot be written; nothing is left then.
        elmo_tf.savedmodel.verification.VerificationError: if the written model does not compute what the network
            does; nothing is left then.
    """
    opened = open_workdir(workdir)
    bilm, progress = opened.trained(str(checkpoint))
    _log.info("exporting the model of step %s", f"{progress.step:,}")
    return writing.export(
        bilm,
        opened.config,
        output,
        mix=mix,
        gamma=gamma,
        provenance=checkpoints.provenance(opened, progress.step),
        tokenizer=tokenizer,
        warm_text=warm_text,
    )


def load(source: sources.Path) -> Embedder:
    """Returns a model that is ready to encode sentences.

        elmo = elmo_tf.load("books")
        for one in elmo.encode(["The bank lends money .", "A bank of the river ."]):
            print(one.tokens, one.vectors.shape)

    A SavedModel computes with its own graph, mix and initial state. Everything else is built in memory from its
    weights: the mix is the average of the layers, and each sentence starts from the zero state. For the object of a
    SavedModel with its signatures, use `tf.saved_model.load`.

    Args:
        source: a SavedModel (its version's folder, or the model's with the newest version), a workdir, a folder of
            `options.json` and `weights.hdf5`, the pair of these two files, or the name of a published model
            (`elmo-tf models` lists them), which is fetched at its first use.

    Raises:
        InputError: if it is none of these, a file is damaged, or a published model cannot be fetched.
        ModuleNotFoundError: if the model has the unicode tokenizer and tensorflow-text is not installed.
    """
    with extras.required():
        return Embedder(sources.find(source))
