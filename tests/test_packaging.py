"""What is installed: bounds, extras and the line that names a missing one, `make setup`, `.gitignore`, the wheel."""

import importlib.metadata
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types

import pytest
import tensorflow as tf
from packaging import requirements
from pytest_split import algorithms

import elmo_tf
import elmo_tf.text
from elmo_tf import extras
from elmo_tf.text import in_graph
from tests.helpers import ROOT, require_package_index, run_python, write_records

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCK = (ROOT / "requirements-dev.lock").read_text()


def package(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0]


def test_every_extra_that_an_error_names_has_the_package_that_is_missing():
    for name, extra in extras._EXTRAS.values():
        assert name in map(package, EXTRAS[extra])
    needed = {
        package(requirement) for extra in ("beam", "text", "spacy", "tasks", "hub") for requirement in EXTRAS[extra]
    }
    assert needed == {name for name, _ in extras._EXTRAS.values()}


def test_the_versions_of_python_are_the_same_everywhere():
    listed = [classifier.rsplit(" ", 1)[1] for classifier in PROJECT["classifiers"] if "Python :: 3." in classifier]
    assert listed == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert "(3, 11) <= sys.version_info[:2] <= (3, 13)" in (ROOT / ".ci" / "setup").read_text()


def test_requirements_citation_and_licenses_are_those_of_the_project():
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert EXTRAS["all"] == ["elmo-tf[beam,text,tasks,hub]"]
    assert lines == [*PROJECT["dependencies"], *EXTRAS["beam"], *EXTRAS["text"], *EXTRAS["tasks"], *EXTRAS["hub"]]
    assert f"\nversion: {elmo_tf.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert PROJECT["license"] == "Apache-2.0 AND CC-BY-SA-4.0"
    first = [(ROOT / file).read_text().split()[:2] for file in PROJECT["license-files"]]
    assert first == [["Apache", "License"], ["Attribution-ShareAlike", "4.0"]]


def test_workflows_may_only_read_run_pinned_actions_and_test_the_python_of_their_job():
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = file.read_text()
        assert "\npermissions:\n  contents: read\n" in text, file
        for action in re.findall("uses: (.*)", text):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action), action
    assert "PYTHON: python${{ matrix.python }}" in (ROOT / ".github" / "workflows" / "test.yml").read_text()


def test_a_part_of_the_slow_tests_takes_at_most_ten_minutes_and_a_day_runs_them_all():
    durations = json.loads((ROOT / "tests" / "slow_durations.json").read_text())
    parts = int(re.search(r"^parts=(\d+)$", (ROOT / ".ci" / "slow").read_text(), re.MULTILINE)[1])
    items = [types.SimpleNamespace(nodeid=name) for name in durations]
    for part in algorithms.Algorithms["duration_based_chunks"].value(parts, items, durations):
        assert 0 < part.duration < 600  # even if one process runs all of it
    daily = (ROOT / ".github" / "workflows" / "daily.yml").read_text()
    assert re.search(r'cron: "\d+ \d+ \* \* \*"', daily) and "- run: make test-all\n" in daily


def test_the_lock_has_hashes_and_a_version_in_every_range_and_names_no_server():
    assert "--extra dev --generate-hashes" in (ROOT / "BUILD.md").read_text()
    entries = re.findall(
        r"^([\w.-]+)==([^\s;]+)[^\n]*\\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", LOCK, re.MULTILINE
    )
    assert len(entries) == len(re.findall(r"^\S", LOCK, re.MULTILINE))  # nothing else is in it
    assert "://" not in LOCK and not re.search("(^| )/", LOCK, re.MULTILINE)
    listed = [*PROJECT["dependencies"], *itertools.chain(*map(EXTRAS.get, ("beam", "text", "tasks", "hub", "dev")))]
    for needed in map(requirements.Requirement, listed):
        name = re.sub("[._]", "-", needed.name).lower()
        versions = [version for locked, version, _ in entries if locked == name]
        assert name == "elmo-tf" or (versions and all(map(needed.specifier.contains, versions))), needed


@pytest.mark.parametrize("name", ["daily", "release", "test"])
def test_the_workflows_install_what_is_locked(name):
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    first = re.search(r"- run: (?:make setup|\.ci/run)(?:.*\n){1,4}", text)[0]
    assert re.search("LOCKED(=|: )1\n", first)
    assert "--require-hashes -r requirements-dev.lock" in (ROOT / ".ci" / "setup").read_text()


@pytest.mark.slow
def test_a_clone_of_the_packages_name_does_not_hide_it_from_programs_beside_it(tmp_path):
    clone = tmp_path / "elmo_tf"
    shutil.copytree(ROOT / "elmo_tf", clone / "elmo_tf", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    require_package_index()  # for setuptools
    run_outside(tmp_path, sys.executable, "-m", "venv", tmp_path / "venv").check_returncode()
    python = tmp_path / "venv" / "bin" / "python"
    run_outside(tmp_path, python, "-m", "pip", "install", "--no-deps", "-e", clone).check_returncode()
    done = run_outside(tmp_path, python, "-c", "import elmo_tf; print(elmo_tf.__version__)")
    assert (done.stdout, done.stderr) == (f"{elmo_tf.__version__}\n", "")


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_without(absent: set[str], code: str) -> subprocess.CompletedProcess:
    return run_python("-c", WITHOUT.format(absent=absent) + code, check=False)


def test_the_page_without_tensorflow_runs_where_its_four_packages_are_installed():
    page = (ROOT / "docs" / "without-tensorflow.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (packages,) = re.findall(r"^pip install ('numpy.*)$", page, re.MULTILINE)
    needed = ["numpy", "h5py", "msgspec", "threadpoolctl"]
    assert [package(requirement) for requirement in shlex.split(packages)] == needed
    absent = set(importlib.metadata.packages_distributions()) - {"elmo_tf", *needed}
    assert "tensorflow" in absent
    command = "from elmo_tf import cli; cli.main(['fill', 'He [MASK] to London .', '--model', 'english', '--top', '1'])"
    done = run_without(absent, f"{program}\n{command}")
    assert done.returncode == 0, done.stderr
    *vectors, total, word, filled = done.stdout.splitlines()
    assert [line.rpartition("(")[2] for line in vectors] == ["5, 256)", "6, 256)"]
    assert float(total) < 0 and word.isalpha() and json.loads(filled)["token"] == "went"


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("preprocess --input text --output data", "apache-beam: install elmo-tf with the extra [beam]"),
        ("preprocess --help", "apache-beam: install elmo-tf with the extra [beam]"),
        ("weights-plot --model model --output plot", "matplotlib: install elmo-tf with the extra [tasks]"),
    ],
)
def test_a_command_without_its_extra_is_one_line_with_what_installs_it(command, missing):
    done = run_without(set(extras._EXTRAS), f"from elmo_tf import cli; sys.exit(cli.main({command.split()}))")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"elmo-tf: error: needs {missing}\n")


def test_the_unicode_tokenizer_in_a_graph_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    monkeypatch.delitem(sys.modules, "elmo_tf.text.raw_text", raising=False)
    monkeypatch.delattr(elmo_tf.text, "raw_text", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"needs tensorflow-text: install elmo-tf with the extra \[text\]"):
        in_graph.split_with_offsets(tf.constant(["a dog"]), "unicode")


LOAD = """
import os
import elmo_tf
os.environ["ELMO_TF_HOME"] = sys.argv[2]
for use in (
    lambda: elmo_tf.load("english", engine="tensorflow"),
    lambda: elmo_tf.load(sys.argv[1], engine="numpy"),
    lambda: elmo_tf.load("small"),
    lambda: elmo_tf.ELMo,
):
    try:
        use()
    except ModuleNotFoundError as error:
        print(error)
"""


def test_what_needs_a_package_beyond_those_of_numpy_says_so_without_it(workdir, tmp_path):
    code = WITHOUT.format(absent={"tensorflow", "keras", "filelock"}) + LOAD
    done = run_python("-c", code, workdir.path, tmp_path, check=False)
    packages = ("tensorflow", "tensorflow", "filelock", "keras")
    expected = [f"needs {package}: install elmo-tf with its dependencies" for package in packages]
    assert done.stdout.splitlines() == expected, done.stderr


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        pytest.skip(f"no git checkout: {done.stderr}")
    return done.stdout.splitlines()


def test_what_the_commands_leave_is_ignored_and_no_file_of_the_project_is():
    left = ["data/train/info.json", "runs/mine/config.json", "corpora/lm1b/x", "published/mine/weights.hdf5"]
    left += ["vectors.hdf5", "dist/elmo_tf.whl", "build/demo/x", "savedmodels/mine/1/saved_model.pb", "train.log"]
    assert git("check-ignore", "--no-index", *left) == left
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard") == []


TOOLS = ("sh", "dirname", "mkdir", "rm", "touch", "mv", "cp", "head", "make")
# A stand-in for an interpreter, which makes a .venv of itself and installs nothing.
PYTHON = """#!/bin/sh
case "$2" in
    venv) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    pip) ;;
    *sys.version_info\\[:2\\]*) {fits} ;;
    *base_prefix*) echo "{version} of /opt" ;;
esac
"""


class Checkout:
    """A folder with `make setup` in it, and the Pythons that are found from there."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.tools = folder / "checkout", folder / "bin"
        (self.folder / ".ci").mkdir(parents=True)
        self.tools.mkdir()
        for name in ("Makefile", ".ci/setup"):
            shutil.copy(ROOT / name, self.folder / name)
        for name in ("pyproject.toml", "requirements.txt"):
            (self.folder / name).touch()
        for tool in TOOLS:
            (self.tools / tool).symlink_to(shutil.which(tool))

    def add_python(self, name: str, version: str, fits: bool = True) -> None:
        path = self.tools / name
        path.write_text(PYTHON.format(version=version, fits="exit 0" if fits else "exit 1"))
        path.chmod(0o755)

    def setup(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [self.tools / "make", "--no-print-directory", "setup", *arguments]
        environment = {"PATH": str(self.tools)}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_setup_takes_the_newest_python_that_runs_and_installs_again_only_if_the_requirements_are_newer(checkout):
    checkout.add_python("python3.13", "3.13.0", fits=False)  # like a pyenv shim of a version that is not enabled
    checkout.add_python("python3.12", "3.12.1")
    checkout.add_python("python3.11", "3.11.7")
    assert "with Python 3.12.1" in checkout.setup().stdout
    again = checkout.setup()
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    later = (checkout.folder / ".venv" / "installed").stat().st_mtime + 10
    os.utime(checkout.folder / "pyproject.toml", (later, later))
    done = checkout.setup()
    assert "Installing TensorFlow" in done.stdout
    assert "Making .venv" not in done.stdout


def test_setup_says_so_when_no_python_fits(checkout):
    checkout.add_python("python3", "3.10.1", fits=False)
    done = checkout.setup()
    assert done.returncode != 0
    assert "no Python 3.11, 3.12 or 3.13 with venv; name one" in done.stderr
    done = checkout.setup("PYTHON=python3")
    assert "PYTHON: python3 is not Python 3.11, 3.12 or 3.13 with venv" in done.stderr
    assert not (checkout.folder / ".venv").exists()


def test_setup_refuses_the_environment_of_another_checkout(checkout):
    if sys.prefix == sys.base_prefix:
        pytest.skip("needs a virtual environment with an editable elmo-tf, as `make setup` makes it")
    (checkout.folder / ".venv").symlink_to(sys.prefix)
    done = checkout.setup()
    assert done.returncode != 0
    assert ".venv belongs to /" in done.stderr


# What a program does after `pip install elmo-tf`; arguments: a folder of records, a SavedModel, a new folder.
PROGRAM = """
import dataclasses, importlib.util, json, sys
import tensorflow as tf
import elmo_tf

records, savedmodel, folder = sys.argv[1:]
assert not any(map(importlib.util.find_spec, ("apache_beam", "tensorflow_text", "sklearn")))
layer = elmo_tf.ELMo(savedmodel)
config = elmo_tf.Config(layer.bilm.config, elmo_tf.TrainConfig(batch_size=2, num_sampled=4))
workdir = elmo_tf.train(config, records, f"{folder}/run", heldout=records, steps=2)
perplexity = elmo_tf.evaluate(workdir, records).perplexity
path = elmo_tf.export(workdir, f"{folder}/model")
shapes = [model.encode(["the cat sat"])[0].vectors.shape for model in map(elmo_tf.load, (savedmodel, path, workdir))]
print(json.dumps([elmo_tf.__file__, perplexity, [list(shape) for shape in shapes],
                  list(layer(tf.constant([["the", "cat"]])).shape)]))
"""


def run_outside(folder: pathlib.Path, *command: str | os.PathLike) -> subprocess.CompletedProcess:
    """Runs a command that does not see this checkout, neither from `folder` nor by PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def new_environment(folder: pathlib.Path, python: str, *packages: str | os.PathLike) -> pathlib.Path:
    """Makes a virtual environment with packages in `folder`; returns its commands."""
    folder.mkdir(exist_ok=True)
    run_outside(folder, python, "-m", "venv", folder / "venv").check_returncode()
    commands = folder / "venv" / "bin"
    pip = (commands / "python", "-m", "pip", "--disable-pip-version-check", "install")
    done = run_outside(folder, *pip, *packages)
    assert done.returncode == 0, done.stderr
    return commands


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist that it was made from, as in a release; the tools are from PyPI."""
    require_package_index()
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT / "elmo_tf", folder / "source" / "elmo_tf", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    tools = re.search(r"pip install (build==\S+) (twine==\S+)", release).groups()
    python = new_environment(folder / "tools", sys.executable, *tools) / "python"
    done = run_outside(folder, python, "-m", "build", "--outdir", folder / "dist", folder / "source")
    assert done.returncode == 0, done.stderr
    files = {"wheel": next((folder / "dist").glob("*.whl")), "sdist": next((folder / "dist").glob("*.tar.gz"))}
    done = run_outside(folder, python, "-m", "twine", "check", "--strict", *files.values())
    assert done.returncode == 0, done.stdout
    return files


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The wheel, and the commands of a fresh environment with it and no extra; from PyPI, a minute or two."""
    return built["wheel"], new_environment(tmp_path_factory.mktemp("wheel"), sys.executable, built["wheel"])


def interpreter(version: str) -> str:
    """Returns a Python of this version on the path or from pyenv; skips a test if there is none."""
    installed = sorted(pathlib.Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}"))
    for python in (f"python{version}", *map(str, installed)):
        # The command of pyenv may stand for a version that is not enabled.
        if (
            shutil.which(python)
            and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return python
    return pytest.skip(f"needs Python {version}")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.13"])
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_the_files_of_a_release_work_in_an_empty_environment(kind, version, built, tmp_path):
    python = interpreter(version)
    named = {package(requirement): requirement for requirement in PROJECT["dependencies"]}
    needed = [named[name] for name in ("numpy", "h5py", "msgspec", "threadpoolctl")]  # those of NumPy's engine
    commands = new_environment(tmp_path / "new", python, *needed)
    done = run_outside(tmp_path, commands / "python", "-m", "pip", "install", "--no-deps", built[kind])
    assert done.returncode == 0, done.stderr
    done = run_outside(tmp_path, commands / "elmo-tf", "fill", "He [MASK] to London.", "--top", "1")
    assert json.loads(done.stdout)["token"] == "went", done.stderr


@pytest.mark.slow
def test_the_wheel_has_every_module_and_the_mark_of_its_type_hints(installed):
    listing = subprocess.run([sys.executable, "-m", "zipfile", "-l", installed[0]], capture_output=True, check=True)
    names = {line.split()[0] for line in listing.stdout.decode().splitlines()[1:]}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "elmo_tf").rglob("*.py")}
    box = {str(path.relative_to(ROOT)) for path in (ROOT / "elmo_tf" / "published").glob("*/*")}
    assert {name for name in names if ".dist-info/" not in name} == sources | box | {
        "elmo_tf/py.typed",
        "elmo_tf/probes/look.html",
    }


@pytest.mark.slow
def test_a_program_trains_and_embeds_with_the_wheel_alone(installed, savedmodel, tmp_path):
    records = write_records(tmp_path / "records", ["the cat sat", "a dog barked", "the dog sat on the mat"] * 4)
    done = run_outside(tmp_path, installed[1] / "python", "-c", PROGRAM, records.path, savedmodel.path, tmp_path)
    assert done.returncode == 0, done.stderr
    file, perplexity, of_savedmodels, of_layer = json.loads(done.stdout)
    assert pathlib.Path(file).is_relative_to(installed[1].parent)
    assert 1 < perplexity < 1000
    assert (of_savedmodels, of_layer) == ([[3, 16]] * 3, [1, 2, 16])


@pytest.mark.slow
def test_a_type_checker_knows_the_names_of_the_wheel(installed, tmp_path):
    (tmp_path / "program.py").write_text(
        "import elmo_tf\n"
        "perplexity = elmo_tf.evaluate('runs/mine', 'data/heldout').perplexity\n"
        "reveal_type(perplexity)\n"
        "elmo_tf.evaluate(3, 'data/heldout')\n"
        "elmo_tf.evalute\n"
    )
    python = installed[1] / "python"
    done = run_outside(tmp_path, sys.executable, "-m", "mypy", "--python-executable", python, "program.py")
    revealed, *errors = done.stdout.splitlines()
    assert revealed == 'program.py:3: note: Revealed type is "float"'
    assert [line.partition(" error: ")[0] for line in errors[:-1]] == ["program.py:4:", "program.py:5:"]


def test_a_module_that_no_extra_has_keeps_its_own_error():
    with pytest.raises(ModuleNotFoundError, match="No module named 'apache_bean'"), extras.explain_missing_extra():
        import apache_bean  # noqa: F401, PLC0415
    assert extras.missing_extra(ModuleNotFoundError(name="apache_beam.io.gcp")) is None
