"""The spaCy component `elmo`: what it sets, alone or piped, with static vectors, saved and loaded."""

import pickle
import warnings

import numpy as np
import pytest

import elmo_tf
from elmo_tf.errors import InputError
from tests import checks

spacy = pytest.importorskip("spacy")
pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["The bank lends money.  A naïve bank\nof the river. ", "", " \n", "Dogs bark.", "so " * 40 + "far"]


@pytest.fixture(scope="module")
def nlp(savedmodel):
    made = spacy.blank("en")
    made.add_pipe("sentencizer")
    made.add_pipe("elmo", config={"source": str(savedmodel.path)})
    return made


def test_each_sentence_has_the_vectors_of_its_tokens_and_white_space_has_zeros(nlp, savedmodel):
    elmo = elmo_tf.load(savedmodel.path)
    for doc in map(nlp, TEXTS):
        assert (doc.tensor.shape, doc.tensor.dtype) == ((len(doc), 16), np.float32)
        for sentence in doc.sents:
            words = [token for token in sentence if not token.is_space]
            (expected,) = elmo.encode([[token.text for token in words]])
            for token, vector in zip(words, expected.vectors, strict=True):
                np.testing.assert_allclose(token.vector, vector, **checks.TOLERANCE)
        assert not any(token.vector.any() for token in doc if token.is_space)


def test_without_sentences_the_document_is_one(savedmodel):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"source": str(savedmodel.path), "layers": 1})
    doc = nlp("The bank. A bank.")
    (expected,) = elmo_tf.load(savedmodel.path).encode([[token.text for token in doc]], layers=1)
    np.testing.assert_allclose(doc.tensor, expected.vectors, **checks.TOLERANCE)


def test_words_and_documents_are_as_similar_as_their_vectors_and_there_is_no_warning(nlp):
    doc = nlp("A bank lends. The bank of the river.\n ")
    first, second = doc[1], doc[5]
    assert first.text == second.text
    cosine = first.vector @ second.vector / np.linalg.norm(first.vector) / np.linalg.norm(second.vector)
    assert first.similarity(second) == pytest.approx(cosine, abs=checks.rounding(16 + 16))
    assert doc[1:2].similarity(doc[5:6]) == pytest.approx(cosine, abs=checks.rounding(16 + 16))
    assert cosine < 0.9999  # spaCy itself returns 1 for equal words
    assert first.similarity(doc[-1]) == 0
    first, second = nlp("A bank lends."), nlp("A river.")
    cosine = first.vector @ second.vector / np.linalg.norm(first.vector) / np.linalg.norm(second.vector)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first.similarity(second) == pytest.approx(cosine, abs=checks.rounding(16 + 16))


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_piped_documents_are_those_alone_in_their_order(nlp, batch_size):
    for text, doc in zip(TEXTS * 2, nlp.pipe(iter(TEXTS * 2), batch_size=batch_size), strict=True):
        assert doc.text == text
        np.testing.assert_allclose(doc.tensor, nlp(text).tensor, **checks.TOLERANCE)


def test_a_saved_or_pickled_pipeline_gives_the_same(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded.pipe_names == ["sentencizer", "elmo"]
    np.testing.assert_array_equal(loaded(TEXTS[0]).tensor, nlp(TEXTS[0]).tensor)
    pipe = pickle.loads(pickle.dumps(nlp.get_pipe("elmo")))
    np.testing.assert_allclose(pipe(nlp.make_doc("A bank.")).tensor, nlp("A bank.").tensor, **checks.TOLERANCE)


def test_static_vectors_of_the_pipeline_do_not_hide_those_of_the_context(savedmodel):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("bank", np.ones(3, np.float32))
    nlp.add_pipe("elmo", config={"source": str(savedmodel.path)})
    doc = nlp("The bank")
    np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])
    for part in (doc, doc[0:2]):
        np.testing.assert_allclose(part.vector, doc.tensor.mean(0), **checks.FEW)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"source": "englsh"}, "englsh: no model at this path or of this name; did you mean english?"),
        ({"layers": "all"}, "layers: expected one vector per token: mix, .*, found 'all'"),
        ({"layers": 7}, "layers: expected one of .* or 0 to 2, found 7"),
    ],
)
def test_what_the_component_cannot_use_is_refused_when_it_is_added(config, message):
    with pytest.raises(InputError, match=f"^{message}"):
        spacy.blank("en").add_pipe("elmo", config=config)
