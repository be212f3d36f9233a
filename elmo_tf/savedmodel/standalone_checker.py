"""Run by path in a process of its own: does a SavedModel, loaded as a user would, do what it did when written?

    python standalone_checker.py SAVEDMODEL SAMPLES.npz

Nothing of elmo_tf is imported, so that a model which needs it cannot pass; tensorflow-text is for a model whose
tokenizer is tensorflow-text's.
"""

import os
import sys

import numpy as np

SIGNATURES = ("serving_default", "default", "tokens", "char_ids", "stream")


def main(savedmodel: str, probes_file: str) -> list[str]:
    """Returns what is wrong with the model, a line each."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf  # noqa: PLC0415 - not at the top: the exporting process imports this file for its path

    expected = dict(np.load(probes_file))
    probes, tokenizer, tolerance = (expected.pop(name) for name in ("probes", "tokenizer", "tolerance"))
    if tokenizer == "unicode":
        import tensorflow_text  # noqa: F401, PLC0415
    expected = _with_parts(expected)
    model = tf.saved_model.load(savedmodel)
    problems = [f"no attribute {name!r}" for name in ("trainable_variables", "variables") if not hasattr(model, name)]
    problems += [f"signature {name!r} is missing" for name in SIGNATURES if name not in model.signatures]
    if problems:
        return problems
    max_chars = model.signatures["char_ids"].structured_input_signature[1]["char_ids"].shape[-1]
    inputs = _inputs(probes, max_chars)
    outputs = {name: model.signatures[name](**_tensors(arguments)) for name, arguments in inputs.items()}
    outputs["__call__"] = model(tf.constant(probes), False)
    # From the states that every sentence starts with, `stream` is `tokens`; it returns the next states, too.
    states = model.initial_states(len(probes))
    found = model.signatures["stream"](**_tensors(inputs["tokens"]), **states)
    problems += [f"stream: output {name!r} is missing" for name in states if name not in found]
    outputs["stream"] = {name: value for name, value in found.items() if name not in states}
    for name, found in outputs.items():
        problems += [
            f"{name}: {problem}"
            for problem in _differences({k: v.numpy() for k, v in found.items()}, expected, tolerance)
        ]
    for row, probe in enumerate(probes):
        alone = model.signatures["default"](strings=tf.constant([probe]))["elmo"].numpy()[0]
        if not _close(alone, expected["elmo"][row, : len(alone)], tolerance):
            problems.append(f"default: {probe!r} alone differs from itself in a batch")
    return problems


def _tensors(arrays: dict) -> dict:
    import tensorflow as tf  # noqa: PLC0415

    return {name: tf.constant(array) for name, array in arrays.items()}


def _inputs(probes: np.ndarray, max_chars: int) -> dict[str, dict[str, np.ndarray]]:
    """Returns the same sentences as inputs of every signature that takes text."""
    words = [probe.split() for probe in probes]
    lengths = np.array([len(sentence) for sentence in words], np.int32)
    tokens = [sentence + [b""] * (max(lengths) - len(sentence)) for sentence in words]
    return {
        "serving_default": {"strings": probes},
        "default": {"strings": probes},
        "tokens": {"tokens": np.array(tokens, object), "sequence_len": lengths},
        "char_ids": {"char_ids": _char_ids(words, max(lengths), max_chars)},
    }


def _char_ids(sentences: list[list[bytes]], max_length: int, max_chars: int) -> np.ndarray:
    """Returns character ids by the letter of the convention, written again here on purpose."""
    ids = np.zeros((len(sentences), max_length, max_chars), np.int32)
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            spelled = [259, *(byte + 1 for byte in word[: max_chars - 2]), 260]
            ids[row, place] = spelled + [261] * (max_chars - len(spelled))
    return ids


def _with_parts(expected: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the outputs that are stored and those that are parts of them."""
    layers = expected["layers"]
    parts = {f"lstm_outputs{number}": layers[:, number] for number in range(1, layers.shape[1])}
    return expected | parts | {"word_emb": layers[:, 0, :, : layers.shape[-1] // 2]}


def _differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> list[str]:
    problems = [f"output {name!r} is missing" for name in expected if name not in found]
    for name, value in found.items():
        wanted = expected.get(name)
        if wanted is None or value.shape != wanted.shape or value.dtype != wanted.dtype:
            problems.append(f"output {name!r}: {value.dtype} {value.shape} is not what was exported")
        elif not _close(value, wanted, tolerance):
            problems.append(f"output {name!r} differs from what was exported")
    return problems


def _close(value: np.ndarray, wanted: np.ndarray, tolerance: float) -> bool:
    """Whether they differ by `tolerance` of the largest value at most, or of 1 if that is more."""
    limit = tolerance * np.abs(wanted).max(initial=1)
    return value.shape == wanted.shape and bool(np.all(np.abs(value * 1.0 - wanted * 1.0) <= limit))


if __name__ == "__main__":
    found = main(*sys.argv[1:])
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
