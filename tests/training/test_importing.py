import json

import numpy as np
import pytest

from elmo_tf import cli
from elmo_tf.errors import InputError
from elmo_tf.published import weights as published_weights
from elmo_tf.training import importing, loop
from elmo_tf.training.optimizer import from_config
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests import checks
from tests.helpers import write_records
from tests.published import published_files as files

SENTENCES = ["the cat sat on the mat", "a dog", "the dog sat"]
RECIPE = {"batch_size": 2, "unroll_steps": 4, "n_negative_samples_batch": 3, "dropout": 0.0}


@pytest.fixture
def records(tmp_path):
    return write_records(tmp_path / "records", SENTENCES, num_shards=1)


@pytest.fixture
def parts(tmp_path, records):
    """What a checkpoint is made of, to be changed: options, arrays by name, the files' paths."""
    options = files.options() | RECIPE
    arrays = files.checkpoint_arrays(files.draw_hdf5(options), len(records.vocabulary))
    return options, arrays, tmp_path / "model.ckpt-7", tmp_path / "options.json", records.path / "vocab.txt"


def run_import(parts, workdir, **changes):
    options, arrays, prefix, options_path, vocab = parts
    options_path.write_text(json.dumps(options))
    files.write_checkpoint(prefix, arrays)
    paths = {"prefix": prefix, "options": options_path, "vocab": vocab} | changes
    return importing.import_checkpoint(**paths, workdir=workdir)


def message_of(parts, workdir, **changes) -> str:
    """Returns the one line that the error has; nothing may be left."""
    with pytest.raises(InputError) as caught:
        run_import(parts, workdir, **changes)
    assert not [path for path in workdir.parent.iterdir() if "workdir" in path.name]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def restored(workdir):
    """Returns the network, its accumulators by the paths of its weights, and the progress."""
    bilm = workdir.new_bilm()
    slots = from_config(workdir.config.train, bilm).slots
    progress = checkpoints.load(workdir, bilm, slots)
    pairs = zip(bilm.trainable_variables, slots["accumulators"], strict=True)
    return bilm, {variable.path: values.numpy() for variable, values in pairs}, progress


def test_a_checkpoint_becomes_a_workdir_with_softmax_accumulators_and_step(parts, tmp_path):
    options, arrays, *_ = parts
    workdir = run_import(parts, tmp_path / "workdir")
    bilm, accumulators, progress = restored(workdir)
    assert (progress.step, progress.position, progress.states) == (7, None, None)
    assert workdir.config.train.num_sampled == 3
    assert np.array_equal(bilm.softmax.kernel.numpy(), arrays["lm/softmax/W"])
    assert np.array_equal(bilm.softmax.bias.numpy(), arrays["lm/softmax/b"])
    slots = {
        "char_cnn/embedding": arrays["lm/char_embed/Adagrad"],
        "char_cnn/kernel_1": arrays["lm/CNN/W_cnn_1/Adagrad"][0],
        "char_cnn/highway_1/gate_kernel": arrays["lm/CNN_high_1/W_carry/Adagrad"],
        "backward_0/kernel": arrays["lm/RNN_1/rnn/multi_rnn_cell/cell_0/lstm_cell/kernel/Adagrad"],
        "softmax/bias": arrays["lm/softmax/b/Adagrad"],
    }
    for path, expected in slots.items():
        assert np.array_equal(accumulators[path], expected), path
    importing.dump_weights(tmp_path / "workdir", tmp_path / "dump")
    back = files.read_hdf5(tmp_path / "dump" / "weights.hdf5")
    drawn = files.draw_hdf5(options)
    assert back.keys() == drawn.keys()
    assert all(np.array_equal(back[name], array) for name, array in drawn.items())


def test_special_tokens_in_another_order_take_their_softmax_rows_along(parts, tmp_path):
    _, arrays, _, _, vocab = parts
    whole, bias = arrays["lm/softmax/W"], arrays["lm/softmax/b"]
    lines = vocab.read_bytes().splitlines()
    other = tmp_path / "other.txt"
    other.write_bytes(b"\n".join([lines[1], lines[2], lines[0], *lines[3:]]) + b"\n")
    workdir = run_import(parts, tmp_path / "workdir", vocab=other)
    assert workdir.vocabulary.tokens == lines
    bilm, accumulators, _ = restored(workdir)
    order = [2, 0, 1, *range(3, len(lines))]
    assert np.array_equal(bilm.softmax.kernel.numpy(), whole[order])
    assert np.array_equal(bilm.softmax.bias.numpy(), bias[order])
    assert np.array_equal(accumulators["softmax/kernel"], arrays["lm/softmax/W/Adagrad"][order])
    assert np.array_equal(accumulators["softmax/bias"], arrays["lm/softmax/b/Adagrad"][order])


@pytest.mark.slow
def test_training_resumes_from_an_imported_checkpoint(parts, records, tmp_path):
    workdir = run_import(parts, tmp_path / "workdir")
    before = checkpoints.restore(workdir)[0].softmax.kernel.numpy()
    trained = loop.train(workdir.config, records.path, tmp_path / "workdir", steps=8)
    assert checkpoints.latest(trained).name == "step-00000008"
    moved = np.abs(checkpoints.restore(trained)[0].softmax.kernel.numpy() - before)
    assert 0 < moved.max() < 0.2 * np.sqrt(0.5)  # accumulators of 1 or more, so less than the rate


def test_a_single_layer_has_no_number_in_a_checkpoint(parts, records, tmp_path):
    options = files.options(n_layers=1) | RECIPE
    drawn = files.draw_hdf5(options)
    arrays = files.checkpoint_arrays(drawn, len(records.vocabulary), single=True)
    assert "lm/RNN_0/rnn/lstm_cell/projection/kernel" in arrays
    bilm, *_ = restored(run_import((options, arrays, *parts[2:]), tmp_path / "workdir"))
    assert np.array_equal(bilm.lstms[1][0].kernel.numpy(), drawn["RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"])


SLOT = "lm/char_embed/Adagrad"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda arrays: arrays.pop(SLOT), [SLOT, "(261, 4)", "missing"]),
        (lambda arrays: arrays.update({"lm/char_embed/Adam": arrays[SLOT]}), ["lm/char_embed/Adam", "(261, 4)"]),
        (lambda arrays: arrays.pop("global_step"), ["no number global_step"]),
    ],
    ids=["no slot", "another optimizer", "no step"],
)
def test_bad_checkpoints_are_refused_by_name_and_leave_nothing(spoil, words, parts, tmp_path):
    spoil(parts[1])
    message = message_of(parts, tmp_path / "workdir")
    assert all(word in message for word in [*words, str(parts[2])]), message


def test_shapes_are_compared_before_a_network_is_made(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "BiLM", lambda *_: pytest.fail("made"))
    parts[0]["lstm"]["dim"] = 200_000
    assert "lstm_cell/kernel of shape (16, 800000), found (16, 96)" in message_of(parts, tmp_path / "workdir")


def test_a_vocabulary_of_another_length_than_the_softmax_or_the_options_is_refused(parts, tmp_path):
    rows, vocab = len(parts[1]["lm/softmax/b"]), tmp_path / "longer.txt"
    vocab.write_bytes(parts[4].read_bytes() + b"more\n")
    message = message_of(parts, tmp_path / "workdir", vocab=vocab)
    assert message.startswith(f"{vocab}: ") and f"{rows + 1} words" in message and f"{rows} rows" in message
    parts[0]["n_tokens_vocab"] = 1000
    message = message_of(parts, tmp_path / "workdir")
    assert all(word in message for word in ("options", "n_tokens_vocab", "1000"))


def test_missing_and_damaged_files_are_refused(parts, tmp_path):
    for name in ("prefix", "options", "vocab"):
        missing = tmp_path / "missing"
        assert str(missing) in message_of(parts, tmp_path / "workdir", **{name: missing})
    for ending in (".data-00000-of-00001", ".index"):
        copy = tmp_path / "damaged"
        files.write_checkpoint(copy, parts[1])
        damaged = copy.with_name(copy.name + ending)
        damaged.write_bytes(damaged.read_bytes()[:-200])
        message = message_of(parts, tmp_path / "workdir", prefix=copy)
        assert str(copy) in message and "complete" in message


def test_files_with_a_softmax_become_a_workdir_with_it(parts, tmp_path):
    before = run_import(parts, tmp_path / "workdir")
    dumped = importing.dump_weights(before.path, tmp_path / "dumped", softmax=True)
    pair = ["--options", str(dumped / "options.json"), "--weights", str(dumped / "weights.hdf5")]
    assert cli.main(["import", *pair, "--workdir", str(tmp_path / "again")]) == 0
    after = open_workdir(tmp_path / "again")
    assert after.vocabulary.tokens == before.vocabulary.tokens
    old, new = (checkpoints.restore(workdir)[0].softmax.variables for workdir in (before, after))
    checks.assert_all_close(new, old)


def test_published_weights_become_a_workdir_of_step_0_without_a_softmax(tmp_path):
    options = files.options(n_highway=1)
    arrays = files.draw_hdf5(options)
    config, bilm = published_weights.load(*files.write_pair(tmp_path, options, arrays))
    workdir = importing.save_new(tmp_path / "workdir", config, bilm)
    assert workdir.vocabulary is None
    assert checkpoints.latest(workdir).name == "step-00000000"
    bilm = checkpoints.restore(workdir)[0]
    assert bilm.softmax is None
    assert np.array_equal(bilm.char_cnn.highways[0].gate_kernel.numpy(), arrays["CNN_high_0/W_carry"])
    assert np.array_equal(bilm.char_cnn.highways[0].transform_kernel.numpy(), arrays["CNN_high_0/W_transform"])


@pytest.mark.parametrize(
    ("weight", "more", "message"), [(np.nan, [], "char_embed"), (1.0, ["--output", "models", "--mix", "1,2"], "--mix")]
)
def test_a_bad_import_leaves_no_workdir(tmp_path, capsys, weight, more, message):
    arrays = files.draw_hdf5(files.options())
    arrays["char_embed"][0, 0] = weight
    options, weights = map(str, files.write_pair(tmp_path, files.options(), arrays))
    more = [str(tmp_path / word) if word == "models" else word for word in more]
    before = sorted(tmp_path.iterdir())
    command = ["import", "--options", options, "--weights", weights, "--workdir", str(tmp_path / "workdir"), *more]
    assert cli.main(command) == 1
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
