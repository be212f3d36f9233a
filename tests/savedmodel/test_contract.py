"""What verifies an export, in a process that has no elmo_tf, imports nothing of it."""

from tests.helpers import ROOT
from tests.test_imports import imports


def test_the_checker_imports_nothing_of_elmo_tf():
    assert imports(ROOT / "elmo_tf" / "savedmodel" / "standalone_checker.py") == set()
