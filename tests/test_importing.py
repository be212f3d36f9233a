"""Importing the package changes nothing in a program: no class of Beam, no logging, no environment, no signal."""

import json

from tests.helpers import run_python
from tests.test_imports import MODULES

# It is imported in a process of our own, to change it.
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
    classes = [one for module in beam for one in vars(module).values()
               if isinstance(one, type) and one.__module__.startswith("apache_beam")]
    found = {one.__qualname__ + "@" + one.__module__: members(one) for one in classes if "grpc" not in one.__module__}
    found |= {module.__name__: members(module) for module in beam}
    root = logging.getLogger()
    found["logging"] = {"handlers": list(map(repr, root.handlers)), "filters": list(map(repr, root.filters)),
                        "level": root.level, "beam": logging.getLogger("apache_beam").level}
    found["stores"] = {"classes": [one.__module__ for one in FileSystem.get_all_subclasses()]}
    found["environment"] = dict(os.environ)
    signals = [repr(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    found["process"] = {"signals": signals, "errors": [repr(sys.excepthook), repr(threading.excepthook)]}
    return found


before = state()
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
import elmo_tf
for name in elmo_tf.__all__:
    getattr(elmo_tf, name)
after = state()
members_before = [(place, name, member) for place, found in before.items() for name, member in found.items()]
print([(place, name) for place, name, member in members_before if after.get(place, {}).get(name) != member])
"""


def test_importing_every_module_and_public_name_changes_nothing_in_the_process():
    names = [name for name in MODULES if name not in (_OWN_PROCESS, _WITH_SPACY) and not name.endswith("__main__")]
    assert {"elmo_tf.beam", "elmo_tf.beam.preprocess.run", "elmo_tf.cli"} <= set(names)
    done = run_python("-c", CODE, json.dumps(names), check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
