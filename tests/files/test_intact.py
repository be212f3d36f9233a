"""Files that are read because a folder has them: pipes, Git LFS pointers, folders."""

import os
import shutil
import threading

import pytest

import elmo_tf
from elmo_tf.beam import output_folder
from elmo_tf.corpus import corpora, reading
from elmo_tf.errors import InputError
from elmo_tf.files import intact, lock
from elmo_tf.records import record_folder, vector_files
from elmo_tf.savedmodel import checksums
from elmo_tf.tasks import fitting
from elmo_tf.workdir import checkpoint_files, metrics_file
from elmo_tf.workdir.folder import open_workdir
from tests import helpers
from tests.published import published_files

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 374434792\n"


def replace_by_pipe(path) -> None:
    """Puts a pipe in the place of a file. Whoever opens it finds it empty, instead of waiting for ever."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(b"",), daemon=True).start()


def published(folder):
    options = published_files.options()
    published_files.write_pair(folder, options, published_files.draw_hdf5(options))
    return folder


def test_what_is_not_a_regular_file_is_named_with_its_remedy(tmp_path):
    (tmp_path / "pointer").write_bytes(POINTER)
    (tmp_path / "file").write_bytes(POINTER[1:])
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    replace_by_pipe(tmp_path / "pipe")
    problems = {
        "pointer": "is a Git LFS pointer, not the file itself; run `git lfs pull` in its folder",
        "device": "is a pipe or a device, not a regular file",
        "pipe": "is a pipe or a device, not a regular file",
        "folder": "is a folder, not a file",
        "missing": "no such file",
    }
    for name, problem in problems.items():
        with pytest.raises(InputError, match=f"^{tmp_path}/{name}: {problem}$"):
            intact.check_regular(tmp_path / name)
    assert intact.read(tmp_path / "link") == POINTER[1:]


@pytest.mark.parametrize("name", ["options.json", "weights.hdf5", "softmax.hdf5", "vocab.txt"])
@pytest.mark.parametrize("kind", ["pipe", "pointer"])
def test_a_published_model_has_no_pipes_and_no_pointers(tmp_path, name, kind):
    folder = published(tmp_path)
    for extra in ("softmax.hdf5", "vocab.txt"):
        (folder / extra).write_bytes(b"<S>\n</S>\n<UNK>\n")
    if kind == "pointer":
        (folder / name).write_bytes(POINTER)
    else:
        replace_by_pipe(folder / name)
    # A model whose softmax is not made of files has none.
    expected = "Git LFS pointer" if kind == "pointer" else "pipe|no softmax|no model at this path"
    with pytest.raises(InputError, match=expected):
        elmo_tf.load(folder).score(["a"])


def test_a_folder_of_published_names_with_pipes_does_not_wait(tmp_path):
    folder = published(tmp_path)
    (folder / "options.json").unlink()
    replace_by_pipe(folder / "elmo_x_options.json")
    with pytest.raises(InputError, match=r"elmo_x_options.json: is a pipe"):
        elmo_tf.load(folder)
    folder = published(tmp_path)
    (folder / "weights.hdf5").unlink()
    replace_by_pipe(folder / "elmo_x_weights.hdf5")
    (folder / "elmo_x_options.json").unlink()
    for call in (elmo_tf.load, lambda path: elmo_tf.sources.find(path).sha256()):
        with pytest.raises(InputError, match=r"elmo_x_weights.hdf5: is a pipe"):
            call(folder)


def test_an_unfinished_folder_whose_plan_or_shard_is_a_pipe_is_refused(tmp_path):
    replace_by_pipe(tmp_path / "plan.json")
    with (
        pytest.raises(InputError, match=r"/plan.json: is a pipe"),
        output_folder.claim({"train": str(tmp_path)}, {"command": "test"}),
    ):
        pass
    replace_by_pipe(tmp_path / "shard")
    with pytest.raises(InputError, match="/shard: is a pipe"):
        list(vector_files.read_shard(str(tmp_path / "shard"), 0))


@pytest.mark.parametrize("name", ["info.json", "vocab.txt", "shard-00001-of-00002.tfrecord"])
def test_a_folder_of_records_with_a_pipe_is_refused(tmp_path, name):
    helpers.write_records(tmp_path, ["a b", "c"])
    replace_by_pipe(tmp_path / name)
    with pytest.raises(InputError, match=f"/{name}: is a pipe"):
        record_folder.open_folder(tmp_path)


@pytest.mark.parametrize("name", ["assets.extra/checksums.json", "assets/config.json", "variables/variables.index"])
def test_an_exported_model_with_a_pipe_or_a_pointer_is_refused(savedmodel, tmp_path, name):
    for kind, make in (("pipe", replace_by_pipe), ("Git LFS pointer", lambda path: path.write_bytes(POINTER))):
        copy = shutil.copytree(savedmodel.path, tmp_path / kind)
        make(copy / name)
        with pytest.raises(InputError, match=f"/{name}: is a {kind}"):
            checksums.check(copy)
    replace_by_pipe(copy / "unlisted")
    with pytest.raises(InputError, match=f"/{name}: is a {kind}|/unlisted: is a pipe"):
        checksums.check(copy)


@pytest.mark.parametrize("name", ["vocab.txt", "metrics.jsonl"])
def test_a_workdir_with_a_pipe_is_refused(copy, name):
    replace_by_pipe(copy.path / name)
    with pytest.raises(InputError, match=f"/{name}: is a pipe"):
        metrics_file.evaluations(open_workdir(copy.path).metrics)


def test_a_checkpoint_with_a_pipe_is_damaged(copy, tmp_path):
    (checkpoint,) = (copy.path / "checkpoints").iterdir()
    for path in checkpoint.iterdir():
        damaged = shutil.copytree(checkpoint, tmp_path / path.name)
        replace_by_pipe(damaged / path.name)
        with pytest.raises(checkpoint_files.DamagedError, match=f"{path.name} is not a regular file"):
            checkpoint_files.check(damaged)


def test_a_file_to_append_to_is_not_a_pipe(tmp_path):
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(InputError, match=r"/.lock: a pipe, which is not written to$"), lock.locked(tmp_path):
        pass


def test_a_corpus_of_pointers_is_refused(tmp_path):
    for name in ("a.txt", "a.gz"):
        (tmp_path / name).write_bytes(POINTER)
        with pytest.raises(InputError, match=f"^{tmp_path}/{name}: is a Git LFS pointer"):
            reading.inspect(corpora.match([str(tmp_path / name)]), "whitespace")


def test_the_state_of_a_tasks_run_is_checked(tmp_path):
    state = fitting._State.__new__(fitting._State)
    state._path = tmp_path / fitting.FILE
    state._path.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(InputError, match=f"^{state._path}: not a complete state of a run; delete the file to train"):
        state.restore()
    replace_by_pipe(state._path)
    with pytest.raises(InputError, match=f"^{state._path}: is a pipe"):
        state.restore()
