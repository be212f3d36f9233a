"""A store in memory."""

from tests.beam.conftest import store  # noqa: F401 - a fixture
