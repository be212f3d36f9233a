"""The progress of a training: TensorBoard's curves, histograms and words; `metrics.jsonl`; stderr."""

import json
import logging
import math

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.errors import InputError
from elmo_tf.training import loop, monitor
from elmo_tf.training.tensorboard import Board
from elmo_tf.workdir import metrics_file
from elmo_tf.workdir.metrics_file import MetricsFile
from tests import checks
from tests.helpers import MICRO
from tests.training.commands import losses
from tests.training.test_loop import with_train

LAYERS = {"characters", "convolutions", "highways", "token_projection", "softmax"} | {
    f"lstm_{direction}_{number}" for direction in ("forward", "backward") for number in (0, 1)
}
OUTPUTS = {"token_vectors"} | {name for name in LAYERS if name.startswith("lstm")}


@pytest.fixture(scope="module")
def watched(records, tmp_path_factory):
    """A training with everything switched on, and a hook that raises.

    Its workdir; its TensorBoard events, tag -> step -> value, and tag -> description; what the hook got; and the log.
    """
    config = with_train(checkpoint_steps=100, eval_steps=4, eval_tokens=31, look_steps=6, warmup_steps=4, clip_norm=1.0)
    path, got, log = tmp_path_factory.mktemp("watched") / "w", [], []

    def on_record(record):
        got.append(dict(record))
        record.clear()
        raise RuntimeError("no network")

    handler, logger = logging.Handler(), logging.getLogger("elmo_tf")
    handler.emit = lambda line: log.append(line.getMessage())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        workdir = loop.train(config, records.path, path, records.path, steps=12, on_record=on_record)
    finally:
        logger.removeHandler(handler)
    curves, descriptions = {}, {}
    for file in (path / "logs").glob("events.*"):  # TensorBoard calls the run `w/logs`
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                if value.tag.startswith("_hparams_/"):
                    continue
                curves.setdefault(value.tag, {})[event.step] = tf.make_ndarray(value.tensor)
                descriptions.setdefault(value.tag, value.metadata.summary_description)
    return workdir, curves, descriptions, got, log


def test_curves_are_in_a_few_groups_under_names_that_say_what_they_are(watched):
    _, curves, descriptions, *_ = watched
    for tag, description in descriptions.items():
        assert description.endswith(".") and len(description.split()) > 4, tag
    groups = {}
    for tag in curves:
        group, _, name = tag.partition("/")
        groups.setdefault(group, set()).add(name)
    assert groups == {
        "configuration": {""},
        "learning": {
            *("loss_forward_nats", "loss_backward_nats", "perplexity_sampled_softmax"),
            *("epoch", "tokens_per_second"),
        },
        "optimizer": {"gradient_norm_before_clip", "gradient_norm_after_clip", "learning_rate"},
        "heldout": {"perplexity", "best_perplexity", "forward_perplexity", "backward_perplexity"},
        "sampled_against_full_softmax": {"forward_sampled", "forward_full", "backward_sampled", "backward_full"},
        "update_to_weight": LAYERS,
        "weight_histograms": LAYERS,
        "output_histograms": OUTPUTS,
    }
    assert set(curves["learning/epoch"]) == {2, 4, 6, 8, 10, 12}
    assert set(curves["heldout/perplexity"]) == {4, 8, 12}
    assert set(curves["weight_histograms/softmax"]) == {6, 12}


def test_a_run_evaluates_a_part_on_its_way_and_all_at_its_end_and_the_curve_is_of_the_part(watched):
    workdir, curves, *_, log = watched
    lines = metrics_file.evaluations(workdir.metrics)
    evaluated = [(evaluation.step, evaluation.tokens, evaluation.whole) for evaluation in lines]
    assert evaluated == [*((step, 40, False) for step in (4, 8, 12)), (12, 128, True)]
    names = sorted(path.name for path in (workdir.path / "checkpoints").iterdir())
    assert names == [f"step-{step:08d}" for step in (4, 8, 12)]  # there is a checkpoint of every evaluated step
    assert any("% of the time, waiting for checkpoints" in line for line in log)
    (line,) = [line for line in log if line.startswith("the evaluation took ")]
    assert ": 40 of 128 held-out tokens (train.eval_tokens), every 4 steps (train.eval_steps);" in line
    expected = {evaluation.step: evaluation.perplexity for evaluation in lines if not evaluation.whole}
    assert curves["heldout/perplexity"] == pytest.approx(expected)
    assert not any(tag.startswith("heldout_") for tag in curves)
    lowest = {step: min(value for at, value in expected.items() if at <= step) for step in expected}
    assert curves["heldout/best_perplexity"] == pytest.approx(lowest)


def test_the_hook_gets_every_line_and_training_goes_on_when_it_raises(watched):
    workdir, *_, got, log = watched
    assert got == [json.loads(line) for line in workdir.metrics.read_bytes().splitlines()]
    assert len(got) == 12 + 4
    (warning,) = [line for line in log if "on_record" in line]
    assert warning.startswith("warning: on_record raised RuntimeError: no network; training continues")


def test_values_are_those_of_the_steps(watched):
    workdir, curves, *_ = watched
    steps = losses(workdir.path)
    for step in (2, 12):
        pair = steps[step - 2 : step]
        assert curves["learning/loss_forward_nats"][step] == pytest.approx(np.mean([s["forward_loss"] for s in pair]))
        both = np.mean([[s["forward_loss"], s["backward_loss"]] for s in pair])
        assert curves["learning/perplexity_sampled_softmax"][step] == pytest.approx(np.exp(both), rel=checks.PERPLEXITY)
        norms = np.array([s["gradient_norm"] for s in pair])
        assert curves["optimizer/gradient_norm_before_clip"][step] == pytest.approx(norms.mean())
        assert curves["optimizer/gradient_norm_after_clip"][step] == pytest.approx(np.minimum(norms, 1).mean())
    assert curves["optimizer/learning_rate"][2] == pytest.approx(0.1)
    assert curves["optimizer/learning_rate"][12] == pytest.approx(0.2)
    for layer in LAYERS:
        assert 0 < curves[f"update_to_weight/{layer}"][6] < 1
    for direction in ("forward", "backward"):
        # The full softmax distributes probability over more words.
        full, sampled = (curves[f"sampled_against_full_softmax/{direction}_{kind}"][6] for kind in ("full", "sampled"))
        assert 0.5 < full < np.log(17) * 1.5 and full != sampled
    assert "| train.warmup_steps | 4 |" in str(curves["configuration"][0])


def test_the_projector_gets_the_frequent_words_with_their_vectors(watched, records):
    run = watched[0].logs
    words = (run / "token_vectors_words.tsv").read_bytes().splitlines()
    assert words == records.vocabulary.tokens[3:]
    vectors = np.loadtxt(run / "token_vectors.tsv", delimiter="\t")
    assert vectors.shape == (len(words), MICRO.lstm.projection_dim)
    assert len(np.unique(vectors, axis=0)) == len(words)
    assert "token_vectors.tsv" in (run / "projector_config.pbtxt").read_text()


def test_files_that_cannot_be_written_are_one_warning(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    board = Board(tmp_path / "file" / "run")
    board.scalars("heldout", {"perplexity": 1.0}, 1)
    board.words([b"a"], np.zeros((1, 2)))
    board.close()
    (message,) = caplog.messages
    assert message.startswith(f"warning: TensorBoard's files in {tmp_path}/file/run cannot be written: ")


def test_the_metrics_of_a_run_without_a_checkpoint_are_kept_under_another_name(tmp_path, caplog):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n')
    for _ in range(2):
        assert MetricsFile(path, None).evaluations == []
        assert path.read_text() == ""
        assert (tmp_path / "metrics.jsonl.old").read_text() == '{"step": 1}\n'
    assert len(caplog.messages) == 1


def test_a_perplexity_that_is_not_a_number_is_read_and_worse_than_any_other(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = MetricsFile(path, None)
    for step, perplexity in ((1, math.nan), (2, 8.0), (3, math.nan), (4, math.inf)):
        lines.add({"step": step, "heldout": "a", "perplexity": perplexity})
    lines.flush()
    for evaluations in (MetricsFile(path, 4).evaluations, metrics_file.evaluations(path)):
        assert [evaluation.step for evaluation in evaluations] == [1, 2, 3, 4]
        assert metrics_file.best(evaluations).step == 2
        assert metrics_file.evaluations_since_best(evaluations) == 2


def test_a_loss_that_is_not_finite_is_reported_with_its_step_and_no_checkpoint_is_promised():
    values = np.array([[1, 1, 1], [2, np.nan, 3], [np.inf, 1, 1]])
    with pytest.raises(InputError) as caught:
        monitor.checked_values(values, 9)
    assert str(caught.value) == (
        "train.learning_rate: training diverged at step 8: forward loss 2.0, backward loss nan, gradient norm 3.0; "
        "run again with a smaller rate: that resumes from the last checkpoint, if there is one"
    )
    assert monitor.checked_values(values[:1], 7).tolist() == [[1, 1, 1]]
