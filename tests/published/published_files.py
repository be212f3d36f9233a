"""Published files drawn by the tests, their names spelled out."""

import json
import os
import pathlib
import re

import h5py
import numpy as np
import tensorflow as tf

# One variation of the network each; `{}` is two layers with everything.
ARCHITECTURES = {
    "everything": {},
    "no_highway_no_skip": {"n_highway": 0, "use_skip_connections": False},
    "one_layer_one_highway": {"n_layers": 1, "n_highway": 1},
    "three_layers_tanh": {"n_layers": 3, "activation": "tanh"},
    "eight_layers": {"n_layers": 8},
    "no_lstm_projection": {"dim": 8},
    "no_token_projection": {"projection_dim": 18},
    "tight_clips": {"cell_clip": 0.2, "proj_clip": 0.1},
    "no_clips": {"cell_clip": None, "proj_clip": None},
    "261_characters_of_20": {"n_characters": 261, "max_characters_per_token": 20},
}


def options(**changes) -> dict:
    """Returns the options of a micro network, in the published files' form."""
    lstm = {"dim": 24, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3, "use_skip_connections": True}
    cnn = {"activation": "relu", "filters": [[1, 4], [2, 6], [3, 8]], "n_highway": 2, "embedding": {"dim": 4}}
    cnn |= {"n_characters": 262, "max_characters_per_token": 50}
    return {
        "lstm": lstm | {key: value for key, value in changes.items() if key in lstm},
        "char_cnn": cnn | {key: value for key, value in changes.items() if key not in lstm},
    }


def draw_hdf5(values: dict) -> dict[str, np.ndarray]:
    """Returns random float32 arrays under the HDF5 names that a network with such options has."""
    lstm, cnn = values["lstm"], values["char_cnn"]
    num_filters, width = sum(count for _, count in cnn["filters"]), lstm["projection_dim"]
    width_of_one = cnn["embedding"]["dim"]
    shapes = {"char_embed": (261, width_of_one)}
    for number, (size, count) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{number}"], shapes[f"CNN/b_cnn_{number}"] = (1, size, width_of_one, count), (count,)
    for number in range(cnn["n_highway"]):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{number}/W_{gate}"] = (num_filters, num_filters)
            shapes[f"CNN_high_{number}/b_{gate}"] = (num_filters,)
    if num_filters != width:
        shapes["CNN_proj/W_proj"], shapes["CNN_proj/b_proj"] = (num_filters, width), (width,)
    for direction in range(2):
        for layer in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes[f"{cell}/W_0"], shapes[f"{cell}/B"] = (2 * width, 4 * lstm["dim"]), (4 * lstm["dim"],)
            if width < lstm["dim"]:
                shapes[f"{cell}/W_P_0"] = (lstm["dim"], width)
    random = np.random.default_rng(len(shapes))
    return {name: random.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}


def reference_weights(arrays: dict[str, np.ndarray], softmax: tuple | None = None) -> dict[str, np.ndarray]:
    """Returns the weights by our names, float64, from arrays under HDF5 names."""
    weights = {} if softmax is None else {"softmax/kernel": softmax[0], "softmax/bias": softmax[1]}
    for theirs, array in arrays.items():
        name = theirs
        for pattern, ours in (
            ("^char_embed$", "char_cnn/embedding"),
            ("^CNN/W_cnn_", "char_cnn/kernel_"),
            ("^CNN/b_cnn_", "char_cnn/bias_"),
            ("^CNN_high_", "char_cnn/highway_"),
            ("W_carry$", "gate_kernel"),
            ("b_carry$", "gate_bias"),
            ("W_transform$", "transform_kernel"),
            ("b_transform$", "transform_bias"),
            ("^CNN_proj/W_proj$", "char_cnn/projection/kernel"),
            ("^CNN_proj/b_proj$", "char_cnn/projection/bias"),
            (r"^RNN_0/RNN/MultiRNNCell/Cell(\d)/LSTMCell", r"forward_\1"),
            (r"^RNN_1/RNN/MultiRNNCell/Cell(\d)/LSTMCell", r"backward_\1"),
            ("W_0$", "kernel"),
            ("B$", "bias"),
            ("W_P_0$", "projection_kernel"),
        ):
            name = re.sub(pattern, ours, name)
        weights[name] = array.astype(np.float64)[0] if theirs.startswith("CNN/W_cnn_") else array.astype(np.float64)
    return weights


def write_pair(folder: pathlib.Path, values: dict, arrays: dict[str, np.ndarray]) -> tuple[pathlib.Path, pathlib.Path]:
    paths = folder / "options.json", folder / "weights.hdf5"
    paths[0].write_text(json.dumps(values))
    with h5py.File(paths[1], "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return paths


def read_hdf5(path: str | os.PathLike) -> dict[str, np.ndarray]:
    arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: arrays.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
    return arrays


def checkpoint_arrays(arrays: dict[str, np.ndarray], vocab_size: int, single: bool = False) -> dict[str, np.ndarray]:
    """Returns what `draw_hdf5` drew under the names of a training checkpoint, with a softmax, slots and counters.

    `single`: the names that a single LSTM layer has.
    """
    cells = "rnn/lstm_cell" if single else "rnn/multi_rnn_cell/cell_{}/lstm_cell"
    random = np.random.default_rng(1)
    variables = {}
    for name, array in arrays.items():
        for layer in range(3):
            name = name.replace(f"RNN/MultiRNNCell/Cell{layer}/LSTMCell", cells.format(layer))  # noqa: PLW2901
        endings = (("/W_0", "/kernel"), ("/B", "/bias"), ("/W_P_0", "/projection/kernel"))
        for theirs, ours in endings if name.startswith("RNN") else ():
            name = name.removesuffix(theirs) + ours if name.endswith(theirs) else name  # noqa: PLW2901
        variables[f"lm/{name}"] = array
    width = next(len(array) // 2 for name, array in arrays.items() if name.endswith("LSTMCell/W_0"))
    variables["lm/softmax/W"] = random.normal(0, 0.4, (vocab_size, width)).astype(np.float32)
    variables["lm/softmax/b"] = random.normal(0, 0.4, vocab_size).astype(np.float32)
    slots = {
        f"{name}/Adagrad": random.uniform(1, 2, array.shape).astype(np.float32) for name, array in variables.items()
    }
    return variables | slots | {"global_step": np.float32(7), "train_perplexity": np.float32(0)}


def write_checkpoint(prefix: pathlib.Path, arrays: dict[str, np.ndarray]) -> pathlib.Path:
    """Writes a checkpoint as TF1's Saver does."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(arrays),
        shape_and_slices=[""] * len(arrays),
        tensors=[tf.constant(array) for array in arrays.values()],
    )
    return prefix
