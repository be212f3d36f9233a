"""Configuration: the presets' numbers, `key=value` overrides, JSON, and what is refused."""

import dataclasses
import json

import numpy as np
import pytest

from elmo_tf import config
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from tests.helpers import MICRO


@pytest.mark.parametrize(
    ("name", "units", "projection_dim", "num_filters", "num_highway", "num_parameters"),
    [
        ("tiny", 512, 128, 512, 1, 2_996_432),
        ("small", 1024, 128, 2048, 1, 13_593_296),
        ("medium", 2048, 256, 2048, 1, 28_027_728),
        ("original", 4096, 512, 2048, 2, 93_600_848),
    ],
)
def test_presets_have_the_published_sizes(name, units, projection_dim, num_filters, num_highway, num_parameters):
    model = config.preset(name).model
    assert model.num_parameters() == num_parameters
    assert (model.lstm.units, model.lstm.projection_dim, model.lstm.num_layers) == (units, projection_dim, 2)
    assert (model.lstm.cell_clip, model.lstm.proj_clip, model.lstm.use_skip_connections) == (3.0, 3.0, True)
    assert (model.char_cnn.num_filters, model.char_cnn.num_highway) == (num_filters, num_highway)
    assert (model.char_cnn.embedding_dim, model.char_cnn.max_chars_per_token) == (16, 50)
    assert model.char_cnn.activation == "relu"


def test_original_is_the_released_models_recipe():
    expected = {"batch_size": 128, "unroll_steps": 20, "epochs": 10, "learning_rate": 0.2, "initial_accumulator": 1.0}
    expected |= {"clip_norm": 10.0, "num_sampled": 8192, "dropout_rate": 0.1, "precision": "float32"}
    train = dataclasses.asdict(config.preset("original").train)
    assert {name: train[name] for name in expected} == expected
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    assert config.preset("original").model.char_cnn.filters == filters


def test_json_brings_back_an_equal_config_and_a_missing_key_has_its_default():
    for made in map(config.preset, config.PRESETS):
        assert config.from_dict(json.loads(json.dumps(config.to_dict(made)))) == made
    model, train = config.ModelConfig(lstm=config.LSTMConfig(units=600)), config.TrainConfig(batch_size=3)
    given = {"train": {"batch_size": 3}, "model": {"lstm": {"units": 600}}}
    assert config.from_dict(given) == config.Config(model, train)


def test_overrides_set_what_they_name_and_nothing_else():
    base = config.preset("tiny")
    assignments = ["train.learning_rate=1", "train.precision=bfloat16", "model.char_cnn.filters=[[1,4],[2,8]]"]
    made = config.override(base, [*assignments, "model.lstm.proj_clip=null", "model.lstm.use_skip_connections=false"])
    assert made.train == dataclasses.replace(base.train, learning_rate=1.0, precision="bfloat16")
    assert isinstance(made.train.learning_rate, float)
    assert made.model.lstm == dataclasses.replace(base.model.lstm, proj_clip=None, use_skip_connections=False)
    assert made.model.char_cnn == dataclasses.replace(base.model.char_cnn, filters=((1, 4), (2, 8)))
    assert config.override(base, []) == base
    assert config.override(base, ["train.seed=1", "train.seed=2"]).train.seed == 2


@pytest.mark.parametrize(
    "assignment",
    [
        "train.batch_size=true",
        "train.learning_rate=NaN",
        "train.muon_weight_decay=-0.1",
        "train.precision=float16",
        "model.lstm.projection_dim=600",
        "model.char_cnn.filters=[[51,1]]",
        f"train.learning_rate=1{'0' * 400}",
    ],
)
def test_a_wrong_value_is_refused_with_its_key(assignment):
    with pytest.raises(InputError, match=rf"^{assignment.partition('=')[0]}: expected .*, found "):
        config.override(config.preset("tiny"), [assignment])


@pytest.mark.parametrize(
    ("values", "key", "problem"),
    [
        ([], "", "expected an object, found []"),
        ({"model": {"lstm": 3}}, "model.lstm", "expected an object, found 3"),
        ({"model": {"cnn": {}}}, "", "no setting 'model.cnn' (expected one of model.char_cnn.activation, "),
        ({"train": {"sed": 1}}, "", "no setting 'train.sed'; did you mean train.seed?"),
        ({"train": {"seed": "1"}}, "train.seed", 'expected int, found "1"'),
        ({"train": {"decay": "slow"}}, "train.decay", "expected one of none, linear, cosine, inverse_sqrt, found "),
        ({"model": {"char_cnn": {"filters": [[1, 0]]}}}, "model.char_cnn.filters", "expected [0][1] to be int >= 1, "),
    ],
)
def test_wrong_json_is_refused_with_its_key_and_its_file(values, key, problem):
    with pytest.raises(InputError) as error:
        config.from_dict(values)
    assert str(error.value).startswith(f"{key or 'configuration'}: {problem}")
    with pytest.raises(InputError) as error:
        config.from_dict(values, source="a/config.json")
    assert str(error.value).startswith(f"a/config.json: {key and f'{key}: '}{problem}")


def test_a_config_made_in_a_program_is_checked_and_has_pythons_numbers():
    with pytest.raises(InputError, match=r"^batch_size: expected int >= 1, found 0$"):
        config.TrainConfig(batch_size=0)
    made = config.TrainConfig(batch_size=np.int64(3), learning_rate=np.float32(0.5))
    assert json.loads(json.dumps(config.to_dict(made)))["batch_size"] == 3
    assert config.CharCNNConfig(filters=[[1, 2]]).filters == ((1, 2),)


def test_a_stored_config_has_every_key_of_its_model():
    values = config.to_dict(config.Config())
    del values["train"]["decay"]
    config.check_complete(values, "config.json")
    for section, key in [("lstm", "model.lstm.units"), ("char_cnn", "model.char_cnn.filters")]:
        cut = json.loads(json.dumps(values))
        del cut["model"][section][key.split(".")[2]]
        with pytest.raises(InputError, match=rf"^config.json: no key {key}$"):
            config.check_complete(cut, "config.json")


@pytest.mark.parametrize("vocab_size", [None, 9])
def test_the_number_of_parameters_is_the_network_s(vocab_size):
    same_width = dataclasses.replace(MICRO, lstm=config.LSTMConfig(units=8, projection_dim=8, num_layers=1))
    no_projection = dataclasses.replace(MICRO, char_cnn=dataclasses.replace(MICRO.char_cnn, filters=((1, 8),)))
    for model in (MICRO, same_width, no_projection):
        assert model.num_parameters(vocab_size) == BiLM(model, vocab_size).count_params()


@pytest.mark.parametrize("name", config.PRESETS)
def test_the_papers_recipe_is_the_originals_but_for_sizes(name):
    own = config.preset(name)
    paper, original = config.with_paper_recipe(own), config.preset("original")
    assert paper.model == own.model
    sizes = ("batch_size", "num_sampled", "reset_rate", "checkpoint_steps", "look_steps")
    kept = {size: getattr(own.train, size) for size in sizes}
    assert paper.train == dataclasses.replace(original.train, **kept)
