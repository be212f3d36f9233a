"""Labels of words, such as parts of speech, by a linear classifier on each layer alone, and on their learned mix."""

import collections
import warnings

import keras
import numpy as np
import sklearn.exceptions
import sklearn.linear_model
import sklearn.preprocessing
import tensorflow as tf
import threadpoolctl

from elmo_tf.annotated.columns import Tagged
from elmo_tf.errors import InputError
from elmo_tf.model.scalar_mix import ScalarMix
from elmo_tf.probes import vectors
from elmo_tf.probes.results import Results, Row

_MIX_EPOCHS, _MIX_BATCH_SIZE, _MIX_RATE = 3, 256, 1e-3
_MAX_ITERATIONS = 200  # of L-BFGS; further iterations gain less than 0.1 %


def probe(
    source: vectors.Source, train: list[Tagged], test: list[Tagged], seed: int = 0, labels: str = "upos"
) -> Results:
    """Returns the accuracy on `test` of logistic regressions trained on single tokens' vectors.

    There is one for each layer and one for the mix, whose scalar parameters are first learned together with a linear
    classifier, by gradient descent on the same tokens. The baseline is the most frequent tag of each word. A token
    whose label is "" is neither trained on nor tested, but is context of the others. `labels` says what the labels are.

    Raises:
        InputError: if `train` has fewer than two tags, or `test` has none of them.
    """
    tags = sorted({tag for _, tag in _labeled(train)})
    if len(tags) < 2:
        raise InputError("train", "at least two different tags", tags)
    if not set(tags) & (tested := {tag for _, tag in _labeled(test)}):
        raise InputError("test", f"tags of the training data, such as {tags[0]}", ", ".join(sorted(tested)[:5]))
    numbers = {tag: number for number, tag in enumerate(tags)}
    tag_ids = [np.array([numbers.get(tag, -1) for _, tag in _labeled(part)]) for part in (train, test)]
    tokens = [[sentence.tokens for sentence in part] for part in (train, test)]
    spans = [
        [[(n, n + 1) for n, tag in enumerate(sentence.labels or []) if tag] for sentence in part]
        for part in (train, test)
    ]
    layers = [vectors.embed(source, *part) for part in zip(tokens, spans, strict=True)]

    def scores(features: list[np.ndarray]) -> dict[str, float]:
        return {"accuracy": float(np.mean(classify(features[0], features[1], tag_ids[0]) == tag_ids[1]))}

    rows = [Row("most frequent tag", "baseline", {"accuracy": _most_frequent(train, test)})]
    for number in range(layers[0].shape[1]):
        features = [values[:, number].astype(np.float32) for values in layers]
        rows.append(Row(f"layer {number}", "layer", scores(features)))
    weights = _learned_weights(layers[0], tag_ids[0], len(tags), seed)
    mixed = [np.einsum("j,njd->nd", weights.astype(np.float32), values, dtype=np.float32) for values in layers]
    rows.append(Row("mix", "mix", scores(mixed)))
    details = {
        "train_tokens": len(tag_ids[0]),
        "test_tokens": len(tag_ids[1]),
        "tags": tags,
        "mix_weights": [round(float(weight), 4) for weight in weights],
    }
    return Results("POS", rows, details, labels=labels)


def classify(train: np.ndarray, test: np.ndarray, tag_ids: np.ndarray) -> np.ndarray:
    """Fits a logistic regression to the tags of `train`, int `(tokens,)`, and returns its predictions for `test`.

    `train` and `test`, float32 `(tokens, dim)`, are standardized in place.
    """
    scaler = sklearn.preprocessing.StandardScaler(copy=False).fit(train)
    model = sklearn.linear_model.LogisticRegression(max_iter=_MAX_ITERATIONS, tol=1e-3)
    # A single thread: with a busy core, multithreaded BLAS waits ten times longer than it computes.
    with warnings.catch_warnings(), threadpoolctl.threadpool_limits(1):
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)  # see _MAX_ITERATIONS
        model.fit(scaler.transform(train), tag_ids)
    return model.predict(scaler.transform(test))


class _Rows(keras.layers.Layer):
    """Rows of a float16 array by number, as float32; converts a batch at a time."""

    def __init__(self, array: np.ndarray):
        super().__init__()
        self._array = array
        self.supports_jit = False  # XLA cannot compile `tf.numpy_function`

    def call(self, numbers):
        rows = tf.numpy_function(lambda chosen: self._array[chosen], [numbers], tf.float16)
        return tf.cast(tf.ensure_shape(rows, (None, *self._array.shape[1:])), tf.float32)


def _learned_weights(layers: np.ndarray, tag_ids: np.ndarray, num_tags: int, seed: int) -> np.ndarray:
    """Returns the softmax-normalized weights of the layers, learned with a linear classifier."""
    keras.utils.set_random_seed(seed)
    num_layers, dim = layers.shape[1:]
    numbers = keras.Input((), dtype="int64")
    inputs = _Rows(layers)(numbers)
    mix = ScalarMix(num_layers)
    mixed = mix(keras.layers.Reshape((num_layers, 1, dim))(inputs))
    outputs = keras.layers.Dense(num_tags)(keras.layers.Reshape((dim,))(mixed))
    model = keras.Model(numbers, outputs)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(_MIX_RATE), loss)
    model.fit(np.arange(len(tag_ids)), tag_ids, batch_size=_MIX_BATCH_SIZE, epochs=_MIX_EPOCHS, verbose=0)
    return tf.nn.softmax(mix.scalar_parameters).numpy()


def _most_frequent(train: list[Tagged], test: list[Tagged]) -> float:
    """Returns the accuracy of each word's most frequent tag in `train`; new words get the most frequent tag of all."""
    pairs = [_labeled(part) for part in (train, test)]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for token, tag in pairs[0]:
        counts[token][tag] += 1
    best = {token: tags.most_common(1)[0][0] for token, tags in counts.items()}
    most_frequent = collections.Counter(tag for _, tag in pairs[0]).most_common(1)[0][0]
    return float(np.mean([best.get(token, most_frequent) == tag for token, tag in pairs[1]]))


def _labeled(sentences: list[Tagged]) -> list[tuple[str, str]]:
    """Returns the tokens that have a label, with their labels."""
    pairs = (pair for sentence in sentences for pair in zip(sentence.tokens, sentence.labels or [], strict=True))
    return [(token, tag) for token, tag in pairs if tag]
