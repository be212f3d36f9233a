"""The systems of the paper, each with and without ELMo.

    tagger = elmo_tf.tasks.load("runs/ner")
    print(tagger.predict([["Anna", "lives", "in", "New", "York"]]))

`elmo_tf.tasks.runs.train` trains a system, as `elmo-tf task NAME train` does. `Trained.export` writes a loaded system
as a SavedModel. Each system is one file with its recipe, network and scores; `systems.SYSTEMS` lists them. The other
modules here are shared.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmo_tf.tasks.trained import Trained


def load(workdir: str | os.PathLike, *others: str | os.PathLike) -> "Trained":
    """Returns the system that `elmo-tf task NAME train` trained in `workdir`, or a published system: "english-ner".

    With more workdirs, such as those of other seeds, it predicts from the mean of their probabilities.

    Raises:
        InputError: naming the folder or file, if it does not exist or its training is incomplete.
    """
    from elmo_tf.tasks import trained  # noqa: PLC0415 - imports Keras

    return trained.load_together([workdir, *others])
