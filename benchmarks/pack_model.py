"""Makes the files of the bundled model from the output of `elmo-tf dump-weights`.

    elmo-tf dump-weights --workdir runs/english --output build/english --softmax
    python benchmarks/pack_model.py build/english elmo_tf/published/english --divide-tokens-by 4

Given several folders, for example of two training stages, it averages their weights.

The vectors of a trained token layer are often several times as long as those of the LSTM layers, and dominate an
average of the layers. `--divide-tokens-by` divides the token vectors by a power of two and multiplies the first LSTMs'
weights for them by it. All other layers keep their bits.

The weights are stored as compressed float16: less than half the size, and programs that read published files can read
them. float16 keeps 11 bits of a weight (bfloat16 8, and HDF5 has no bfloat16). Prints a line of JSON.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.published.models import OPTIONS_FILE, SOFTMAX_FILE, VOCABULARY_FILE, WEIGHTS_FILE

_MOST_BYTES = 40_000_000


def pack(dumped: Sequence[str | os.PathLike], output: str | os.PathLike, divide_tokens_by: int = 1) -> dict[str, Any]:
    """Writes the files of `elmo-tf dump-weights` to the folder `output`, smaller, in place of older ones.

    Args:
        dumped: folders of `elmo-tf dump-weights`, with or without a softmax.
        output: made if it does not exist.
        divide_tokens_by: a power of two.

    Returns:
        `parameters` of the network; `bytes` of all files; `largest_change`, the largest rounding error relative to the
        largest weight of its array; `size` and `sha256` of `weights.hdf5`, for the row in
        `elmo_tf/published/models.py`.

    Raises:
        InputError: if a weight is too large for float16, `divide_tokens_by` is no power of two, or the files have more
            than 40 MB; or if the models differ in more than their weights.
    """
    sources, output = [pathlib.Path(folder) for folder in dumped], pathlib.Path(output)
    for name in (OPTIONS_FILE, VOCABULARY_FILE):
        if len({path.read_bytes() if (path := folder / name).exists() else None for folder in sources}) > 1:
            raise InputError("dumped", "models that differ in their weights only", f"different files {name}")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output) as scratch:
        packed = pathlib.Path(scratch)
        parameters, largest_change = _round(sources, packed / WEIGHTS_FILE, divide_tokens_by)
        shutil.copyfile(sources[0] / OPTIONS_FILE, packed / OPTIONS_FILE)
        if (sources[0] / SOFTMAX_FILE).exists():
            largest_change = max(largest_change, _round(sources, packed / SOFTMAX_FILE)[1])
            shutil.copyfile(sources[0] / VOCABULARY_FILE, packed / VOCABULARY_FILE)
        size = sum(path.stat().st_size for path in packed.iterdir())
        if size > _MOST_BYTES:
            raise InputError(str(sources[0]), f"a model of at most {_MOST_BYTES:,} bytes when packed", f"{size:,}")
        for path in packed.iterdir():
            path.replace(output / path.name)
    staging.sync(output)
    weights = (output / WEIGHTS_FILE).read_bytes()
    row = {"size": len(weights), "sha256": hashlib.sha256(weights).hexdigest()}
    return {"parameters": parameters, "bytes": size, "largest_change": largest_change} | row


def _round(folders: list[pathlib.Path], target: pathlib.Path, divide_tokens_by: int = 1) -> tuple[int, float]:
    """Writes the means of the arrays of `target`'s name in float16.

    Returns their number of values and the largest rounding error.
    """
    models = [_arrays(folder / target.name) for folder in folders]
    arrays = {name: np.mean([model[name] for model in models], axis=0, dtype=np.float32) for name in models[0]}
    rounded, changes = {}, []
    for name, array in arrays.items():
        with np.errstate(over="ignore"):
            rounded[name] = array.astype(np.float16).astype(np.float32)
        if not np.isfinite(rounded[name]).all():
            raise InputError(str(folders[0]), f"weights of {name} below {np.finfo(np.float16).max}", "larger ones")
        changes.append(np.abs(rounded[name] - array).max() / max(np.abs(array).max(), 1e-30))
    if divide_tokens_by != 1:
        _divide_tokens(rounded, divide_tokens_by)
    with h5py.File(target, "w", track_order=False) as packed:
        for name, array in rounded.items():
            halves = array.astype(np.float16)
            stored = halves if np.array_equal(halves, array) else array  # too small for float16 after a division
            packed.create_dataset(name, data=stored, compression="gzip", shuffle=True, track_times=False)
    return sum(array.size for array in arrays.values()), float(max(changes))


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, node: arrays.update({name: node[()]} if isinstance(node, h5py.Dataset) else {}))
    return arrays


def _divide_tokens(arrays: dict[str, np.ndarray], factor: int) -> None:
    """Divides the token vectors, and multiplies the first LSTMs' weights for them."""
    if factor < 1 or factor & (factor - 1):
        raise InputError("divide_tokens_by", "a power of two", factor)
    for name in ("CNN_proj/W_proj", "CNN_proj/b_proj"):
        arrays[name] /= factor
    for direction in (0, 1):
        kernel = arrays[f"RNN_{direction}/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"]  # the input's rows, then the state's
        kernel[: len(arrays["CNN_proj/b_proj"])] *= factor


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dumped", nargs="+", help="folders of `elmo-tf dump-weights`")
    parser.add_argument("output", help="elmo_tf/published/english")
    parser.add_argument("--divide-tokens-by", type=int, default=1, metavar="N", help="a power of two (1)")
    print(json.dumps(pack(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
