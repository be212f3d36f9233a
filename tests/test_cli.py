"""The command line: every kind of wrong input, and help."""

import errno
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import pytest

from elmo_tf import __version__, cli
from elmo_tf.savedmodel import verification
from elmo_tf.workdir.folder import new_workdir
from tests.helpers import MICRO_CONFIG, ROOT, run_python, write_records
from tests.published import published_files


@pytest.fixture(scope="module")
def project(records, workdir, savedmodel, tmp_path_factory):
    """A folder with everything that the wrong commands below name."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(records.path, folder / "records")
    shutil.copytree(workdir.path, folder / "trained")
    shutil.copytree(savedmodel.path, folder / "mine")
    write_records(folder / "other", ["another text"])

    def changed(name: str, source: str, file: str, content: bytes | None) -> None:
        path = shutil.copytree(folder / source, folder / name) / file
        assert path.exists()
        path.unlink() if content is None else path.write_bytes(content)

    changed("bad_variables", "trained", "checkpoints/step-00000003/variables.data-00000-of-00001", b"\0" * 99)
    changed("no_graph", "mine", "saved_model.pb", None)
    with new_workdir(folder / "untrained", MICRO_CONFIG, records.vocabulary):
        pass
    (folder / "text.txt").write_text("the cat sat\na bank\n")
    (folder / "empty.txt").touch()
    (folder / "dangling").symlink_to(folder / "elsewhere")
    (folder / "task").mkdir()
    (folder / "task" / "config.json").write_text('{"task": "ner", "recipe": {}, "labels": []}')
    values = published_files.options()
    (folder / "w").mkdir()
    published_files.write_pair(folder / "w", values, published_files.draw_hdf5(values))
    return folder


def snapshot(folder: pathlib.Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def says(path: str, problem: str) -> str:
    """Returns a pattern of an error about a file, which begins with its path."""
    return rf"\S*{path}\S*: {problem}"


PRESETS = "tiny, small, medium, original"
PREPROCESS = "preprocess --output new/data --heldout new/heldout --heldout-fraction 0.5 --input"
TRAIN = "train --data records --workdir new/workdir --preset tiny"
FINETUNE = "finetune --from trained --data records --workdir new/workdir"
EVALUATE = "evaluate --data records --workdir"
EXPORT = "export --workdir trained --output new/model"
NEIGHBORS = "neighbors --model mine --input text.txt --word bank --sentence bank"
IMPORT_PAIR = "import --options w/options.json --weights w/weights.hdf5 --output new/m"
OTHER_WORDS = "these records have a different vocabulary, of "

NO_GPU = r"--gpus: (this machine has no GPU|expected different numbers among .*, found '(99|all)')$"
NAMED = "no model at this path or of this name"

WRONG = [
    (f"{PREPROCESS} empty.txt", "--input: contains no words"),
    (f"{PREPROCESS} text.txt --min-count 999", "--min-count: expected at most .*, found 999"),
    (f"{PREPROCESS} text.txt output", "output: no such file$"),
    (f"{PREPROCESS} text.txt --direct_num_workers=-1", "--direct_num_workers: expected at least 0 .*, found -1$"),
    (f"{PREPROCESS} text.txt --runner os.path.Foo", "--runner: .*has no attribute 'Foo'$"),
    (f"{PREPROCESS} text.txt --runner os.path.join", "--runner: "),
    (TRAIN.replace("tiny", "tny"), f"--preset: no preset 'tny'; did you mean tiny\\? \\(expected one of {PRESETS}\\)$"),
    (TRAIN.replace("--preset tiny", ""), f"--preset: a new workdir needs a preset: {PRESETS}$"),
    (f"{TRAIN} --set train.lr=1", r"--set: no setting 'train.lr'; did you mean train.learning_rate\?$"),
    (f"{TRAIN} --set train.epochs=many", '--set train.epochs: expected int | null, found "many"'),
    (f"{TRAIN} --patience 3", "--set train.patience: needs held-out text$"),
    (f"{TRAIN} --set model.lstm.units=1000000000", "--preset, --set: the model is too large: "),
    (f"{TRAIN} --gpus 99", NO_GPU),
    ("task ner predict --workdir w --input text.txt --gpus all", NO_GPU),
    (TRAIN.replace("records", "missing"), says("missing", "no such folder$")),
    (f"{TRAIN} --heldout other", says("other", f"{OTHER_WORDS}.*use elmo-tf preprocess --vocab .*records/vocab.txt$")),
    (TRAIN.replace("new/workdir", "other"), says("other", "this folder contains other files; give ")),
    (TRAIN.replace("new/workdir", "trained"), "--preset.*: the model has .*units=24.*, which cannot be changed to "),
    (FINETUNE.replace("new/workdir", "trained"), says("trained", "this is the folder of the source; give ")),
    (f"{FINETUNE} --set model.lstm.units=25", "--set: the model has model.lstm.units=24, which cannot be changed to "),
    (
        FINETUNE.replace("trained", "english"),
        "english: a model's name; make a workdir from it: elmo-tf import english ",
    ),
    (f"{EVALUATE} missing", says("missing", "no such folder$")),
    (f"{EVALUATE} trained --checkpoint best", "--checkpoint: .*trained has no evaluation on held-out text"),
    (f"{EVALUATE} trained --checkpoint 4", "--checkpoint: expected latest, best or one of the steps 3, found '4'"),
    (f"{EVALUATE} untrained", says("untrained", "this workdir has no checkpoint yet$")),
    (f"{EVALUATE} trained --unigram other", says("other", OTHER_WORDS)),
    (f"{EXPORT} --gamma nan", "--gamma: expected a finite number, found nan"),
    *(
        (f"{command} dangling", r"\S*dangling(/1)?: a link to a path that does not exist")
        for command in (
            "export --workdir trained --output",
            "dump-weights --workdir trained --output",
            "import english --workdir",
            "import english --output",
            "projector --model mine --input text.txt --word bank --logdir",
            "weights-plot --model mine --output",
            "probe blimp --model mine --data text.txt --output",
            "train --data records --preset tiny --workdir",
        )
    ),
    ("weights-plot --model mine --output records", "records: this is a folder; name a file$"),
    *(
        (f"{command} --output text.txt", "text.txt: already exists; name a new file$")
        for command in ("look --input text.txt --word the", "surprisal --input text.txt", "weights-plot --model mine")
    ),
    ("look --model mine --input text.txt --word the --output new/page", "new/page: there is no folder .*/new$"),
    ("look --model mine --input text.txt --word the --output -", "-: the name of a file is needed; "),
    ("task ner predict --workdir trained --input text.txt", "trained: not a workdir of elmo-tf task NAME train$"),
    (EXPORT.replace("trained", "task"), r"task: a workdir of `elmo-tf task ner`; use `elmo-tf task ner predict` or"),
    (f"{IMPORT_PAIR} --softmax", r"w/weights.hdf5: the model has no softmax: no softmax.hdf5 beside this file$"),
    (f"{NEIGHBORS} --word sea", "--sentence: it does not contain the word 'sea': 'bank'"),
    (NEIGHBORS.replace("mine", "missing"), rf"\S*missing\S*: {NAMED} \(expected a Saved"),
    (
        "import smal --output new/model",
        rf"(NAME|smal): {NAMED}; did you mean small\? \(expected a Saved",
    ),
    ("verify --model englis", rf"(--model|englis): {NAMED}; did you mean english\? \(expected a folder"),
    ("verify --model no_graph", rf"\S*no_graph\S*: {NAMED} \(expected a folder with saved_model.pb"),
    ("import mine --workdir new/w", r"\S*mine\S*: not published files; use it as it is, or export it$"),
    ("import small", "NAME: requires --output, --workdir or both; found: none of them$"),
    ("import small --vocab a --workdir new/w", "NAME: requires --output, .*; found: --vocab, --workdir$"),
    ("import --weights text.txt --output new/model", "--weights: requires --options, .*; found: --output$"),
    (
        "import --checkpoint a --options b --vocab c --output new/model --workdir new/w",
        "--checkpoint: requires --options, --vocab and --workdir; found: .* --output, --workdir$",
    ),
    (
        "import small --workdir new/w --gamma 2",
        "--mix, --gamma, --tokenizer, --softmax: settings of a SavedModel need",
    ),
]


@pytest.mark.parametrize(
    "command",
    [
        "neighbors --input a --word w --sentence w",
        "score --input a",
        "surprisal --input a --output b",
        "fill text",
        "look --input a --word w --output b",
        "projector --input a --word w --logdir b",
        "probe pos --train a --test b --output c",
        "probe wsd --train a --output b",
        "probe blimp --data a --output b",
    ],
)
def test_commands_use_the_bundled_model_unless_another_is_named(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("w\n")
    parse = cli._parser().parse_args
    assert parse(command.split()).model == "english"
    assert parse([*command.split(), "--model", "mine"]).model == "mine"


@pytest.mark.parametrize(("command", "message"), WRONG, ids=[command for command, _ in WRONG])
def test_wrong_input_is_one_line_that_names_it_and_nothing_is_left_behind(
    project, command, message, capsys, monkeypatch
):
    monkeypatch.chdir(project)
    before = snapshot(project)
    assert cli.main(command.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    (line,) = err.splitlines()
    assert re.match(f"elmo-tf: error: {message}", line), line
    assert snapshot(project) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "COMMAND"),
        ("embroider", "invalid choice: 'embroider' .*train.*\\)$"),
        ("trian", r"invalid choice: 'trian' .*; did you mean train\?$"),
        ("train --data records", "required: --workdir"),
        (f"{TRAIN} --steps -1", "--steps: expected a whole number, at least 0, found '-1'"),
        (f"{TRAIN} --epochs 0", "--epochs: expected a whole number, at least 1, found '0'"),
        (f"{TRAIN} --steps 1 --epochs 1", "not allowed with"),
        (f"{EXPORT} --gamma large", "--gamma: invalid float value: 'large'"),
        ("preprocess --output new/data", "required: --input"),
        ("corpus", "required: CORPUS"),
        ("import --output new/model", "one of the arguments NAME --weights --checkpoint is required"),
        ("import small --weights text.txt --output new/model", "argument --weights: not allowed with argument NAME"),
        ("corpus lm1b --archive text.txt", "required: --output"),
        ("score --model= --input text.txt", "argument --model: expected a value, found an empty one$"),
        ("embed --model= --input text.txt --output new", "argument --model: expected a value, found an empty one$"),
        (f"{PREPROCESS} text.txt --runner=", "argument --runner: expected a value, found an empty one$"),
    ],
)
def test_wrong_usage_ends_with_status_2_and_nothing_is_left_behind(project, command, message, capsys, monkeypatch):
    monkeypatch.chdir(project)
    before = snapshot(project)
    with pytest.raises(SystemExit) as caught:
        cli.main(command.split())
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: elmo-tf")
    assert re.search(message, err.splitlines()[-1]), err
    assert snapshot(project) == before


LOADED = """
import sys
from elmo_tf import cli
print(cli.main(sys.argv[1:]), *[name in sys.modules for name in ("tensorflow", "sklearn", "matplotlib")])
import sklearn, matplotlib
"""


@pytest.mark.parametrize("command", ["fill", "score --input", "task ner predict --input", "preprocess --output"])
def test_an_empty_argument_is_refused(command, capsys):
    *_, before = words = command.split()
    with pytest.raises(SystemExit) as caught:
        cli.main([*words, ""])
    assert caught.value.code == 2
    named = f"argument {before}: " if before.startswith("--") else ""
    assert capsys.readouterr().err.endswith(f" error: {named}expected a value, found an empty one\n")


def test_an_error_is_all_that_a_user_sees_and_needless_modules_are_not_loaded(project):
    command = f"{EVALUATE} bad_variables".split()
    done = run_python("-c", LOADED, *command, cwd=project, env={"TF_CPP_MIN_LOG_LEVEL": None}, check=False)
    assert (done.returncode, done.stdout) == (0, "1 True False False\n"), done.stderr
    message = r"elmo-tf: error: .*/bad_variables/.*step-00000003: the checkpoint is damaged: .*\n"
    assert re.fullmatch(message, done.stderr), done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_stdout_ends_a_command_quietly(unbuffered):
    read_end, write_end = os.pipe()
    os.close(read_end)
    options = {"capture_output": False, "stdout": write_end, "stderr": subprocess.PIPE, "check": False}
    try:
        done = run_python("-m", "elmo_tf.cli", "models", env={"PYTHONUNBUFFERED": unbuffered}, **options)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_command_with_closed_streams_does_its_work(project, tmp_path):
    command = f"{sys.executable} -m elmo_tf.cli surprisal --input text.txt --output {tmp_path}/new <&- >&- 2>&-"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(["sh", "-c", command], cwd=project, env=environment, check=False).returncode == 0
    assert len((tmp_path / "new").read_text().splitlines()) == 1 + 5


REPEATED_ARRAYS = """
import resource
import threading
import numpy as np
from elmo_tf.cli import quiet
if sys.argv[1] == "kept":
    quiet.keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in (2**24, 2**25):  # bytes; written, so that every page is needed
        np.full(size, 1, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
counts = []
def count():
    counts.extend([faults(), faults()])
thread = threading.Thread(target=count)
thread.start()
thread.join()
print(counts[1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is of glibc's allocator")
def test_the_memory_of_an_array_is_kept_for_the_next():
    kept, returned = (int(run_python("-c", "import sys" + REPEATED_ARRAYS, how).stdout) for how in ("kept", ""))
    # Without, each page of both arrays, of 4 kB or, where the system joins them, of 2 MB, is faulted in again.
    assert returned >= 24
    assert kept < returned / 4


def test_results_are_utf_8_whatever_the_locale_is():
    code = "from elmo_tf import cli; cli.main(['models', '--json']); print('M\u00fcnchen')"
    done = run_python("-c", code, env={"PYTHONIOENCODING": "latin-1"}, text=False)
    assert done.stdout.endswith("München\n".encode())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "Broken pipe"),
        (verification.VerificationError("failed:\noutput 'elmo' differs\nmore"), "failed: output 'elmo' differs more"),
    ],
)
def test_an_error_of_the_system_or_of_the_verification_is_one_line(capsys, monkeypatch, error, message):
    def fail(_):
        raise error

    monkeypatch.setattr(verification, "verify", fail)
    assert cli.main(["verify", "--model", "model"]) == 1
    assert re.fullmatch(f"elmo-tf: error: {message}\n", capsys.readouterr().err)


def test_help_names_every_command_and_does_not_wait_for_tensorflow():
    code = "import sys; from elmo_tf import cli\ntry: cli.main(['--help'])\nfinally: print('tensorflow' in sys.modules)"
    out = run_python("-c", code).stdout
    names = "preprocess corpus train finetune evaluate export models import dump-weights embed neighbors verify task"
    for name in names.split():
        assert re.search(rf"^ +{name}\b", out, re.MULTILINE), name
    assert out.endswith("False\n")


def test_the_installed_command_is_this_one(capfd):
    script = pathlib.Path(sys.executable).with_name("elmo-tf")
    if not script.exists():
        pytest.skip(f"elmo-tf is not installed beside {sys.executable}; `make setup` does that")
    assert subprocess.run([script, "--version"], check=False).returncode == 0
    assert capfd.readouterr().out == f"elmo-tf {__version__}\n"


def test_an_error_erases_the_progress_line_that_it_replaces_on_a_terminal(project, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["score", "--input", "missing.txt"]) == 1
    assert capsys.readouterr().err == "\033[Kelmo-tf: error: missing.txt: no such file\n"
