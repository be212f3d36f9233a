"""CoVe's layers (`cove.py`) in the probes of ELMo's, and its top layer in the named entity system.

    python benchmarks/cove_compared.py pos --data DIR --workdir DIR
    python benchmarks/cove_compared.py wsd --data DIR --workdir DIR
    python benchmarks/cove_compared.py ner --data DIR --workdir DIR --output DIR

--data is a folder with ud_ewt, semcor30 and uner_ewt, as for `probes.py` and `paper_table.py`; --workdir is that of
`cove.py train`. `ner` is the run of `paper_table.py --only uner --fractions 0.1 --more-epochs` with CoVe's top layer,
times a learned gamma, in place of ELMo; an interrupted run resumes. Prints a table, then a line of JSON.
"""

import argparse
import json
import math
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks.cove import CoVe
from benchmarks.probes import FILES
from elmo_tf.annotated import conllu, senses
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.probes import pos, wsd
from elmo_tf.tasks import fitting, ner
from elmo_tf.tasks.recipe import chosen
from elmo_tf.tasks.token_vectors import TokenVectors, encoded, word_table

SETTINGS = ["recipe=small", "fit.epochs=80", "fit.patience=20", "fit.judge_every=4"]
FRACTION = 0.1


class TopLayer(keras.layers.Layer):
    """CoVe's top layer of known sentences, times gamma and with the dropout that the recipe has for ELMo."""

    def __init__(self, model: CoVe, sentences: list[list[str]], dropout_rate: float):
        super().__init__(name="cove")
        self.supports_jit = False  # XLA has no strings
        self._token_mask = TokenMask()
        self._known = {tuple(encoded(sentences[row])): layers[-1] for row, layers in model.embed(sentences)}
        self._dim = next(iter(self._known.values())).shape[-1]
        self._dropout = keras.layers.Dropout(dropout_rate)

    def build(self, _):
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")

    def call(self, tokens, training=False):
        found = tf.ensure_shape(tf.numpy_function(self._look_up, [tokens], tf.float32), (None, None, self._dim))
        return self._dropout(self.gamma * found, training=training)

    def compute_mask(self, tokens, previous_mask=None):
        return self._token_mask(tokens)

    def compute_output_spec(self, tokens, training=False):
        return keras.KerasTensor((*tokens.shape, self._dim), self.compute_dtype)

    def _look_up(self, tokens: np.ndarray) -> np.ndarray:
        found = np.zeros((*tokens.shape, self._dim), np.float32)
        for place, row in enumerate(tokens.tolist()):
            vectors = self._known[tuple(token for token in row if token)]
            found[place, : len(vectors)] = vectors
        return found


def train_ner(model: CoVe, data: pathlib.Path, output: pathlib.Path) -> dict[str, float]:
    """Returns the dev scores of the best epoch of the named entity system, seed 0."""
    system = ner.Task(chosen(ner.Task.recipes, SETTINGS))
    train, dev = (system.read(data / "uner_ewt" / f"{name}.conll.xz") for name in ("train", "dev"))
    order = np.random.default_rng(0).permutation(len(train))  # as `--fraction` does
    train = [train[row] for row in sorted(order[: math.ceil(FRACTION * len(train))])]
    system.labels = system.labels_of(train)
    texts = [[one.tokens for one in part] for part in (train, dev)]
    keras.utils.set_random_seed(system.recipe.fit.seed)
    vectors = TokenVectors(system.recipe, word_table(system.recipe, *texts), None)
    vectors.elmo = TopLayer(model, texts[0] + texts[1], system.recipe.elmo.dropout_rate)
    output.mkdir(parents=True, exist_ok=True)
    history = fitting.fit(system, system.network(vectors), train, dev, output)
    best = fitting.best_epoch(history, system.metric)
    return history[best]["dev"] | {"best_epoch": best + 1, "train_examples": len(train)}


def main() -> None:
    """Runs a probe or trains the tagger."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("pos", "wsd", "ner"))
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--workdir", type=pathlib.Path, required=True, help="of cove.py")
    parser.add_argument("--output", type=pathlib.Path, help="of ner: a folder for its state")
    arguments = parser.parse_args()
    model = CoVe(arguments.workdir)
    if arguments.what == "ner":
        found = train_ner(model, arguments.data, arguments.output or arguments.workdir / "ner")
    else:
        paths = {name: arguments.data / path for name, path in FILES[arguments.what].items()}
        if arguments.what == "pos":
            results = pos.probe(model, *(conllu.read_conllu(paths[name]) for name in ("train", "test")))
        else:
            results = wsd.probe(model, *wsd.split(senses.read_semcor(paths["train"])))
        print(results.table())
        found = results.to_json()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
