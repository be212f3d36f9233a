"""Makes the files of a system that comes with the package, such as `english-ner`, from a trained workdir.

    python benchmarks/pack_tagger.py runs/ner english elmo_tf/published/english-ner

The biLM, whose name is the second argument, is left out. The weights are stored as compressed float16. Prints a line of
JSON with `size` and `sha256` of `weights.hdf5`, for the row in `elmo_tf/published/models.py`.
"""

import argparse
import hashlib
import json
import os
import pathlib
from typing import Any

import h5py
import keras
import msgspec
import numpy as np

from elmo_tf import config as config_lib
from elmo_tf import tasks
from elmo_tf.published.models import OPTIONS_FILE, WEIGHTS_FILE
from elmo_tf.tasks.layers.token_layers import WordEmbedding
from elmo_tf.tasks.trained import PublishedOptions


def pack(workdir: str | os.PathLike, elmo: str, output: str | os.PathLike) -> dict[str, Any]:
    """Writes a trained system without its biLM to the folder `output`; its word vectors have to be learned ones.

    Returns:
        `parameters`, without the biLM's; `size` and `sha256` of the weights.
    """
    trained, folder = tasks.load(workdir), pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    recipe, labels = config_lib.to_dict(trained.system.recipe), trained.system.labels
    options = msgspec.to_builtins(PublishedOptions(trained.system.name, elmo, recipe, labels))
    (folder / OPTIONS_FILE).write_text(json.dumps(options) + "\n", "utf-8")
    (words,) = (layer.words for layer in trained.network.layers if isinstance(layer, WordEmbedding))
    arrays = [keras.ops.convert_to_numpy(variable) for variable in trained.network.trainable_variables]
    with h5py.File(folder / WEIGHTS_FILE, "w") as file:
        file.create_dataset("words", data=words, dtype=h5py.string_dtype(), compression="gzip", track_times=False)
        for number, array in enumerate(arrays):
            smaller = {"compression": "gzip", "shuffle": True} if array.ndim else {}
            file.create_dataset(str(number), data=array.astype(np.float16), track_times=False, **smaller)
    content = (folder / WEIGHTS_FILE).read_bytes()
    row = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {"parameters": sum(array.size for array in arrays)} | row


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("workdir", help="a workdir of `elmo-tf task NAME train`")
    parser.add_argument("elmo", help="the name of the biLM that it was trained with")
    parser.add_argument("output", help="elmo_tf/published/NAME")
    print(json.dumps(pack(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
