"""A program that loads a model keeps its stderr, environment and logging, and other threads can import meanwhile."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
import json, logging, os, sys, threading
import elmo_tf
before = dict(os.environ), os.fstat(2).st_ino, logging.root.handlers[:], logging.getLogger("tensorflow").level
found, stop = {"sklearn": [], "stderr": set()}, threading.Event()

def meanwhile():
    import sklearn.linear_model
    while not stop.is_set():
        found["sklearn"].append(sys.modules.get("sklearn") is not None)
        found["stderr"].add(os.fstat(2).st_ino)
        stop.wait(0.005)

other = threading.Thread(target=meanwhile)
other.start()
found_vectors = elmo_tf.load(sys.argv[1]).encode([["a", "bank"]], "all")[0].vectors
stop.set()
other.join()
import keras, sklearn.base
classifier = keras.wrappers.SKLearnClassifier(lambda X, y: keras.Sequential())
# TensorFlow's own import may set variables of its own.
own = {name for name in os.environ if not name.startswith(("TF2_BEHAVIOR", "TPU_ML_PLATFORM", "KMP_"))}
print(json.dumps({
    "shape": found_vectors.shape,
    "sklearn": all(found["sklearn"]) and len(found["sklearn"]) > 0,
    "stderr": found["stderr"] == {before[1]} and os.fstat(2).st_ino == before[1],
    "environment": sorted(own - before[0].keys()),
    "logging": logging.root.handlers == before[2] and logging.getLogger("tensorflow").level == before[3],
    "wrapper": isinstance(classifier, sklearn.base.BaseEstimator),
}))
"""


@pytest.mark.slow
def test_loading_keeps_stderr_environment_and_logging_and_lets_other_threads_import(savedmodel):
    command = [sys.executable, "-c", PROGRAM, str(savedmodel.path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = {"stderr": True, "environment": [], "logging": True}
    assert json.loads(done.stdout) == {"shape": [3, 2, 16], "sklearn": True, "wrapper": True, **kept}
