"""Run by path in a process of its own: does a SavedModel, loaded as a user would, return the vectors it was saved with?

    python standalone_checker.py SAVEDMODEL SAMPLE_VECTORS.npz

It does not import elmo_tf, so a model that needs elmo_tf cannot pass. It imports tensorflow-text for a model with the
unicode tokenizer. The contract is loaded from the file beside this one.
"""

import pathlib
import re
import runpy
import sys
import types

import numpy as np
import tensorflow as tf

contract = types.SimpleNamespace(**runpy.run_path(str(pathlib.Path(__file__).with_name("contract.py"))))


def main(savedmodel: str, sample_vectors: str) -> list[str]:
    """Returns what is wrong with the model, a line each."""
    expected = dict(np.load(sample_vectors))
    if not expected.keys() >= set(contract.SAMPLE_FIELDS):
        return _problems_of_calls(tf.saved_model.load(savedmodel), expected)
    sentences, tokenizer, tolerance = (expected.pop(name) for name in contract.SAMPLE_FIELDS)
    if tokenizer == "unicode":
        import tensorflow_text  # noqa: F401, PLC0415
    words = [sentence.split() for sentence in sentences]
    model = tf.saved_model.load(savedmodel)
    problems = [f"no attribute {name!r}" for name in contract.ATTRIBUTES if not hasattr(model, name)]
    problems += [f"signature {name!r} is missing" for name in contract.SIGNATURES if name not in model.signatures]
    if problems:
        return problems
    max_chars = model.signatures["char_ids"].structured_input_signature[1]["char_ids"].shape[-1]
    inputs = _inputs(sentences, words, max_chars)
    # From the initial states, `stream` returns what `tokens` does, and the next states.
    states = model.initial_states(len(sentences))
    inputs["stream"] = inputs["tokens"] | states
    outputs = {name: model.signatures[name](**arguments) for name, arguments in inputs.items()}
    outputs["__call__"] = model(tf.constant(sentences), False)
    problems += [f"stream: output {name!r} is missing" for name in states if name not in outputs["stream"]]
    texts = _texts(sentences, words)
    scores = {name: expected.pop(name) for name in contract.SCORE_OUTPUTS if name in expected}
    if scores:
        found = model.signatures[contract.SCORE](strings=tf.constant(sentences))
        values = {name: value.numpy() for name, value in found.items()}
        wanted = scores | {"tokens": texts["tokens"]}
        problems += [f"{contract.SCORE}: {problem}" for problem in _differences(values, wanted, tolerance)]
    expected = _with_parts(expected)
    for name, found in outputs.items():
        # The call does what the signature `default` does.
        known = contract.text_outputs(contract.SIGNATURES.get(name, "default"), tokenizer.item())
        wanted = expected | {output: texts[output] for output in known}
        values = {output: value.numpy() for output, value in found.items() if output not in states}
        problems += [f"{name}: {problem}" for problem in _differences(values, wanted, tolerance)]
    for row, sentence in enumerate(sentences):
        alone = model.signatures["default"](strings=tf.constant([sentence]))["elmo"].numpy()[0]
        if not _close(alone, expected["elmo"][row, : len(alone)], tolerance):
            problems.append(f"default: {sentence!r} alone differs from itself in a batch")
    return problems


def _problems_of_calls(model, samples: dict[str, np.ndarray]) -> list[str]:
    """Checks a model other than ELMo itself; its samples are called `signature/inputs/name`, `.../outputs/name`."""
    problems = []
    for signature, function in model.signatures.items():
        prefixes = (f"{signature}/inputs/", f"{signature}/outputs/")
        inputs, expected = (
            {name.removeprefix(prefix): value for name, value in samples.items() if name.startswith(prefix)}
            for prefix in prefixes
        )
        found = {name: value.numpy() for name, value in function(**inputs).items()}
        # The file stores strings at a fixed width, TensorFlow returns them as objects.
        expected |= {name: value.astype(object) for name, value in expected.items() if value.dtype.kind == "S"}
        problems += [f"{signature}: {problem}" for problem in _differences(found, expected, samples["tolerance"])]
    return problems


def _inputs(sentences: np.ndarray, words: list[list[bytes]], max_chars: int) -> dict[str, dict[str, tf.Tensor]]:
    """Returns the same sentences as inputs of every signature but `stream`."""
    lengths = np.array([len(sentence) for sentence in words], np.int32)
    forms = {
        "strings": sentences,
        "tokens": _padded(words),
        "sequence_len": lengths,
        "char_ids": _char_ids(words, max(lengths), max_chars),
    }
    return {
        name: {argument: tf.constant(forms[argument]) for argument in contract.FUNCTIONS[function]}
        for name, function in contract.SIGNATURES.items()
        if function != "stream"
    }


def _padded(words: list[list[bytes]]) -> np.ndarray:
    longest = max(map(len, words))
    return np.array([[*sentence, *[b""] * (longest - len(sentence))] for sentence in words], object)


def _texts(sentences: np.ndarray, words: list[list[bytes]]) -> dict[str, np.ndarray]:
    """Returns the tokens and their places in the sentences, which the outputs of these names have to equal."""
    tokens = _padded(words)
    offsets = np.zeros((*tokens.shape, 2), np.int32)
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(re.finditer(rb"\S+", sentence)):
            offsets[row, place] = word.span()
    return {"tokens": tokens, "offsets": offsets}


def _char_ids(sentences: list[list[bytes]], max_length: int, max_chars: int) -> np.ndarray:
    """Returns character ids, encoded here a second time on purpose: the graph's own code is what is checked."""
    ids = np.zeros((len(sentences), max_length, max_chars), np.int32)
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            spelled = [259, *(byte + 1 for byte in word[: max_chars - 2]), 260]
            ids[row, place] = spelled + [261] * (max_chars - len(spelled))
    return ids


def _with_parts(expected: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the stored outputs and those that are parts of them."""
    layers = expected["layers"]
    parts = {contract.lstm_outputs(number): layers[:, number] for number in range(1, layers.shape[1])}
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
    """Whether they differ by at most `tolerance` times the largest value, or times 1 if all are smaller.

    Texts and places have to be the same.
    """
    if value.dtype.kind in "Oi":
        return np.array_equal(value, wanted)
    limit = tolerance * np.abs(wanted).max(initial=1)
    return value.shape == wanted.shape and bool(np.all(np.abs(value * 1.0 - wanted * 1.0) <= limit))


if __name__ == "__main__":
    found = main(*sys.argv[1:])
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
