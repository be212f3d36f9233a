"""What programs do with a workdir: `elmo_tf.evaluate` and `export`."""

import logging
import os
import pathlib
from collections.abc import Sequence

from elmo_tf import precision
from elmo_tf.errors import InputError
from elmo_tf.published import card
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import writing
from elmo_tf.training import devices, evaluation
from elmo_tf.training.evaluation import Evaluation
from elmo_tf.training.fit import LanguageModel
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir

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
    if batch_size is not None and batch_size < 1:
        raise InputError("batch_size", "at least 1", batch_size)
    opened = open_workdir(workdir)
    records = record_folder.open_folder(data)
    opened.check_records(records)
    devices.warn_of_unused_gpus()
    strategy = devices.all_gpus()
    with strategy.scope():
        bilm, progress = checkpoints.restore(opened, str(checkpoint))
    recipe = opened.config.train
    result = evaluation.evaluate(bilm, records, batch_size or recipe.batch_size, recipe.unroll_steps, strategy)
    products, names = precision.float32_products(), devices.names(strategy)
    _log.info("step %s: %s, %s products, on %s", f"{progress.step:,}", result.summary(), products, names)
    return result


def export(
    workdir: str | os.PathLike | LanguageModel,
    output: str | os.PathLike,
    checkpoint: str | int = "latest",
    mix: str | int | Sequence[float] = "average",
    gamma: float = 1.0,
    tokenizer: str | None = None,
    softmax: bool = False,
) -> pathlib.Path:
    """Writes a trained model as the SavedModel `output/<version>/`, once a fresh process has verified it.

    Args:
        workdir: what `train` returned, or its path; or a model trained by Keras's `fit`.
        output: the model's folder; the new version is the highest in it plus 1.
        checkpoint: of a workdir: `"latest"`, `"best"` (by held-out perplexity during training) or a step.
        mix: weights of the layers: `"average"`, `"top"`, the number of a layer, 0 being the token layer, or scalar
            parameters, one per layer, softmax-normalized.
        gamma: scale of the ELMo vector.
        tokenizer: how the signature `default` splits sentences: `"whitespace"`; `"penn"`; `"characters"`; or
            `"unicode"`, which needs tensorflow-text (`elmo-tf[text]`) here and in every program that loads the model.
            None: as the training text was split.
        softmax: whether to export the softmax as well: the signature `score` then returns log-probabilities.

    Returns:
        the new version's folder.

    Raises:
        InputError: if the workdir or checkpoint is missing or damaged, or an argument cannot be used.
        OSError: if the model cannot be written; nothing is left then.
        elmo_tf.savedmodel.verification.VerificationError: if the written model does not compute what the network
            does; nothing is left then.

    Examples:
        >>> path = elmo_tf.export("runs/mine", "savedmodels/mine", mix="top")
        >>> print(path)
        savedmodels/mine/1
        >>> outputs = tf.saved_model.load(path).signatures["default"](strings=tf.constant(["A bank lends money"]))
        >>> outputs["elmo"].shape[:2]
        TensorShape([1, 4])
    """
    if isinstance(workdir, LanguageModel):
        if checkpoint != "latest":
            raise InputError("checkpoint", '"latest", as only a workdir has others', repr(checkpoint))
        opened, bilm, step = workdir.trained()
        facts = {"training": f"{step:,} steps"}
    else:
        opened = open_workdir(workdir)
        if softmax and opened.vocabulary is None:
            raise InputError(str(opened.path), "this model has no softmax")
        bilm, progress = checkpoints.restore(opened, str(checkpoint))
        step, facts = progress.step, card.trained(opened, progress)
    _log.info("exporting the model of step %s", f"{step:,}")
    words = opened.vocabulary
    return writing.export(
        bilm,
        opened.config,
        output,
        mix=mix,
        gamma=gamma,
        provenance={
            "step": step,
            "vocabulary": words and {"size": len(words), "sha256": words.sha256()},
        },
        tokenizer=opened.tokenizer if tokenizer is None else tokenizer,
        vocabulary=words if softmax else None,
        facts=facts,
    )
