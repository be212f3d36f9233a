"""`ElmoModelHandler` in pipelines of a user's own."""

import os
import pathlib
import pickle

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.ml.inference.base import RunInference
from apache_beam.testing.util import assert_that

from elmo_tf import embedder as embedding
from elmo_tf import sources
from elmo_tf.beam import ElmoModelHandler
from elmo_tf.beam.embed import embed_task, model_handler
from elmo_tf.errors import InputError
from tests import checks
from tests.beam.common import files

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["the cat  sat", "", b"na\xc3\xafve", ["a b", "c"], [b"the", b"cat", b"sat"]]
TOKENS = [[b"the", b"cat", b"sat"], [], [b"na\xc3\xafve"], [b"a b", b"c"], [b"the", b"cat", b"sat"]]


def test_sentences_and_tokens_give_what_the_model_gives_them_alone_though_processes_share_one_copy(savedmodel):
    expected = dict(embedding.Embedder(sources.find(savedmodel.path)).embed(TOKENS, "mix"))

    def check(results):
        by_text = {pickle.dumps(result.example): result.inference for result in results}
        assert len(results) == len(TEXTS)
        for number, (text, tokens) in enumerate(zip(TEXTS, TOKENS, strict=True)):
            encoded = by_text[pickle.dumps(text)]
            assert encoded.tokens == [token.decode() for token in tokens]
            wanted = expected.get(number, np.zeros((0, 16)))
            assert (encoded.vectors.shape, encoded.vectors.dtype) == (wanted.shape, np.float32)
            np.testing.assert_allclose(encoded.vectors, wanted, **checks.TOLERANCE)

    assert not ElmoModelHandler(savedmodel.path).share_model_across_processes()
    handler = ElmoModelHandler(savedmodel.path, "mix", large_model=True, max_batch_size=2)
    assert handler.share_model_across_processes()
    # Beam keeps the model in a server and sends sentences and vectors there and back.
    with beam.Pipeline("FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create(TEXTS, reshuffle=False) | RunInference(handler), check)


def test_arguments_are_checked_at_once_and_unknown_ones_are_not_ignored_as_beam_would():
    for name in ("batch_tokens", "num_threads"):
        with pytest.raises(InputError, match=f"^{name}: expected .*at least 1, found 0$"):
            ElmoModelHandler("english", **{name: 0})
    with pytest.raises(TypeError, match=r"^ElmoModelHandler has no argument 'layer'$"):
        ElmoModelHandler("english", layer="top", max_batch_size=2)
    ElmoModelHandler("english", max_batch_duration_secs=1, env_vars={"A": "b"})


def test_the_newest_version_is_fetched_from_a_store(savedmodel, store):
    address = "memory://models/mine"
    model = files(savedmodel.path)
    for version in (9, 10):
        store.update({f"{address}/{version}/{name}": content for name, content in model.items()})
    store[f"{address}/9/saved_model.pb"] = b"an older version"
    store[f"{address}/10/variables/"] = b""  # stores mark folders like this
    for folder in (address, f"{address}/10/"):
        with model_handler.local_copy(folder) as (path, source):
            assert source.rstrip("/") == f"{address}/10"
            assert files(pathlib.Path(path)) == model
    handler = ElmoModelHandler(savedmodel.path)
    handler.update_model_path(address.replace("mine", "other"))
    with pytest.raises(InputError, match=r"^\w+://models/other: no saved_model.pb in this folder"):
        handler.load_model()
    for name in ("../../outside", "/outside"):
        store[f"{address}/10/{name}"] = b"of somebody who may write there"
        with pytest.raises(InputError, match=r"^memory://models/mine: a file outside the model's folder: "):
            ElmoModelHandler(address).load_model()
        del store[f"{address}/10/{name}"]
    del store[f"{address}/10/assets/config.json"]
    with pytest.raises(InputError, match=r"assets/config.json is missing"):
        ElmoModelHandler(address).load_model()


@pytest.mark.parametrize(("processes", "threads"), [(None, None), (0, 1), (1, 6), (2, 3), (4, 1), (9, 1)])
def test_a_process_computes_with_its_share_of_the_cores_that_it_may_use(monkeypatch, processes, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    settings = embed_task.Settings(None, "", "all", None, 1, processes)
    assert settings.num_threads() == threads
