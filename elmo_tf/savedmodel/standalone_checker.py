"""Standalone script: checks that a SavedModel, loaded as a user would, reproduces its stored sample outputs.

    python standalone_checker.py SAVEDMODEL SAMPLE_VECTORS.npz

It does not import elmo_tf, so a model that needs elmo_tf cannot pass. It imports tensorflow-text for a model with the
unicode tokenizer. `sample_calls.py` describes the file of samples.
"""

import sys

import numpy as np
import tensorflow as tf


def main(savedmodel: str, sample_vectors: str) -> list[str]:
    """Returns what is wrong with the model, a line each."""
    samples = dict(np.load(sample_vectors))
    tolerance, tokenizer = samples.pop("tolerance"), samples.pop("tokenizer", None)
    signatures = dict.fromkeys(name.partition("/")[0] for name in samples)
    if tokenizer == "unicode":
        import tensorflow_text  # noqa: F401, PLC0415
    model = tf.saved_model.load(savedmodel)
    problems = []
    for signature in signatures:
        if signature not in model.signatures:
            problems.append(f"signature {signature!r} is missing")
            continue
        inputs, expected = (_arrays(samples, f"{signature}/{kind}/") for kind in ("inputs", "outputs"))
        calls = {signature: model.signatures[signature](**inputs)}
        if signature == "default" and callable(model):
            calls["__call__"] = model(*map(tf.constant, inputs.values()))
        for name, outputs in calls.items():
            values = {output: value.numpy() for output, value in outputs.items()}
            problems += [f"{name}: {problem}" for problem in _differences(values, expected, tolerance)]
    return problems


def _arrays(samples: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Returns the arrays with this prefix, without it; strings as TensorFlow returns them, as Python objects."""
    return {
        name.removeprefix(prefix): value.astype(object) if value.dtype.kind == "S" else value
        for name, value in samples.items()
        if name.startswith(prefix)
    }


def _differences(outputs: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> list[str]:
    problems = [f"output {name!r} is missing" for name in expected if name not in outputs]
    for name, value in outputs.items():
        exported = expected.get(name)
        if exported is None or value.shape != exported.shape or value.dtype != exported.dtype:
            problems.append(f"output {name!r}: {value.dtype} {value.shape} is not what was exported")
        elif not _close(value, exported, tolerance):
            problems.append(f"output {name!r} differs from what was exported")
    return problems


def _close(value: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether they differ by at most `tolerance` times the largest value, or times 1 if all are smaller.

    Strings and integers must be equal.
    """
    if value.dtype.kind in "Oi":
        return np.array_equal(value, expected)
    limit = tolerance * np.abs(expected).max(initial=1)
    return bool(np.all(np.abs(value * 1.0 - expected * 1.0) <= limit))


if __name__ == "__main__":
    problems = main(*sys.argv[1:])
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(bool(problems))
