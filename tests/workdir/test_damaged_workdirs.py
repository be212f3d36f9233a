"""Workdirs with damaged JSON, which is refused by name, and with what is not ours, which stays."""

import functools
import json
import operator
import pathlib
import shutil

import google_crc32c
import pytest

import elmo_tf
from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.training import loop
from elmo_tf.workdir import checkpoints, folder, metrics_file
from elmo_tf.workdir.checkpoint_files import DamagedError, Progress
from elmo_tf.workdir.folder import Workdir, open_workdir
from tests.helpers import MICRO_CONFIG


def test_a_workdir_stays_in_its_place_when_the_current_folder_changes(copy, records, monkeypatch):
    monkeypatch.chdir(copy.path.parent)
    assert open_workdir(copy.path.name).path == copy.path
    monkeypatch.chdir(records.path.parent)
    assert record_folder.open_folder(records.path.name).path == records.path


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_checkpoint_does_not_replace_what_is_not_one(copy, kind):
    path, bilm = copy.path / "checkpoints" / "step-00000004", checkpoints.restore(copy)[0]
    path.write_text("mine") if kind == "file" else path.symlink_to(copy.path / "checkpoints" / "step-00000003")
    with pytest.raises(OSError, match=rf"^{path} exists and is not a checkpoint$"):
        checkpoints.save(copy, bilm, None, Progress(step=4))
    assert path.is_symlink() or path.read_text() == "mine"
    assert checkpoints.steps(copy) == [3]


def set_in_config(workdir: Workdir, key: str, value: object) -> None:
    """Changes a value in `config.json`, whether it is valid or not."""
    file = workdir.path / "config.json"
    values = json.loads(file.read_text())
    *path, name = key.split(".")
    functools.reduce(operator.getitem, path, values)[name] = value
    file.write_text(json.dumps(values))


TOO_LARGE = r"the model is too large: its [\d,]+ parameters take [\d.,]+ GB, and this machine has [\d.,]+ GB"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.lstm.units", 10**9, f"/config.json: {TOO_LARGE}"),
        ("model.lstm.units", 10**30, f"/config.json: {TOO_LARGE}"),
        ("train.batch_size", True, "/config.json: train.batch_size: expected int, found true"),
        # The config of another model is not called a damaged checkpoint.
        ("model.lstm.units", 25, r".*3: bilm/forward_0.kernel is of shape \(16, 96\); .* ask for \(16, 100\)$"),
    ],
)
def test_a_wrong_value_in_config_json_is_refused_by_name(copy, key, value, message):
    set_in_config(copy, key, value)
    with pytest.raises(InputError, match=f"^{copy.path}{message}"):
        checkpoints.restore(open_workdir(copy.path))


def test_a_config_json_that_is_not_one_or_has_an_unknown_tokenizer_is_refused(copy):
    set_in_config(copy, "tokenizer", "words")
    expected = "one of whitespace, penn, unicode, characters"
    with pytest.raises(InputError, match=f'^{copy.path}/config.json: tokenizer: expected {expected}, found "words"$'):
        elmo_tf.load(copy.path)
    for content, message in (
        ('{"model": ', "not JSON: "),
        ("{}", "no key model.char_cnn.embedding_dim"),
        ('{"models": {}}', r"no setting 'models' \(expected one of model.char_cnn.activation, "),
    ):
        (copy.path / "config.json").write_text(content)
        with pytest.raises(InputError, match=f"^{copy.path}/config.json: {message}"):
            open_workdir(copy.path)


def test_a_model_larger_than_the_memory_is_refused_before_a_workdir_is_made(records, tmp_path, monkeypatch):
    needed = MICRO_CONFIG.model.num_parameters(len(records.vocabulary)) * 4
    pages = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": needed}
    monkeypatch.setattr(folder.os, "sysconf", pages.get)
    folder.check_memory(MICRO_CONFIG, len(records.vocabulary))
    pages["SC_PHYS_PAGES"] -= 1
    with pytest.raises(InputError, match=r"^config: the model is too large: "):
        loop.train(MICRO_CONFIG, records.path, tmp_path / "w", steps=1)
    assert not (tmp_path / "w").exists()


def rewrite(checkpoint: pathlib.Path, name: str, content: bytes) -> None:
    """Replaces a file of a checkpoint, and its description in the manifest."""
    (checkpoint / name).write_bytes(content)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest[name] = {"crc32c": google_crc32c.Checksum(content).digest().hex()}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


PROGRESS = b'{"step": 3, "data_id": null, "position": null, '


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("progress.json", b"{}", "no key step"),
        ("progress.json", PROGRESS + b'"position": []}', "expected position to be .*, found a list of 0"),
        ("progress.json", PROGRESS + b'"epoch_offset": NaN}', "expected epoch_offset to be float >= 0.0, found NaN"),
        ("manifest.json", b"{}", "manifest.json lacks (progress.json|variables.index)"),
        ("manifest.json", b'{"progress.json": {"crc32c": 12}}', "expected .*crc32c to be str, found"),
    ],
)
def test_json_of_wrong_keys_types_or_ranges_in_a_checkpoint_is_refused_by_name(copy, name, content, problem):
    if name == "progress.json":
        rewrite(checkpoints.latest(copy), name, content)
    else:
        (checkpoints.latest(copy) / name).write_bytes(content)
    with pytest.raises(DamagedError, match=rf"/step-00000003: the checkpoint is damaged: .*{problem}"):
        checkpoints.restore(copy)[0]


def test_a_checkpoint_with_the_keys_of_earlier_versions_is_read_and_written_with_the_new_ones(copy):
    path = checkpoints.latest(copy)
    values = json.loads((path / "progress.json").read_text())
    rewrite(path, "progress.json", json.dumps(values | {"begun_step": 2, "begun_epochs": 0.5}).encode())
    bilm, progress = checkpoints.restore(copy)
    assert (progress.step, progress.offset_step, progress.epoch_offset) == (3, 2, 0.5)
    checkpoints.save(copy, bilm, None, progress)
    written = json.loads((path / "progress.json").read_text())
    assert written == values | {"offset_step": 2, "epoch_offset": 0.5}


def test_a_position_past_the_end_of_its_sentence_is_refused(copy, records):
    path = checkpoints.latest(copy)
    values = json.loads((path / "progress.json").read_text())
    values["position"]["rows"][0][1] = 99
    rewrite(path, "progress.json", json.dumps(values).encode())
    with pytest.raises(InputError, match=r"^position: stream 0 has used 99 tokens of a sentence that has \d+$"):
        loop.train(MICRO_CONFIG, records.path, copy.path, steps=4)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[]", "expected object, found a list of 0"),
        ('{"step": -1}', "expected step to be int >= 0, found -1"),
        ('{"step": 3, "heldout": "x"}', "no key perplexity"),
        ('{"step": 3, "heldout": "x", "perplexity": -3}', "expected a perplexity of at least 0"),
    ],
)
def test_a_damaged_line_of_metrics_jsonl_is_refused_by_number(copy, records, line, problem):
    first, *others = copy.metrics.read_text().splitlines()
    copy.metrics.write_text("\n".join([first, line, *others, ""]))
    with pytest.raises(InputError, match=f"^{copy.metrics}, line 2: {problem}"):
        loop.train(MICRO_CONFIG, records.path, copy.path, steps=4)


def test_what_a_crash_left_after_the_last_checkpoint_is_cut_off(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for left in (b"\x00" * 9 + b"\n", b'{"step": 3}\nnonsense\n', b"nonsense", b'{"step": 2'):
        path.write_bytes(b'{"step": 1}\n{"step": 2}\n' + left)
        metrics_file.MetricsFile(path, 2)
        assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl"])
def test_a_link_in_the_place_of_a_file_that_training_writes_is_refused_and_not_followed(copy, records, tmp_path, name):
    target, link = tmp_path / "target", copy.path / name
    shutil.copy(copy.metrics, target)
    content = target.read_bytes()
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    with pytest.raises(InputError, match=rf"^{link}: a link, which is not followed$"):
        loop.train(MICRO_CONFIG, records.path, copy.path, steps=4)
    assert target.read_bytes() == content
