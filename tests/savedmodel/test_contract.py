"""The contract: said once, and without imports from elmo_tf."""

import ast
import pathlib

import tensorflow as tf

from elmo_tf.bilm.model import DIRECTIONS, BiLM
from elmo_tf.savedmodel import contract, standalone_checker
from tests.helpers import MICRO

ROOT = pathlib.Path(__file__).parents[2]
FILES = [value for name, value in vars(contract).items() if name.endswith("_FILE")]


def test_states_are_named_in_the_order_of_the_networks_own():
    shapes = [state.shape[1] for state in tf.nest.flatten(BiLM(MICRO).zero_states(1))]
    sizes = contract.sizes(2, units=24, projection_dim=8, max_chars_per_token=50)
    assert [sizes[tensor.shape[1]] for tensor in contract.states(2).values()] == shapes
    assert list(contract.states(1))[:2] == ["forward_cell1", "forward_recurrent1"]
    assert contract.DIRECTIONS == DIRECTIONS


def test_no_other_file_of_the_package_spells_a_file_name_or_lists_the_signatures():
    names = set(FILES) | {path.rpartition("/")[2] for path in FILES}
    lists = [set(contract.SIGNATURES), set(contract.FUNCTIONS), set(contract.OUTPUTS)]
    found = []
    for path in sorted((ROOT / "elmo_tf" / "savedmodel").glob("*.py")):
        tree = ast.parse(path.read_text())
        if path.name == "contract.py":
            continue
        found += [f"{path.name}: {node.value}" for node in ast.walk(tree) if getattr(node, "value", None) in names]
        for node in ast.walk(tree):
            parts = getattr(node, "keys", None) or getattr(node, "elts", None) or ()
            texts = {part.value for part in parts if isinstance(part, ast.Constant)}
            found += [f"{path.name}:{node.lineno}: {texts}" for one in lists if texts >= one]
    assert found == []


def test_the_checker_and_the_contract_import_nothing_of_elmo_tf():
    for name in ("standalone_checker.py", "contract.py"):
        tree = ast.parse((ROOT / "elmo_tf" / "savedmodel" / name).read_text())
        froms = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        assert not [one for one in froms + names if one.startswith("elmo_tf")]
    assert standalone_checker.contract.SIGNATURES == contract.SIGNATURES
