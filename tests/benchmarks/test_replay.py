"""The replay of recorded steps, on records of our own step: names, order, ids, and what it calls a difference."""

import json

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import replay_reference
from elmo_tf.model.bilm import BiLM
from elmo_tf.published import weights as published_weights
from elmo_tf.published.arrays import Source
from elmo_tf.published.options import parse_options
from elmo_tf.records.windows import Window
from elmo_tf.training.step import Trainer
from tests.published import published_files as files

VOCAB_SIZE, BATCH_SIZE, UNROLL_STEPS, NUM_STEPS = 9, 3, 4, 2


def record() -> dict[str, np.ndarray]:
    """Returns the arrays of a trace under the reference's names."""
    recipe = {
        "n_tokens_vocab": VOCAB_SIZE,
        "batch_size": BATCH_SIZE,
        "unroll_steps": UNROLL_STEPS,
        "dropout": 0.0,
        "sample_softmax": False,
        "all_clip_norm_val": 2.0,
    }
    options = files.options() | recipe
    config = parse_options(options)
    drawn = files.checkpoint_arrays(files.draw_hdf5(options), VOCAB_SIZE)
    names = [name for name in drawn if name.startswith("lm/") and not name.endswith("Adagrad")]
    trace = {"options": np.array(json.dumps(options))} | {f"init/{name}:0": drawn[name] for name in names}
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    trainer = Trainer(strategy, config.train, lambda: BiLM(config.model, VOCAB_SIZE))
    source = Source("drawn", {name: drawn[name].shape for name in names}, drawn.__getitem__)
    ours = published_weights.names(trainer.bilm)
    published_weights.assign(source, {name.checkpoint: (name.variable, name.shape) for name in ours})
    random, results = np.random.default_rng(0), []
    for step in range(NUM_STEPS):
        arrays = draw_arrays(random, config.model.char_cnn.max_chars_per_token)
        for field, theirs in replay_reference._WINDOW.items():
            for direction, array in zip(("", "_reverse"), arrays[field], strict=True):
                trace[f"batch{step + 1}/{theirs}{direction}"] = array - 1 if "char" in theirs else array
        window = Window.of(
            **arrays | {"token_ids": arrays["token_ids"][0]}, mask=np.ones((BATCH_SIZE, UNROLL_STEPS), bool)
        )
        results.append([float(value) for value in trainer.step(window, step, trainer.config.learning_rate)])
    losses = np.array(results)
    trace |= {"losses_fwd_bwd": losses[:, :2], "loss": losses[:, :2].mean(1), "gnorm_preclip": losses[:, 2]}
    for name, accumulator in zip(ours, trainer.optimizer.slots["accumulators"], strict=True):
        trace[f"final/{name.checkpoint}:0"] = name.variable.numpy().reshape(name.shape)
        trace[f"accum/{name.checkpoint}:0"] = accumulator.numpy().reshape(name.shape)
    for number, state in enumerate(tf.nest.flatten(trainer.gathered_states())):
        trace[f"state/{number} lm/whatever:0"] = state
    return trace


def draw_arrays(random, max_chars) -> dict[str, np.ndarray]:
    shape = (2, BATCH_SIZE, UNROLL_STEPS)
    chars = random.integers(1, 262, (*shape, max_chars)).astype(np.uint16)
    return {"char_ids": chars} | {
        name: random.integers(0, VOCAB_SIZE, shape).astype(np.int32) for name in ("token_ids", "targets")
    }


@pytest.mark.slow
def test_every_difference_shows_in_its_own_figure(tmp_path, capsys):
    spoiled = {name: array.copy() for name, array in record().items()}
    spoiled["losses_fwd_bwd"][1, 1] += 0.125
    spoiled["gnorm_preclip"][0] *= 2
    weight, accumulator = "final/lm/CNN_high_0/b_transform:0", "accum/lm/softmax/W:0"
    for name, factor in ((weight, 4), (accumulator, 8)):
        spoiled[name].flat[np.abs(spoiled[name]).argmax()] *= factor
    spoiled["state/7 lm/whatever:0"][2, 1] += 0.25
    np.savez(tmp_path / "trace.npz", **spoiled)
    replay_reference.main(["--trace", str(tmp_path / "trace.npz")])
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == pytest.approx(
        {
            "max_loss_difference": 0.125,
            "max_gradient_norm_relative": 0.5,
            "max_weight_relative": 3 / 4,
            "max_accumulator_relative": 7 / 8,
            "max_state_difference": 0.25,
        },
        abs=1e-5,
    )
