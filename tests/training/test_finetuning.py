"""Fine-tuning: what is copied, what is new, and that the source stays as it is."""

import dataclasses
import json
import logging

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import sources
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.records import record_folder
from elmo_tf.training.evaluation import evaluate
from elmo_tf.training.finetuning import finetune
from elmo_tf.workdir import checkpoints, metrics_file
from elmo_tf.workdir.checkpoint_files import Progress
from elmo_tf.workdir.folder import Workdir, new_workdir, open_workdir
from tests import checks
from tests.beam.common import files
from tests.helpers import MICRO, MICRO_CONFIG, ONE_LAYER, new_untrained, write_records

# Words of the source in another order, and new words.
OTHER = ["zebras sat on the mat", "the zebra barked", "a zebra saw the cat", "zebras saw zebras saw zebras"] * 4


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    path = write_records(tmp_path_factory.mktemp("other") / "data", OTHER).path
    info = json.loads((path / "info.json").read_text()) | {"tokenizer": "unicode"}
    (path / "info.json").write_text(json.dumps(info))
    return record_folder.open_folder(path)


@pytest.fixture(scope="module")
def carried(workdir, other, tmp_path_factory):
    """A workdir that is about to be trained further."""
    path = tmp_path_factory.mktemp("finetuned") / "workdir"
    return finetune(workdir.path, other.path, path, ["train.initial_accumulator=0.25", "train.seed=3"], steps=0)


def saved(workdir: Workdir, part: str) -> dict[str, np.ndarray]:
    """Returns the newest checkpoint's arrays of `part`, "bilm" or "accumulators"."""
    reader = tf.train.load_checkpoint(str(checkpoints.latest(workdir) / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if name.startswith(f"{part}/")]
    return {name.split("/")[1].replace("..", "."): reader.get_tensor(name) for name in names}


def test_every_weight_below_the_softmax_is_carried_over_to_step_0(workdir, carried):
    progress = json.loads((checkpoints.latest(carried) / "progress.json").read_text())
    assert progress == {"step": 0}
    source, target = saved(workdir, "bilm"), saved(carried, "bilm")
    assert source.keys() == target.keys()
    below = [name for name in source if not name.startswith("softmax.")]
    assert len(below) == len(source) - 2
    for name in below:
        np.testing.assert_array_equal(target[name], source[name], err_msg=name)


def test_softmax_rows_go_by_the_word_and_new_words_are_drawn(workdir, carried, other):
    assert carried.vocabulary.tokens == other.vocabulary.tokens
    ids = {word: number for number, word in enumerate(workdir.vocabulary.tokens)}
    source, target = saved(workdir, "bilm"), saved(carried, "bilm")
    shared = [word for word in other.vocabulary.tokens if word in ids]
    new = [number for number, word in enumerate(other.vocabulary.tokens) if word not in ids]
    assert [other.vocabulary.tokens.index(word) for word in shared] != [ids[word] for word in shared]
    for name in ("softmax.kernel", "softmax.bias"):
        for word in shared:
            np.testing.assert_array_equal(target[name][other.vocabulary.tokens.index(word)], source[name][ids[word]])
    assert sorted(other.vocabulary.tokens[number] for number in new) == [b"saw", b"zebra", b"zebras"]
    rows = target["softmax.kernel"][new]
    assert (np.abs(rows).max(axis=1) > 0.01).all()
    assert len(np.unique(np.concatenate([rows, source["softmax.kernel"]]), axis=0)) == 3 + len(ids)
    np.testing.assert_array_equal(target["softmax.bias"][new], 0)


def test_new_words_begin_as_the_recipe_says(workdir, other, tmp_path):
    made = finetune(workdir.path, other.path, tmp_path / "made", ["train.initial_softmax=log_uniform"], steps=0)
    bias = saved(made, "bilm")["softmax.bias"]
    number = next(n for n, word in enumerate(made.vocabulary.tokens) if word not in workdir.vocabulary.tokens)
    expected = np.log(np.log((number + 2) / (number + 1)) / np.log(len(made.vocabulary) + 1))
    assert bias[number] == pytest.approx(expected, rel=checks.FEW["rtol"])


def test_adagrad_starts_from_its_initial_values(workdir, carried):
    assert all((values >= 1).all() and (values > 1).any() for values in saved(workdir, "accumulators").values())
    accumulators = saved(carried, "accumulators")
    assert {name: values.shape for name, values in accumulators.items()} == {
        name: values.shape for name, values in saved(carried, "bilm").items()
    }
    for name, values in accumulators.items():
        np.testing.assert_array_equal(values, 0.25, err_msg=name)


def test_the_configuration_is_the_sources_with_the_changes_asked_for(workdir, carried):
    train = dataclasses.replace(workdir.config.train, initial_accumulator=0.25, seed=3, steps=0)
    reopened = open_workdir(carried.path)
    assert reopened.config == dataclasses.replace(workdir.config, train=train)
    assert (workdir.tokenizer, reopened.tokenizer, sources.find(reopened.path).tokenizer) == (
        "whitespace",
        "unicode",
        "unicode",
    )


def test_it_trains_and_run_again_it_resumes_and_the_source_stays_as_it_is(
    workdir, other, tmp_path, caplog, untraced_steps
):
    before = files(workdir.path)
    first = finetune(workdir.path, other.path, tmp_path / "new", steps=0)
    caplog.clear()
    with caplog.at_level(logging.INFO, "elmo_tf"):
        made = finetune(workdir.path, other.path, tmp_path / "new", steps=3)
    assert made.path == first.path
    assert f"resuming the training in {first.path}; {workdir.path} is not read again" in caplog.text
    assert "training: step 0 to 3" in caplog.text
    assert "words copied" not in caplog.text
    source, target = saved(workdir, "bilm"), saved(made, "bilm")
    below = [name for name in target if not name.startswith("softmax.")]
    assert not any(np.array_equal(source[name], target[name]) for name in below)
    assert files(workdir.path) == before


@pytest.mark.slow
def test_the_heldout_perplexity_is_logged_before_and_after(workdir, records, tmp_path, caplog):
    with caplog.at_level(logging.INFO, "elmo_tf"):
        target = finetune(workdir.path, records.path, tmp_path / "target", heldout=records.path, steps=3)
    lines = metrics_file.evaluations(target.metrics)
    assert [line.step for line in lines] == [0, 3]
    before, after = (f"{line.perplexity:.1f}" for line in lines)
    assert f"held-out perplexity: first {before} at step 0, last {after} at step 3" in caplog.text
    shape = MICRO_CONFIG.train.batch_size, MICRO_CONFIG.train.unroll_steps
    for line, network in zip(lines, (workdir, target), strict=True):  # every row of the softmax is carried over
        expected = evaluate(checkpoints.restore(network)[0], records, *shape)
        assert line.perplexity == pytest.approx(expected.perplexity, rel=checks.PERPLEXITY)


def test_a_source_without_a_softmax_gets_a_fresh_one_and_says_so(other, tmp_path, caplog):
    bilm = checks.randomize(BiLM(MICRO))
    with new_workdir(tmp_path / "source", MICRO_CONFIG, None) as new:
        checkpoints.save(new, bilm, None, Progress(0))
    with caplog.at_level(logging.INFO, "elmo_tf"):
        target = finetune(tmp_path / "source", other.path, tmp_path / "target", steps=0)
    assert f"the source has no softmax: all {len(other.vocabulary)} words get a new row" in caplog.text
    arrays = saved(target, "bilm")
    for variable in bilm.trainable_variables:
        np.testing.assert_array_equal(arrays[variable.path.replace("/", ".")], variable)
    assert arrays["softmax.kernel"].shape == (len(other.vocabulary), 8)
    # Drawn from N(0, 1 / sqrt(8)): 112 numbers
    assert 0.6 < arrays["softmax.kernel"].std() * np.sqrt(8) < 1.5
    assert not arrays["softmax.bias"].any()


def test_another_tokenizer_is_said_and_a_model_of_other_sizes_does_not_resume(workdir, other, tmp_path, caplog):
    finetune(workdir.path, other.path, tmp_path / "new", steps=0)
    assert "splits text with the tokenizer whitespace, but the new model will use unicode" in caplog.text
    small = new_untrained(tmp_path / "small", ONE_LAYER, other.vocabulary)
    with pytest.raises(InputError, match=f"/new: its model's sizes differ from those of {small.path}; "):
        finetune(small.path, other.path, tmp_path / "new", steps=1)
