"""Which part of the held-out text is evaluated, when all of it is, and what follows from both."""

import dataclasses
import errno
import json
import logging
import os
import pathlib
import signal
import types

import numpy as np
import pytest

from elmo_tf.bilm.model import BiLM
from elmo_tf.config import Config, TrainConfig
from elmo_tf.errors import InputError
from elmo_tf.files import staging
from elmo_tf.training import heldout, loop, metrics_file
from elmo_tf.training.evaluation import Evaluator, evaluate
from elmo_tf.training.finetuning import finetune
from elmo_tf.training.heldout import PART, WHOLE, Heldout
from elmo_tf.training.session import Session
from tests import checks
from tests.helpers import MICRO, two_cpus, write_records
from tests.training.test_loop import assert_same, everything, with_train

SHAPE = {"batch_size": 4, "unroll_steps": 5}  # 20 tokens per window


def text(tokens: int, **config) -> Heldout:
    """Returns a held-out text of so many tokens, a sentence boundary included."""
    info = {"tokens": tokens - 1, "sentences": 1, "shards": [{"sha256": "abc"}]}
    records = types.SimpleNamespace(info=info)
    return Heldout(records, None, TrainConfig(**SHAPE | config))


@pytest.mark.parametrize(
    ("window_seconds", "between", "tokens"),
    [
        (0.5, 95.0, 200),  # 5 s of 100, ten windows
        (0.5, 100.0, 200),  # 5.26 s: ten windows again
        (9.0, 95.0, 20),  # one window at least
        (0.1, 95.0, 0),  # fifty windows are the whole text
    ],
)
def test_a_part_takes_a_twentieth_of_the_time(window_seconds, between, tokens):
    assert text(1000).part_for(window_seconds, between) == tokens


def test_the_log_says_what_an_evaluation_takes_and_its_share_of_the_time():
    assert text(1000, eval_tokens=200).described(0.5, 95.0) == (
        "each evaluation uses the first 200 of 1,000 held-out tokens (train.eval_tokens), which takes 5.0 % of the time"
    )
    assert text(1000, eval_tokens=0).described(0.1, 95.0).startswith("each evaluation uses all 1,000 held-out tokens")


def test_the_log_says_what_to_do_if_even_one_window_takes_more_of_the_time():
    assert (
        text(1000, eval_tokens=20)
        .described(0.5, 1.0)
        .endswith("which takes 33.3 % of the time; evaluate less often with train.eval_steps")
    )


def test_a_part_is_another_text_than_the_whole_and_than_a_longer_part():
    ids = {text(1000, eval_tokens=tokens).part_id for tokens in (0, 200, 220)}
    assert len(ids) == 3 and text(1000, eval_tokens=0).id in ids
    # 181 to 200 tokens are ten windows.
    assert text(1000, eval_tokens=181).part_id == text(1000, eval_tokens=200).part_id
    assert text(1000, eval_tokens=999).part_id == text(1000).id
    assert text(1000).part_id is None


def test_a_text_in_another_number_of_streams_or_longer_windows_is_another_text():
    """Their perplexities differ."""
    shapes = [{}, {"batch_size": 2}, {"unroll_steps": 10}]
    assert len({text(1000, **shape).id for shape in shapes}) == 3
    assert len({text(1000, eval_tokens=200, **shape).part_id for shape in shapes}) == 3


def test_a_step_misses_its_part_and_at_the_end_the_whole_text():
    found = text(1000, eval_tokens=200)
    assert found.missing([], final=False) == PART
    assert found.missing([], final=True) == PART + WHOLE
    assert found.missing([found.part_id], final=True) == WHOLE
    assert found.missing([found.part_id, found.id], final=True) == 0
    assert text(1000, eval_tokens=0).missing([], final=True) == PART
    assert (text(1000).missing([], final=False), text(1000).missing([], final=True)) == (0, WHOLE)


def test_more_tokens_than_the_text_has_are_refused_unless_the_run_settled_them_on_another_text():
    info = {"tokens": 99, "sentences": 1, "shards": []}
    records, config = types.SimpleNamespace(info=info), Config(train=TrainConfig(eval_tokens=101))
    with pytest.raises(
        InputError, match=r"^train\.eval_tokens: expected at most the 100 tokens of `heldout`.*found 101"
    ):
        heldout.check_tokens(config, records, None)
    heldout.check_tokens(config, records, config)
    heldout.check_tokens(Config(train=TrainConfig(eval_tokens=100)), records, None)


def test_what_was_measured_counts_for_the_same_text_and_interval(tmp_path):
    assert heldout.measured(tmp_path, "text", 4) is None
    heldout.store(tmp_path, 80, "text", 4)
    assert heldout.measured(tmp_path, "text", 4) == 80
    assert heldout.measured(tmp_path, "other text", 4) is heldout.measured(tmp_path, "text", 2) is None
    (tmp_path / heldout.FILE).write_text("{}")
    with pytest.raises(InputError, match=rf"^{tmp_path}/heldout.json: expected the key tokens, found none$"):
        heldout.measured(tmp_path, "text", 4)


@pytest.mark.parametrize(
    ("assignments", "forgotten"),
    [
        (["train.eval_tokens=null"], True),
        (["train.eval_tokens=80", "train.eval_tokens= null"], True),
        (["train.eval_tokens=null", "train.eval_tokens=80"], False),
        (["train.eval_steps=null"], False),
        ([], False),
    ],
)
def test_what_was_measured_is_forgotten_if_it_is_set_to_null(tmp_path, assignments, forgotten):
    heldout.store(tmp_path, 80, "text", 4)
    heldout.forget_if_asked(tmp_path, assignments)
    heldout.forget_if_asked(tmp_path / "absent", assignments)
    assert heldout.measured(tmp_path, "text", 4) == (None if forgotten else 80)


def test_an_evaluation_that_is_broken_off_stops_all_workers():
    """Also at a step at which they do not ask each other."""
    both = types.SimpleNamespace(count=2, is_chief=True, first=lambda number: number, any=lambda flag: flag)
    part = types.SimpleNamespace(tokens=40, missing=lambda *_: PART, evaluate=lambda *_: [])
    session = types.SimpleNamespace(
        **{"workers": both, "_heldout": part, "heldout_records": part, "interrupt": types.SimpleNamespace()},
        **{"evaluations": list, "evaluating_seconds": 0.0, "asked_to_stop": False, "saver": None, "step": 7},
        trainer=types.SimpleNamespace(config=TrainConfig(log_steps=5)),
    )
    session.interrupt.requested = False  # it is the other one
    Session.evaluate(session, types.SimpleNamespace(resume_clock=lambda: None))
    assert Session.stopping(session)


def test_a_checkpoint_of_step_0_is_evaluated_by_the_workers_that_did_not_write_it():
    done = []
    session = types.SimpleNamespace(
        workers=types.SimpleNamespace(is_chief=False),
        **{"saver": types.SimpleNamespace(saved_step=None), "step": 0, "at_evaluation": True},
        is_saved=lambda: bool(done),
        evaluate=lambda *_, final: done.append(("evaluated", final)),
    )

    def save(*_, needed):
        done.append(("saved", needed))

    session.save = save
    loop._begin(session, 0, None)
    assert done == [("saved", True), ("evaluated", True)]


def test_evaluations_only_at_the_end_do_not_go_with_patience():
    with pytest.raises(InputError, match=r"^eval_steps: expected above 0, or null, with train\.patience, found 0"):
        TrainConfig(eval_steps=0, patience=1)


def test_only_evaluations_of_the_same_part_are_compared():
    lines = [("a", 9.0), ("part", 8.0), ("part", 7.0), ("part", 7.5)]
    found = [{"step": step, "heldout": name, "perplexity": value} for step, (name, value) in enumerate(lines)]
    found.append({"step": 3, "heldout": "a", "perplexity": 6.0, "whole": True})
    assert metrics_file.best(found)["step"] == 2
    assert metrics_file.best(found, steps=[1, 3])["step"] == 3
    assert metrics_file.waited(found) == 1
    # Of a run that has been evaluated at its ends only, these count.
    assert metrics_file.best([found[-1], found[-1] | {"step": 9, "perplexity": 5.0}])["step"] == 9


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
    assert part.tokens == 4 * 3 * 5 < whole.tokens == records.info["tokens"] + records.info["sentences"]
    assert whole == evaluator(records, 3, 5)
    replicated = Evaluator(copy, strategy).parts(records, [4, None], 3, 5)
    for one, other in zip((part, whole), replicated, strict=True):
        assert other.perplexity == pytest.approx(one.perplexity, rel=checks.PERPLEXITY)
        assert dataclasses.replace(other, forward_perplexity=0, backward_perplexity=0, perplexity=0) == (
            dataclasses.replace(one, forward_perplexity=0, backward_perplexity=0, perplexity=0)
        )


@pytest.fixture(scope="module")
def watched(records, tmp_path_factory):
    """A run with evaluations of a part, watched by a hook that raises; what the hook got; and the log."""
    config, got, log = with_train(checkpoint_steps=100, eval_steps=4, eval_tokens=31), [], []

    def on_record(record):
        got.append(dict(record))
        record.clear()
        raise RuntimeError("no network")

    handler = logging.Handler()
    handler.emit = lambda line: log.append(line.getMessage())
    logging.getLogger("elmo_tf").addHandler(handler)
    logging.getLogger("elmo_tf").setLevel(logging.INFO)
    try:
        path = tmp_path_factory.mktemp("watched") / "w"
        workdir = loop.train(config, records.path, path, records.path, steps=9, on_record=on_record)
    finally:
        logging.getLogger("elmo_tf").removeHandler(handler)
    return workdir, got, log


def test_a_run_evaluates_a_part_on_its_way_and_all_at_its_end(watched, records):
    workdir, _, log = watched
    found = metrics_file.evaluations(workdir.metrics)
    assert [(one["step"], one["tokens"], one.get("whole", False)) for one in found] == [
        (4, 40, False),
        (8, 40, False),
        (9, 40, False),
        (9, 128, True),
    ]
    expected = evaluate(workdir.trained_bilm(), records, 2, 5)
    assert found[-1]["perplexity"] == pytest.approx(expected.perplexity, rel=checks.PERPLEXITY)
    assert any("% of the time, waiting for checkpoints" in line for line in log)


def test_a_checkpoint_of_every_evaluated_step_is_there(watched):
    names = sorted(path.name for path in (watched[0].path / "checkpoints").iterdir())
    assert names == ["step-00000004", "step-00000008", "step-00000009"]


def test_the_hook_gets_every_line_and_training_goes_on_when_it_raises(watched):
    workdir, got, log = watched
    assert got == [json.loads(line) for line in workdir.metrics.read_bytes().splitlines()]
    assert len(got) == 9 + 4
    (warning,) = [line for line in log if "on_record" in line]
    assert warning.startswith("warning: on_record raised RuntimeError: no network; training goes on")


def evaluated(workdir) -> list[tuple[int, int, bool]]:
    """Returns step, tokens, and whether it is the whole text, of each evaluation."""
    found = metrics_file.evaluations(workdir.metrics)
    assert np.isfinite([one["perplexity"] for one in found]).all()
    return [(one["step"], one["tokens"], one.get("whole", False)) for one in found]


@pytest.fixture
def part_of_40(monkeypatch):
    """What is measured does not depend on the machine."""
    monkeypatch.setattr(Heldout, "part_for", lambda _self, window, between: 40 if min(window, between) > 0 else None)


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["at its first evaluation", "a step before"])
def test_a_run_that_ended_before_its_first_evaluation_makes_it_when_it_resumes(
    records, tmp_path, monkeypatch, part_of_40, ended
):
    """Nothing is known then of the time that steps take; measuring it leaves no trace."""
    given = with_train(checkpoint_steps=4, eval_tokens=40)
    whole = loop.train(given, records.path, tmp_path / "whole", records.path, steps=8)
    measured = dataclasses.replace(given, train=dataclasses.replace(given.train, eval_tokens=None))
    if ended == "a step before":
        loop.train(measured, records.path, tmp_path / "parts", steps=3)
    else:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match=r"^stopped at step 4, "):
            patch.setattr(Session, "evaluate", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
            loop.train(measured, records.path, tmp_path / "parts", records.path, steps=8)
    parts = loop.train(measured, records.path, tmp_path / "parts", records.path, steps=8)
    assert evaluated(parts) == [(4, 40, False), (8, 40, False), (8, 128, True)]
    assert parts.metrics.read_bytes() == whole.metrics.read_bytes()
    assert_same(everything(parts), everything(whole))
    assert json.loads((parts.path / "config.json").read_text())["train"]["eval_tokens"] is None
    assert json.loads((parts.path / "heldout.json").read_text())["tokens"] == 40


@pytest.mark.slow
def test_a_full_disk_at_the_first_evaluation_does_not_end_training(records, tmp_path, monkeypatch, caplog, part_of_40):
    real, full = staging.write_file, iter([True])

    def write_file(path, content):
        if pathlib.Path(path).name in ("config.json", "heldout.json") and next(full, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(staging, "write_file", write_file)
    config = with_train(checkpoint_steps=2, log_steps=1, eval_tokens=None)
    workdir = loop.train(config, records.path, tmp_path / "w", records.path, steps=4)
    assert evaluated(workdir) == [(2, 40, False), (4, 40, False), (4, 128, True)]
    assert "heldout.json cannot be written: [Errno 28] No space left on device; the next checkpoint" in caplog.text
    assert json.loads((workdir.path / "heldout.json").read_text())["tokens"] == 40


@pytest.mark.slow
def test_a_resumed_run_keeps_its_part_and_measures_that_of_another_text(records, tmp_path, monkeypatch):
    sizes = iter([40, 20])
    monkeypatch.setattr(Heldout, "part_for", lambda *_: next(sizes))
    words = [token.decode() for token in records.vocabulary.tokens[3:]]
    other = write_records(tmp_path / "other", ["the cat sat on the mat"] * 20, words)
    config, path = with_train(checkpoint_steps=2, log_steps=1, eval_tokens=None), tmp_path / "w"
    loop.train(config, records.path, path, records.path, steps=3)
    loop.train(config, records.path, path, records.path, steps=4)
    found = evaluated(loop.train(config, records.path, path, other.path, steps=5))
    assert [tokens for _, tokens, whole in found if not whole] == [40, 40, 40, 20, 20]


@pytest.mark.slow
def test_a_model_to_finetune_is_evaluated_on_the_part_that_all_evaluations_take(workdir, records, tmp_path, part_of_40):
    def tuned(name: str, eval_tokens: str):
        assignments = ["train.checkpoint_steps=2", f"train.eval_tokens={eval_tokens}"]
        return finetune(workdir.path, records.path, tmp_path / name, assignments, records.path, steps=4)

    measured, given = tuned("measured", "null"), tuned("given", "40")
    assert evaluated(measured) == [(0, 40, False), (2, 40, False), (4, 40, False), (4, 128, True)]
    assert measured.metrics.read_bytes() == given.metrics.read_bytes()
    assert_same(everything(measured), everything(given))


def test_an_evaluation_of_the_whole_text_is_compared_with_those_that_a_run_makes_of_it():
    found = [{"step": 0, "heldout": "a", "perplexity": 9.0, "whole": True}]
    found += [{"step": step, "heldout": "a", "perplexity": 10.0 + step} for step in (2, 4)]
    assert [one["step"] for one in metrics_file.comparable(found)] == [0, 2, 4]
    assert metrics_file.best(found)["step"] == 0
