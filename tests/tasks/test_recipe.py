"""What can be set."""

import pytest

from elmo_tf import tasks
from elmo_tf.errors import InputError
from elmo_tf.tasks.recipe import chosen
from tests.tasks.toy import Task


def test_a_recipe_is_chosen_by_name_wherever_it_stands_and_the_rest_applied():
    recipe = chosen(Task.recipes, ["fit.epochs=7", "recipe=small", "elmo.mix=top"])
    assert (recipe.words.dim, recipe.elmo.place, recipe.elmo.mix, recipe.fit.epochs) == (2, "both", "top", 7)
    assert chosen(Task.recipes, []) == Task.recipes["paper"]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("recipe=large", "recipe: expected one of paper, small, found 'large'"),
        ("fit.epoch=1", r"assignments: expected the key of a setting, found 'fit.epoch'; did you mean fit.epochs\?"),
        ("help=1", "assignments: expected one of the keys elmo.dropout_rate, .*, found 'help'"),
        ("fit.ema=1.0", "fit.ema: expected 0 or more, below 1, found 1.0"),
        ("fit.seed=2147483648", "fit.seed: expected 0 to 2147483647, found 2147483648"),
        ("fit.epochs=0", "fit.epochs: expected at least 1, found 0"),
        ("elmo.place=top", "elmo.place: expected one of none, input, output, both, found 'top'"),
        ("elmo.dropout_rate=1.0", r"elmo.dropout_rate: expected 0 or more, below 1, found 1.0"),
        ("words.dim=many", "words.dim: expected int, found 'many'"),
    ],
)
def test_wrong_settings_are_named(assignment, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        chosen(Task.recipes, [assignment])


@pytest.mark.parametrize(
    ("name", "assignment", "message"),
    [
        ("ner", "network.units=0", "network.units: expected at least 1, found 0"),
        ("sentiment", "network.hidden=[9,0]", r"network.hidden: expected a list of whole numbers, .*, found \(9, 0\)"),
    ],
)
def test_a_network_without_units_is_refused(name, assignment, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        chosen(tasks.system_class(name).recipes, [assignment])


@pytest.mark.parametrize("name", list(tasks.SYSTEMS))
def test_every_system_has_the_papers_recipe_first_and_a_small_one(name):
    assert list(tasks.system_class(name).recipes) == ["paper", "small"]
    assert tasks.system_class(name).name == name


def test_gradients_are_clipped_in_one_way():
    with pytest.raises(InputError, match=r"^fit.clip_value: expected 0 where clip_norm is not, found 1.0$"):
        chosen(Task.recipes, ["fit.clip_norm=5.0", "fit.clip_value=1.0"])
