"""What can be set."""

import pytest

from elmo_tf.errors import InputError
from elmo_tf.tasks import systems
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
        ("fit.epoch=1", r"assignments: no setting 'fit.epoch'; did you mean fit.epochs\?"),
        ("help=1", r"assignments: no setting 'help' \(expected one of elmo.dropout_rate, .*"),
        ("fit.ema=1.0", "fit.ema: expected float < 1.0, found 1.0"),
        ("fit.seed=2147483648", "fit.seed: expected int <= 2147483647, found 2147483648"),
        ("fit.learning_rate=0.0", "fit.learning_rate: expected float > 0.0, found 0.0"),
        ("fit.judge_every=26", "fit.judge_every: 26 is more than patience, 25"),
        ("fit.clip_norm=5.0,fit.clip_value=1.0", "fit.clip_value: cannot be set together with clip_norm"),
        ("elmo.place=top", "elmo.place: expected one of none, input, output, both, found .top."),
        ("spelling.more_widths=[0]", r"spelling.more_widths: expected \[0\] to be int >= 1, found 0"),
        ("sentiment network.hidden=[9]", "network.hidden_dropout_rates: has 2 values, but hidden has 1"),
        ("sentiment network.classes=3", "network.classes: expected 2 or 5, found 3"),
        ("entailment network.penalty=-1.0", "network.penalty: expected float >= 0.0, found -1.0"),
    ],
)
def test_wrong_settings_are_named(assignment, message):
    task, _, setting = assignment.rpartition(" ")
    with pytest.raises(InputError, match=f"^{message}$"):
        chosen((systems.system_class(task) if task else Task).recipes, setting.split(","))


def test_every_system_has_the_papers_recipe_first_and_a_small_one():
    for name in systems.SYSTEMS:
        assert list(systems.system_class(name).recipes) == ["paper", "small"]
        assert systems.system_class(name).name == name
