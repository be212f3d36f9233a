"""A model on disk and in use: which batches it gets, from how many threads."""

import concurrent.futures
import hashlib
import itertools
import json
import random
import shutil

import numpy as np
import pytest

from elmo_tf.errors import InputError
from elmo_tf.savedmodel import contract, embedding
from tests import checks


@pytest.mark.parametrize("batch_tokens", [1, 10, 64, 10_000])
def test_batches_hold_every_sentence_that_has_tokens_once_and_those_of_like_lengths_together(batch_tokens, monkeypatch):
    monkeypatch.setattr(embedding, "PIECE_TOKENS", 100)
    choose = random.Random(0)
    lengths = [choose.choice([0, 1, 2, 5, 30, 99, 101]) for _ in range(200)]
    batches = list(embedding.batches(lengths, batch_tokens))
    places = list(itertools.chain.from_iterable(batches))
    assert sorted(places) == [place for place, length in enumerate(lengths) if length]
    assert [lengths[place] for place in places] == sorted(filter(None, lengths))
    for batch in batches:
        longest = lengths[batch[-1]]
        assert len(batch) == 1 or (len(batch) * longest <= batch_tokens and longest <= 100)
    for one, following in itertools.pairwise(batches):
        shortest = lengths[following[0]]
        # The next sentence did not fit.
        assert (len(one) + 1) * shortest > batch_tokens or shortest > 100


@pytest.fixture(scope="module")
def model(savedmodel):
    return embedding.Embedder(embedding.find_model(savedmodel.path), batch_tokens=20)


SENTENCES = [f"{'so ' * (number % 9)}sentence {number} é".encode().split() for number in range(60)]


def test_sentences_come_once_with_the_same_vectors_whatever_their_order_and_from_any_thread(model):
    expected = dict(model.embed(SENTENCES))
    assert sorted(expected) == list(range(60))
    order = random.Random(1).sample(range(60), 60)

    def embed() -> dict[int, np.ndarray]:
        return dict(model.embed([SENTENCES[place] for place in order]))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        runs = [threads.submit(embed) for _ in range(8)]
        for run in runs:
            for place, found in run.result().items():
                assert found.shape == (3, len(SENTENCES[order[place]]), 16)
                np.testing.assert_allclose(found, expected[order[place]], **checks.TOLERANCE)


def test_the_weights_of_the_mix_are_those_of_its_vector(model, savedmodel):
    layers = dict(model.embed(SENTENCES))
    for place, mixed in model.embed(SENTENCES, "mix"):
        np.testing.assert_allclose(np.tensordot(model.mix_weights(), layers[place], 1), mixed, **checks.TOLERANCE)
    assert model.mix_weights().sum() == pytest.approx(savedmodel.gamma, rel=checks.FEW["rtol"])


def test_progress_is_reported_for_every_batch(model):
    reported = []
    yielded = [place for place, _ in model.embed([*SENTENCES, []], progress=reported.append)]
    assert list(itertools.chain.from_iterable(reported)) == yielded
    assert len(reported) > 10


def test_the_checksum_is_that_of_graph_and_weights_if_these_are_whole(savedmodel, tmp_path):
    whole = embedding.find_model(savedmodel.path).sha256()
    one = embedding.find_model(shutil.copytree(savedmodel.path, tmp_path / "one"))
    assert one.sha256() == whole
    listed = json.loads((one.path / contract.CHECKSUMS_FILE).read_text())
    for name, counts in (("assets/config.json", False), ("variables/variables.index", True), ("saved_model.pb", True)):
        content = bytearray((one.path / name).read_bytes())
        content[-1] ^= 1
        (one.path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"expected {name} with SHA-256"):
            one.sha256()
        listed[name]["sha256"] = hashlib.sha256(content).hexdigest()
        (one.path / contract.CHECKSUMS_FILE).write_text(json.dumps(listed))
        assert (one.sha256() != whole) == counts
        whole = one.sha256()
