"""The contract: said once, and without imports from elmo_tf."""

import tensorflow as tf

from elmo_tf.model.bilm import DIRECTIONS, BiLM
from elmo_tf.savedmodel import contract, standalone_checker
from tests.helpers import MICRO, ROOT
from tests.test_imports import imports


def test_states_are_named_in_the_order_of_the_networks_own():
    shapes = [state.shape[1] for state in tf.nest.flatten(BiLM(MICRO).zero_states(1))]
    sizes = {"units": 24, "projection_dim": 8}
    assert [sizes[tensor.shape[1]] for tensor in contract.states(2).values()] == shapes
    assert list(contract.states(1))[:2] == ["forward_cell1", "forward_recurrent1"]
    assert contract.DIRECTIONS == DIRECTIONS


def test_the_checker_and_the_contract_import_nothing_of_elmo_tf():
    for name in ("standalone_checker.py", "contract.py"):
        assert imports(ROOT / "elmo_tf" / "savedmodel" / name) == set()
    assert standalone_checker.contract.SIGNATURES == contract.SIGNATURES
