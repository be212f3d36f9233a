"""The ways to load an exported model: plain TensorFlow, Keras, as TensorFlow Hub does, and from the command line."""

import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import MICRO_NUMBERS, batch_char_ids, slow
from tests.savedmodel.calls import LENGTHS, PADDED, SAME, TEXT, WORDS, assert_same, embed, numbers_of

FRESH = """
import sys
# Importing either fails; TensorFlow itself tries Keras.
sys.modules.update(elmo_tf=None, keras=None)
import numpy as np
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
found = model.signatures["default"](strings=tf.constant(list(np.load(sys.argv[2])["text"])))
np.savez(sys.argv[3], **{name: value.numpy() for name, value in found.items() if name != "tokens"})
print(sorted(name for name, module in sys.modules.items() if module and name.startswith(("elmo_tf", "keras"))))
"""


@pytest.mark.slow
def test_a_fresh_process_needs_tensorflow_only_and_no_file_elsewhere(savedmodel, loaded, tmp_path):
    moved = shutil.copytree(savedmodel.path, tmp_path / "moved")
    np.savez(tmp_path / "text.npz", text=np.array(TEXT[:4]))
    arguments = [moved, tmp_path / "text.npz", tmp_path / "found.npz"]
    command = [sys.executable, "-I", "-c", FRESH, *map(str, arguments)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert_same(dict(np.load(tmp_path / "found.npz")), embed(loaded, TEXT[:4]))


@pytest.mark.parametrize("endpoint", [slow("default"), "serving_default", slow("tokens"), slow("char_ids")])
def test_each_signature_is_a_layer_of_a_functional_keras_model(savedmodel, loaded, endpoint):
    _, specs = loaded.signatures[endpoint].structured_input_signature
    # The tokens come before their lengths.
    names = sorted(specs, reverse=True)
    inputs = {name: keras.Input(specs[name].shape[1:], dtype=specs[name].dtype.name, name=name) for name in names}
    layer = keras.layers.TFSMLayer(str(savedmodel.path), call_endpoint=endpoint)
    first, *others = inputs.values()
    model = keras.Model(list(inputs.values()), layer(first, **{one.name: one for one in others}))
    values = {
        "strings": tf.constant(TEXT),
        "tokens": tf.constant(PADDED),
        "sequence_len": tf.constant(LENGTHS),
        "char_ids": tf.constant(batch_char_ids(WORDS)),
    }
    found = model.predict([values[name] for name in names], verbose=0)
    assert_same(numbers_of(found), embed(loaded, TEXT))
    if endpoint != "char_ids":
        assert found["tokens"].tolist() == PADDED
    assert [tuple(variable.shape) for variable in layer.trainable_variables] == [(3,), ()]
    # The initial states.
    num_states = 2 * 2 * (24 + 8)
    assert sum(int(np.prod(variable.shape)) for variable in layer.non_trainable_variables) == MICRO_NUMBERS + num_states


def test_a_keras_model_trains_the_mix_and_nothing_else_of_it(savedmodel):
    strings = keras.Input((), dtype="string")
    layer = keras.layers.TFSMLayer(str(savedmodel.path), call_endpoint="default")
    model = keras.Model(strings, keras.layers.Dense(1)(layer(strings)["default"]))
    model.compile("adam", "mse")
    # As savedmodels/README.md says.
    model.optimizer.build(model.trainable_variables)
    mixed, frozen = layer.trainable_variables, layer.non_trainable_variables
    before = [[variable.numpy().copy() for variable in part] for part in (mixed, frozen)]
    model.fit(tf.constant(TEXT), np.ones((len(TEXT), 1)), epochs=2, verbose=0)
    assert len(mixed) == 2
    assert all(np.abs(new.numpy() - old).max() > 1e-4 for new, old in zip(mixed, before[0], strict=True))
    assert all(np.array_equal(new, old) for new, old in zip(frozen, before[1], strict=True))


@pytest.mark.slow
def test_the_loaded_object_has_what_tensorflow_hub_asks_of_a_reusable_savedmodel(savedmodel):
    model = tf.saved_model.load(str(savedmodel.path))  # as hub.load does
    mix = [variable.ref() for variable in model.trainable_variables]
    assert all(variable.trainable == (variable.ref() in mix) for variable in model.variables)
    # hub.KerasLayer passes `training` by name, a Python bool or a tensor of an outer function.
    outer = tf.function(lambda strings, training: model(strings, training=training)["elmo"])
    for training in (False, True, tf.constant(True)):
        np.testing.assert_allclose(outer(tf.constant(TEXT), training), model(tf.constant(TEXT))["elmo"], **SAME)
