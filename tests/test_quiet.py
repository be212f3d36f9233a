"""How the command line loads TensorFlow: what it keeps off stderr, and what it does not import."""

import subprocess
import sys

CODE = """
import os, sys
from elmo_tf.cli import quiet
quiet.load_tensorflow(on_gpu=False)
import keras
print(*[name in sys.modules for name in ("tensorflow", "sklearn", "matplotlib")])
import sklearn, matplotlib
os.write(2, b"an error\\n")
"""


def test_start_up_notes_and_needless_imports_are_left_out_and_stderr_is_restored():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "True False False\n"
    assert done.stderr == "an error\n"
