"""Trained systems, each read and traced once."""

import functools

import keras
import pytest

from elmo_tf.tasks import trained
from elmo_tf.tasks.batching import Predictor

_NETWORK = functools.cache(keras.models.load_model)
_PUBLISHED = functools.cache(trained._load_published)
_PREDICTOR = functools.cache(functools.partial(Predictor, None))


def _predictor(system, *networks) -> Predictor:
    predictor = _PREDICTOR(*networks)
    predictor.system = system
    return predictor


@pytest.fixture
def traced_once(monkeypatch):
    """Reads and traces each network once for all commands of a process: it takes seconds."""
    monkeypatch.setattr(keras.models, "load_model", _NETWORK)
    monkeypatch.setattr(trained, "_load_published", _PUBLISHED)
    monkeypatch.setattr(trained, "Predictor", _predictor)
