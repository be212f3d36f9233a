"""Makes the two files of the model in the box from what `elmo-tf dump-weights` has written.

    elmo-tf dump-weights --workdir runs/books --output build/books
    python benchmarks/pack_model.py build/books elmo_tf/published/books

The weights become float16, compressed: less than half the size, and programs that read published files read them.
float16 keeps 11 bits of a weight, bfloat16 would keep 8, and HDF5 has no bfloat16. Prints a line of JSON.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
from typing import Any

import h5py
import numpy as np

from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.published.models import OPTIONS_FILE, WEIGHTS_FILE

_MOST_BYTES = 10_000_000


def pack(dumped: str | os.PathLike, output: str | os.PathLike) -> dict[str, Any]:
    """Writes `options.json` and a smaller `weights.hdf5` to the folder `output`, in place of older ones.

    Args:
        dumped: the folder of `elmo-tf dump-weights`.
        output: made if it does not exist.

    Returns:
        `parameters`; `bytes` of the two files; `largest_change`, the largest rounding error relative to the largest
        weight of its array; `size` and `sha256` of `weights.hdf5`, for the row in `elmo_tf/published/models.py`.

    Raises:
        InputError: if a weight is too large for float16, or the files have more than 10 MB.
    """
    dumped, output = pathlib.Path(dumped), pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    parameters, largest_change = 0, 0.0
    small = output / f".{WEIGHTS_FILE}.incomplete"
    try:
        with h5py.File(dumped / WEIGHTS_FILE) as source, h5py.File(small, "w", track_order=False) as packed:
            for name, values in _arrays(source).items():
                with np.errstate(over="ignore"):
                    halves = values.astype(np.float16)
                if not np.isfinite(halves).all():
                    raise InputError("dumped", f"weights of {name} below {np.finfo(np.float16).max}", "larger ones")
                packed.create_dataset(name, data=halves, compression="gzip", shuffle=True, track_times=False)
                change = np.abs(halves.astype(np.float32) - values).max() / max(np.abs(values).max(), 1e-30)
                parameters, largest_change = parameters + values.size, max(largest_change, float(change))
        size = small.stat().st_size + (dumped / OPTIONS_FILE).stat().st_size
        if size > _MOST_BYTES:
            raise InputError("dumped", f"a model of at most {_MOST_BYTES:,} bytes when packed", f"{size:,}")
        small.replace(output / WEIGHTS_FILE)
    finally:
        small.unlink(missing_ok=True)
    shutil.copyfile(dumped / OPTIONS_FILE, output / OPTIONS_FILE)
    staging.sync(output)
    weights = (output / WEIGHTS_FILE).read_bytes()
    row = {"size": len(weights), "sha256": hashlib.sha256(weights).hexdigest()}
    return {"parameters": parameters, "bytes": size, "largest_change": largest_change} | row


def _arrays(file: h5py.File) -> dict[str, np.ndarray]:
    found = {}
    file.visititems(lambda name, item: found.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
    return found


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dumped", help="the folder of `elmo-tf dump-weights`")
    parser.add_argument("output", help="elmo_tf/published/books")
    arguments = parser.parse_args()
    print(json.dumps(pack(arguments.dumped, arguments.output)))


if __name__ == "__main__":
    main()
