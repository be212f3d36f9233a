"""Replays training steps recorded from bilm-tf through this project's training step, and compares.

    python benchmarks/replay_reference.py --trace TRACE.npz

A trace holds `options` (bilm-tf's JSON; dropout 0 and the full softmax, so that nothing is random), the weights
`init/*` and `final/*` and the accumulators `accum/*` under the names of bilm-tf's checkpoints, the inputs `batchN/*`,
and per step `loss`, `losses_fwd_bwd` and `gnorm_preclip`; `state/K ...` are the LSTM states after the last step. Prints
a table and a line of JSON. Takes some ten seconds for a small network.

The difference of a weight or accumulator is max |ours - theirs| / max |theirs| of the variable, because single elements
may be zero and variables differ in size; the largest is reported. Losses and states are of order one, so their
differences are absolute.
"""

import argparse
import json
import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from elmo_tf.model.bilm import PlainBiLM
from elmo_tf.model.fast import BiLM
from elmo_tf.published import weights as published_weights
from elmo_tf.published.arrays import Names, StoredArrays
from elmo_tf.published.options import parse_options
from elmo_tf.records.windows import Window
from elmo_tf.training.step import Trainer

_WINDOW = {"char_ids": "tokens_characters", "token_ids": "token_ids", "targets": "next_token_id"}


class Trace:
    """A file of recorded steps."""

    def __init__(self, path: str):
        with np.load(path) as arrays:
            self._arrays = dict(arrays)
        self.path = str(path)
        options = json.loads(str(self["options"]))
        self.vocab_size = options["n_tokens_vocab"]
        self.config = parse_options(options, source=self.path)
        if self.config.train.dropout_rate or self.config.train.num_sampled:
            raise ValueError(f"{path}: expected options with dropout 0 and sample_softmax false")
        self.num_steps = len(self["loss"])

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def variables(self, kind: str) -> StoredArrays:
        """The arrays `kind/NAME:0` by their names."""
        prefix = f"{kind}/"
        arrays = {
            name.removeprefix(prefix).removesuffix(":0"): array
            for name, array in self._arrays.items()
            if name.startswith(prefix)
        }
        shapes = {name: array.shape for name, array in arrays.items()}
        return StoredArrays(f"{self.path}, {kind}", shapes, arrays.__getitem__)

    def window(self, step: int) -> Window:
        """The inputs of a step, character ids one more than bilm-tf's."""
        arrays = {
            ours: np.stack([self[f"batch{step + 1}/{theirs}{end}"] for end in ("", "_reverse")]).astype(np.int32)
            for ours, theirs in _WINDOW.items()
        }
        arrays["char_ids"] = (arrays["char_ids"] + 1).astype(np.uint16)
        arrays["token_ids"] = arrays["token_ids"][0]
        return Window.of(**arrays, mask=np.ones(arrays["token_ids"].shape, bool))

    def states(self) -> list[np.ndarray]:
        """The final states, forward layer 0 cell, recurrent, layer 1 ..., then backward."""
        numbers = {int(match[1]): name for name in self._arrays if (match := re.match(r"state/(\d+)", name))}
        return [self._arrays[numbers[number]] for number in sorted(numbers)]


def replay(trace: Trace, network: type[PlainBiLM] = BiLM) -> tuple[list[tuple], dict[str, float]]:
    """Trains a network of this class on the trace's batches from its first weights.

    Returns:
        a row a step (losses and gradient norm, theirs and ours), and the worst differences.
    """
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    trainer = Trainer(strategy, trace.config.train, lambda: network(trace.config.model, trace.vocab_size))
    names = published_weights.names(trainer.bilm)
    shapes = {name.checkpoint: name.shape for _, name in names}
    published_weights.assign(trace.variables("init"), shapes, {name.checkpoint: value for value, name in names})
    weights, accumulators = (_expected(trace.variables(kind), names) for kind in ("final", "accum"))
    rows = []
    for step in range(trace.num_steps):
        result = [*map(float, trainer.step(trace.window(step), step, trainer.config.learning_rate))]
        theirs = (*trace["losses_fwd_bwd"][step], trace["gnorm_preclip"][step], trace["loss"][step])
        rows.append((*map(float, theirs), *result, (result[0] + result[1]) / 2))
    losses, norms = np.array(rows)[:, [0, 1, 3, 4, 5, 7]], np.array(rows)[:, [2, 6]]
    states = zip(trace.states(), tf.nest.flatten(trainer.gathered_states()), strict=True)
    return rows, {
        "max_loss_difference": float(np.abs(losses[:, :3] - losses[:, 3:]).max()),
        "max_gradient_norm_relative": float(np.abs(norms[:, 1] / norms[:, 0] - 1).max()),
        "max_weight_relative": _worst(weights, [variable.value for variable, _ in names]),
        "max_accumulator_relative": _worst(accumulators, trainer.optimizer.slots["accumulators"]),
        "max_state_difference": float(max(np.abs(theirs - ours).max() for theirs, ours in states)),
    }


def _expected(source: StoredArrays, names: list[tuple[keras.Variable, Names]]) -> list[tf.Variable]:
    """Returns the arrays of `source` in the network's order and shapes, checked as weights are."""
    variables = [tf.Variable(tf.zeros(variable.shape)) for variable, _ in names]
    by_name = {name.checkpoint: variable for (_, name), variable in zip(names, variables, strict=True)}
    published_weights.assign(source, {name.checkpoint: name.shape for _, name in names}, by_name)
    return variables


def _worst(expected: list[tf.Variable], actual: list[tf.Variable]) -> float:
    """Returns the largest difference, relative to the largest value of its variable."""
    differences = []
    for theirs, ours in zip(expected, actual, strict=True):
        scale, difference = np.abs(theirs.numpy()).max(), np.abs(theirs.numpy() - ours.numpy()).max()
        differences.append(difference / scale if difference else 0.0)
    return float(np.max(differences))


def main(argv: list[str] | None = None) -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace", required=True, metavar="FILE.npz")
    rows, figures = replay(Trace(parser.parse_args(argv).trace))
    print(f"{'step':>4}  {'forward loss':>21}  {'backward loss':>21}  {'gradient norm':>21}   (theirs, ours)")
    for number, row in enumerate(rows):
        pairs = "  ".join(f"{row[k]:10.6f} {row[k + 4]:10.6f}" for k in range(3))
        print(f"{number + 1:4}  {pairs}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
