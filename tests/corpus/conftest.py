"""A corpus on disk, and the preprocessing of it."""

from tests.beam.conftest import corpus, process  # noqa: F401 - fixtures
