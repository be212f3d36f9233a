"""Which part of the held-out text is evaluated, when all of it is, and what follows from both."""

import dataclasses
import os
import pathlib
import signal
import types

import numpy as np
import pytest

from elmo_tf.config import TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.records.record_folder import Records
from elmo_tf.training import heldout, loop
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.workdir import metrics_file
from elmo_tf.workdir.metrics_file import HeldoutLine
from tests import checks
from tests.helpers import MICRO, two_cpus
from tests.training.test_loop import assert_same, everything, with_train

SHAPE = {"batch_size": 4, "unroll_steps": 5}  # 20 tokens per window


def parts(tokens: int, **config) -> list[heldout.Part]:
    """Returns the parts of a held-out text of so many tokens, a sentence boundary included."""
    info = types.SimpleNamespace(tokens=tokens - 1, sentences=1, shards=[types.SimpleNamespace(sha256="abc")])
    return heldout.parts_of(Records(pathlib.Path(), info, None), TrainConfig(**SHAPE | config))


def test_a_part_is_so_many_tokens_in_whole_windows_unless_that_is_the_whole_text():
    assert [part.windows for part in parts(1000, eval_tokens=181)] == [10, None]
    assert parts(1000, eval_tokens=181) == parts(1000, eval_tokens=200)
    for tokens in (0, 981, 1000, 100_000):
        assert [part.windows for part in parts(1000, eval_tokens=tokens)] == [None]


def test_parts_whose_perplexities_differ_have_different_ids():
    assert len({part.id for tokens in (200, 220) for part in parts(1000, eval_tokens=tokens)}) == 3
    shapes = [{}, {"batch_size": 2}, {"unroll_steps": 10}]
    assert len({part.id for shape in shapes for part in parts(1000, eval_tokens=200, **shape)}) == 6


def test_evaluations_only_at_the_end_do_not_go_with_patience():
    with pytest.raises(InputError, match=r"^eval_steps: expected above 0, or null, with train\.patience, found 0"):
        TrainConfig(eval_steps=0, patience=1)


def lines(*values: tuple, **common) -> list[HeldoutLine]:
    """Returns evaluations from tuples of step, text and perplexity."""
    return [HeldoutLine(*row, **common) for row in values]


def test_only_evaluations_of_the_same_part_are_compared():
    whole = lines((3, "a", 6.0), whole=True)
    evaluations = lines((0, "a", 9.0), (1, "part", 8.0), (2, "part", 7.0), (3, "part", 7.5)) + whole
    assert metrics_file.best(evaluations).step == 2
    assert metrics_file.best(evaluations, steps=[1, 3]).step == 3
    assert metrics_file.evaluations_since_best(evaluations) == 1
    # Runs that were evaluated only at the end.
    assert metrics_file.best(whole + lines((9, "a", 5.0), whole=True)).step == 9
    # An evaluation of the whole text is compared with those that a run makes of it.
    evaluations = lines((0, "a", 9.0), whole=True) + lines((2, "a", 12.0), (4, "a", 14.0))
    assert [line.step for line in metrics_file.comparable(evaluations)] == [0, 2, 4]
    assert metrics_file.best(evaluations).step == 0


@pytest.mark.slow  # three networks are traced
def test_parts_are_the_first_windows_whichever_replicas_compute_them(records):
    strategy = two_cpus()
    model = dataclasses.replace(MICRO, lstm=dataclasses.replace(MICRO.lstm, num_layers=1))
    bilm = checks.randomize(BiLM(model, len(records.vocabulary)), scale=0.4)
    with strategy.scope():
        copy = BiLM(model, len(records.vocabulary))
    for variable, value in zip(copy.trainable_variables, bilm.trainable_variables, strict=True):
        variable.assign(value)
    # Three streams: the second replica has a row without text.
    evaluator = Evaluator(bilm)
    part, whole = evaluator.parts(records, [4, None], 3, 5)
    assert part.tokens == 4 * 3 * 5 < whole.tokens == records.info.tokens + records.info.sentences
    assert evaluator.parts(records, [None], 3, 5) == [whole]
    replicated = Evaluator(copy, strategy).parts(records, [4, None], 3, 5)
    for single, mirrored in zip((part, whole), replicated, strict=True):
        assert mirrored.perplexity == pytest.approx(single.perplexity, rel=checks.PERPLEXITY)
        without = {"forward_perplexity": 0, "backward_perplexity": 0, "perplexity": 0}
        assert dataclasses.replace(mirrored, **without) == dataclasses.replace(single, **without)


def evaluated(workdir) -> list[tuple[int, int, bool]]:
    """Returns step, tokens, and whether it is the whole text, of each evaluation."""
    evaluations = metrics_file.evaluations(workdir.metrics)
    assert np.isfinite([line.perplexity for line in evaluations]).all()
    return [(line.step, line.tokens, line.whole) for line in evaluations]


@pytest.mark.slow
def test_a_run_that_ended_before_its_first_evaluation_makes_it_when_it_resumes(records, tmp_path, monkeypatch):
    config = with_train(checkpoint_steps=4, eval_tokens=40)
    whole = loop.train(config, records.path, tmp_path / "whole", records.path, steps=8)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match=r"^stopped at step 4, "):
        patch.setattr(heldout.HeldoutEvaluation, "evaluate", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        loop.train(config, records.path, tmp_path / "parts", records.path, steps=8)
    parts = loop.train(config, records.path, tmp_path / "parts", records.path, steps=8)
    assert evaluated(parts) == [(4, 40, False), (8, 40, False), (8, 128, True)]
    assert parts.metrics.read_bytes() == whole.metrics.read_bytes()
    assert_same(everything(parts), everything(whole))
