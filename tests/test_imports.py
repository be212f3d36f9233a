"""Imports go down only, change nothing in a program, and those of Beam's workers are light."""

import ast
import functools
import importlib
import json
import pathlib
from collections.abc import Iterator

from tests.helpers import ROOT, run_python

JOBS = "elmo_tf.beam."
# From the ground up; a package stands for all its modules.
FLOORS = (
    {"elmo_tf", "elmo_tf.display", "elmo_tf.errors", "elmo_tf.extras"},
    {"elmo_tf.config", "elmo_tf.files", "elmo_tf.precision", "elmo_tf.text"},
    {"elmo_tf.annotated", "elmo_tf.corpus", "elmo_tf.records"},
    {"elmo_tf.model", "elmo_tf.tasks.layers"},
    {"elmo_tf.reference", "elmo_tf.scoring", "elmo_tf.workdir"},
    {"elmo_tf.published"},
    {"elmo_tf.savedmodel"},
    {"elmo_tf.sources"},
    {"elmo_tf.engines", "elmo_tf.training"},
    {"elmo_tf.embedder"},
    {
        *("elmo_tf.allennlp", "elmo_tf.api", "elmo_tf.beam", "elmo_tf.keras_layer", "elmo_tf.probes", "elmo_tf.push"),
        "elmo_tf.spacy",
    },
    {"elmo_tf.tasks"},
    {"elmo_tf.cli"},  # nothing imports the command line
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# Packages that use ELMo.
USES = {"elmo_tf.annotated", "elmo_tf.probes", "elmo_tf.tasks", "elmo_tf.tasks.layers"}


def name_of(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted((ROOT / "elmo_tf").rglob("*.py"))}


def room(module: str) -> str:
    parts = module.split(".")
    inner = ".".join(parts[:3])
    return inner if inner in FLOOR_OF else ".".join(parts[:2])


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Yields every node below this one, except what `if TYPE_CHECKING:` keeps for type checkers."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from running(child)


def imports(path: pathlib.Path) -> set[str]:
    """Returns the modules of this project that a file imports anywhere in it."""
    names = set()
    for node in running(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names.update((inner & MODULES.keys()) or {node.module})
    return {name for name in names if name.split(".")[0] == "elmo_tf"}


@functools.cache
def edges() -> list[tuple[str, str]]:
    return [(module, imported) for module, path in MODULES.items() for imported in sorted(imports(path))]


def test_the_walk_sees_imports_of_both_forms_and_inside_functions():
    assert ("elmo_tf.model.bilm", "elmo_tf.text.char_ids") in edges()
    assert ("elmo_tf.beam.report", "elmo_tf") in edges()
    assert ("elmo_tf.cli.jobs", "elmo_tf.beam.preprocess") in edges()


def test_every_module_has_a_floor():
    assert [module for module in MODULES if room(module) not in FLOOR_OF] == []
    assert FLOOR_OF.keys() <= MODULES.keys()


def test_imports_only_go_down():
    up = [(module, imported) for module, imported in edges() if FLOOR_OF[room(module)] < FLOOR_OF[room(imported)]]
    assert up == []


def test_rooms_of_one_floor_do_not_import_each_other_in_a_circle():
    between = {(room(module), room(imported)) for module, imported in edges()}
    assert [pair for pair in between if pair[0] != pair[1] and pair[::-1] in between] == []


def test_only_the_command_line_knows_the_jobs():
    users = {room(module) for module, imported in edges() if imported.startswith(JOBS)}
    assert users == {"elmo_tf.beam", "elmo_tf.cli"}


def test_the_modules_that_are_imported_are_those_of_this_checkout():
    assert pathlib.Path(importlib.import_module("elmo_tf").__file__).parent == ROOT / "elmo_tf"


LOCAL = """
import sys
from elmo_tf.beam import embed
from elmo_tf.beam.preprocess import PreprocessConfig, preprocess
preprocess(PreprocessConfig(input=sys.argv[1], output=sys.argv[2]))
print([name for name in sys.modules if name in ("elmo_tf.files.remote_stores", "elmo_tf.files.s3_client")])
"""


def test_a_run_of_the_local_runner_on_local_files_imports_nothing_of_stores(tmp_path):
    (tmp_path / "text").write_text("a dog barked\n")
    done = run_python("-c", LOCAL, tmp_path / "text", tmp_path / "records", check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_elmo_itself_does_not_know_what_it_is_used_for():
    users = {room(module) for module, imported in edges() if room(imported) in USES}
    assert users == USES | {"elmo_tf.cli"}


def test_what_finds_other_workers_is_imported_where_there_are_some():
    users = {module for module, imported in edges() if imported == "elmo_tf.training.cluster"}
    assert users == {"elmo_tf.cli.training"}  # inside a function


NETWORK = """
import sys, elmo_tf.model.bilm
print([name for name in sys.modules if name.split(".")[0] == "elmo_tf"])
"""


def test_whoever_reads_the_network_need_not_read_records_files_or_published_models():
    names = ast.literal_eval(run_python("-c", NETWORK).stdout)
    assert len(names) <= 8
    assert sum(len(MODULES[name].read_text().splitlines()) for name in names) <= 1400
    assert {room(name) for name in names} == {
        "elmo_tf",
        "elmo_tf.config",
        "elmo_tf.errors",
        "elmo_tf.model",
        "elmo_tf.text",
    }


FIRST_VECTORS = """
import sys, elmo_tf
elmo_tf.load("english").encode(["The bank lends money ."])
print([name for name in sys.modules if name.split(".")[0] == "elmo_tf"])
"""


def test_the_first_vectors_take_nineteen_modules_and_nothing_of_other_sources_or_of_probabilities():
    names = ast.literal_eval(run_python("-c", FIRST_VECTORS).stdout)
    # Packages whose `__init__` is a docstring are not counted.
    assert len([name for name in names if len(MODULES[name].read_text().splitlines()) > 1]) <= 19
    assert {room(name) for name in names} == {
        "elmo_tf", "elmo_tf.config", "elmo_tf.embedder", "elmo_tf.engines", "elmo_tf.errors", "elmo_tf.files",
        "elmo_tf.published", "elmo_tf.sources", "elmo_tf.text",
    }  # fmt: skip


def test_nothing_of_the_product_uses_what_judges_it():
    assert [module for module, imported in edges() if imported == "elmo_tf.reference"] == []
    assert len(MODULES["elmo_tf.reference"].read_text().splitlines()) <= 120


LIGHT = (
    "elmo_tf.text.char_ids",
    "elmo_tf.text.vocabulary",
    "elmo_tf.records.record_folder",
    "elmo_tf.records.wire",
    "elmo_tf.records.vector_files",
    "elmo_tf.workdir.folder",
    "elmo_tf.embedder",
    "elmo_tf.reference",
    "elmo_tf.sources",
    "elmo_tf.beam.preprocess",
    "elmo_tf.beam.embed",
    "elmo_tf.probes.neighbors",
)


def test_light_modules_do_not_import_tensorflow_and_what_fetches_a_corpus_does_not_import_beam(tmp_path):
    heavy = "[name for name in sys.modules if name.partition('.')[0] in ('tensorflow', 'keras', 'apache_beam')]"
    command = ["corpus", "lm1b", "--output", str(tmp_path / "new"), "--archive", "none"]
    done = run_python("-c", f"import sys; from elmo_tf import cli; print(cli.main({command}), {heavy})")
    assert (done.stdout, done.stderr) == ("1 []\n", "elmo-tf: error: none: no such file\n")
    heavy = heavy.replace(", 'apache_beam'", "")
    code = f"import sys, {', '.join(LIGHT)}; print({heavy})"
    done = run_python("-c", code)
    assert done.stdout == "[]\n"
    # Beam logs at its import that Google's client is not installed.
    assert [line for line in done.stderr.splitlines() if "apitools not found" not in line] == []


# This module is imported only in our own worker processes, which it changes.
_OWN_PROCESS = "elmo_tf.beam.worker_start"
_WITH_SPACY = "elmo_tf.spacy"  # spaCy need not be installed
CODE = """
import importlib, json, logging, os, signal, sys, threading, types

# What these change themselves is not ours; Beam's optional parts are imported, so that a replaced class is seen.
import tensorflow, keras, apache_beam
import apache_beam.io.aws.s3filesystem, apache_beam.ml.inference.base, apache_beam.runners.worker.sdk_worker_main
import apache_beam.runners.direct.direct_runner, apache_beam.runners.portability.fn_api_runner.worker_handlers
from apache_beam.io.filesystem import FileSystem


def members(value):
    return {name: id(member) for name, member in vars(value).items() if not isinstance(member, types.ModuleType)}


def state():
    beam = [module for name, module in sys.modules.items() if name.partition(".")[0] == "apache_beam"]
    classes = [value for module in beam for value in vars(module).values()
               if isinstance(value, type) and value.__module__.startswith("apache_beam")]
    owners = {f"{kind.__qualname__}@{kind.__module__}": members(kind) for kind in classes
              if "grpc" not in kind.__module__}
    owners |= {module.__name__: members(module) for module in beam}
    root = logging.getLogger()
    owners["logging"] = {"handlers": list(map(repr, root.handlers)), "filters": list(map(repr, root.filters)),
                         "level": root.level, "beam": logging.getLogger("apache_beam").level}
    owners["stores"] = {"classes": [kind.__module__ for kind in FileSystem.get_all_subclasses()]}
    owners["environment"] = dict(os.environ)
    signals = [repr(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    owners["process"] = {"signals": signals, "errors": [repr(sys.excepthook), repr(threading.excepthook)]}
    return owners


before = state()
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
import elmo_tf
for name in elmo_tf.__all__:
    getattr(elmo_tf, name)
after = state()
print([(owner, name) for owner, values in before.items() for name, value in values.items()
       if after.get(owner, {}).get(name) != value])
"""


def test_importing_every_module_and_public_name_changes_nothing_in_the_process():
    names = [name for name in MODULES if name not in (_OWN_PROCESS, _WITH_SPACY) and not name.endswith("__main__")]
    assert {"elmo_tf.beam", "elmo_tf.beam.preprocess.run", "elmo_tf.cli"} <= set(names)
    done = run_python("-c", CODE, json.dumps(names), check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_the_checker_of_an_export_imports_nothing_of_elmo_tf():
    assert imports(MODULES["elmo_tf.savedmodel.standalone_checker"]) == set()


BROUGHT = """
import importlib, json, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
    # A package stands for nothing of its own.
    names = [name for name in sys.modules if name.startswith("elmo_tf.") and not hasattr(sys.modules[name], "__path__")]
    print(json.dumps(sorted(names)))
"""


def test_who_reads_the_training_loop_need_not_read_the_whole_package():
    done = run_python("-c", BROUGHT, "elmo_tf.training.step", "elmo_tf.training.loop")
    step, loop = map(json.loads, done.stdout.splitlines())
    assert len(step) <= 16, step
    assert len(loop) <= 36, loop
