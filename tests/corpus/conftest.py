"""A corpus on disk, and the preprocessing of it, an empty store."""

from tests.beam.conftest import corpus, process, store  # noqa: F401 - fixtures
