"""Time and peak memory of import, export, load and one sentence at the size of the original ELMo.

    python benchmarks/import_original.py

Random weights in the layout of the published files (93.6 million numbers, 374 MB) go through the functions behind
`elmo-tf import`. Each step runs in a new process; its time includes the start of Python and TensorFlow. Prints a table
and a line of JSON. Takes about a minute on two cores, and 2 GB of disk.
"""

# ruff: noqa: PLC0415 - the parent process measures its children and imports nothing large

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "embedding": {"dim": 16},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
SENTENCE = b"The river 's bank was flooded ."


def published_shapes() -> dict[str, tuple[int, ...]]:
    """Returns the datasets of the published file, spelled out independently of the project's table."""
    shapes = {"char_embed": (261, 16), "CNN_proj/W_proj": (2048, 512), "CNN_proj/b_proj": (512,)}
    for number, (width, count) in enumerate(OPTIONS["char_cnn"]["filters"]):
        shapes[f"CNN/W_cnn_{number}"], shapes[f"CNN/b_cnn_{number}"] = (1, width, 16, count), (count,)
    for number in range(2):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{number}/W_{gate}"], shapes[f"CNN_high_{number}/b_{gate}"] = (2048, 2048), (2048,)
        for layer in range(2):
            cell = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{cell}/W_0": (1024, 16384), f"{cell}/B": (16384,), f"{cell}/W_P_0": (4096, 512)}
    return shapes


def write_files(folder: pathlib.Path) -> None:
    """Writes `options.json` and `weights.hdf5`."""
    import h5py
    import numpy as np

    random = np.random.default_rng(0)
    (folder / "options.json").write_text(json.dumps(OPTIONS))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, shape in published_shapes().items():
            file[name] = random.normal(0, 0.05, shape).astype(np.float32)


def import_and_export(folder: pathlib.Path) -> None:
    """Makes a verified SavedModel of the files."""
    from elmo_tf.published import weights as published_weights
    from elmo_tf.savedmodel import writing

    files = folder / "options.json", folder / "weights.hdf5"
    config, bilm = published_weights.load(*files)
    writing.export(bilm, config, folder / "savedmodel", provenance=published_weights.provenance(*files))


def only_import(folder: pathlib.Path) -> None:
    """Reads the files into a network."""
    from elmo_tf.published import weights as published_weights

    published_weights.load(folder / "options.json", folder / "weights.hdf5")


def load_and_embed(folder: pathlib.Path) -> None:
    """Loads the SavedModel with TensorFlow alone and embeds one sentence."""
    import numpy as np
    import tensorflow as tf

    model = tf.saved_model.load(str(folder / "savedmodel" / "1"))
    elmo = model.signatures["default"](strings=tf.constant([SENTENCE]))["elmo"].numpy()
    if elmo.shape != (1, len(SENTENCE.split()), 1024) or not np.isfinite(elmo).all() or not elmo.any():
        raise RuntimeError(f"expected a vector of 1024 for each of {len(SENTENCE.split())} tokens, found {elmo.shape}")


STEPS = {
    "write random weights": write_files,
    "import": only_import,
    "import, export, verify": import_and_export,
    "load, embed a sentence": load_and_embed,
}


def measure(step: str, folder: pathlib.Path) -> tuple[float, float]:
    """Runs a step in a child process; returns its seconds and its peak memory in GB (10^9 bytes)."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    started = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - started
    return seconds, float((folder / "peak").read_text())


def main() -> None:
    """Runs every step and prints its time and memory."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step is not None:
        STEPS[arguments.step](arguments.folder)
        # The export is verified in a child of this process: both count.
        own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        (arguments.folder / "peak").write_text(str((own + children) * 1024 / 1e9))
        return
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'step':24} {'seconds':>8} {'peak GB':>8}")
        for step in STEPS:
            seconds, peak = measure(step, pathlib.Path(folder))
            print(f"{step:24} {seconds:8.1f} {peak:8.2f}", flush=True)
            figures[step] = {"seconds": round(seconds, 2), "peak_gb": round(peak, 3)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
