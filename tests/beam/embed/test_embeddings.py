"""`ElmoEmbeddings` in Beam's `MLTransform` and with the chunks of its RAG pipelines."""

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.ml.rag.types import Chunk, Content
from apache_beam.ml.transforms.base import EmbeddingTypeAdapter, MLTransform
from apache_beam.testing.util import assert_that

import elmo_tf
from elmo_tf.beam import ElmoEmbeddings, ElmoModelHandler
from elmo_tf.errors import InputError
from tests import checks
from tests.helpers import slow

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["the cat sat", "a dog barked at the cat", " ", "the cat sat"]


def run(elements: list, transform: MLTransform, check) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create(elements, reshuffle=False) | transform, check)


def vectors(savedmodel, **options) -> dict[str, np.ndarray]:
    return dict(zip(TEXTS, elmo_tf.load(savedmodel.path).encode(TEXTS, **options), strict=True))


def check_vector(vector: list[float], expected: np.ndarray) -> None:
    assert {type(value) for value in vector} == {float}
    np.testing.assert_allclose(vector, expected, **checks.TOLERANCE)


@pytest.mark.parametrize("kind", [slow(dict), beam.Row])
def test_columns_hold_vectors_and_what_is_saved_embeds_the_same(savedmodel, tmp_path, kind):
    expected = vectors(savedmodel, layers="top", pool="max")
    rows = [kind(number=number, text=text, same=TEXTS[1]) for number, text in enumerate(TEXTS)]

    def check(outputs):
        outputs = [row if kind is dict else row._asdict() for row in outputs]
        assert sorted(row["number"] for row in outputs) == [0, 1, 2, 3]
        for row in outputs:
            check_vector(row["text"], expected[TEXTS[row["number"]]])
            check_vector(row["same"], expected[TEXTS[1]])

    embeddings = ElmoEmbeddings(savedmodel.path, "top", "max", columns=["text", "same"], max_batch_size=3)
    run(rows, MLTransform(write_artifact_location=str(tmp_path / "saved")).with_transform(embeddings), check)
    rows = [kind(number=number, text=text, same=TEXTS[1]) for number, text in enumerate(TEXTS)]
    run(rows, MLTransform(read_artifact_location=str(tmp_path / "saved")), check)


def test_the_chunks_of_a_rag_pipeline_get_their_embedding(savedmodel, tmp_path):
    expected = vectors(savedmodel, pool="mean")
    chunks = [Chunk(Content(text=text), id=str(number)) for number, text in enumerate(TEXTS)]

    def check(embedded):
        assert sorted(chunk.id for chunk in embedded) == ["0", "1", "2", "3"]
        for chunk in embedded:
            assert chunk.content.text == TEXTS[int(chunk.id)]
            check_vector(chunk.embedding.dense_embedding, expected[chunk.content.text])

    embeddings = ElmoEmbeddings(savedmodel.path)
    run(chunks, MLTransform(write_artifact_location=str(tmp_path)).with_transform(embeddings), check)
    embeddings.get_model_handler().run_inference(chunks, embeddings.get_model_handler().load_model())
    assert [chunk.embedding for chunk in chunks] == [None] * 4  # other transforms may read the elements


def pairs(elements: list, embedded: list) -> list:
    return list(zip(elements, embedded, strict=True))


def test_elements_of_any_kind_need_an_adapter(savedmodel, tmp_path):
    expected = vectors(savedmodel, layers=1, pool="mean")

    def check(outputs):
        assert len(outputs) == len(TEXTS)
        for text, vector in outputs:
            check_vector(vector, expected[text])

    adapter = EmbeddingTypeAdapter(input_fn=list, output_fn=pairs)
    embeddings = ElmoEmbeddings(savedmodel.path, 1, type_adapter=adapter, large_model=True)
    assert embeddings.get_model_handler().share_model_across_processes()
    run(TEXTS, MLTransform(write_artifact_location=str(tmp_path)).with_transform(embeddings), check)


def test_what_cannot_be_used_is_named():
    cases = {
        "^layers: expected top, average, .*, found all, several vectors$": {"layers": "all"},
        "^layers: expected one of all, top, .*, found 'best'$": {"layers": "best"},
        "^pool: expected one of mean, max, found None$": {"pool": None},
        "^columns: expected a list of names, found 'text'$": {"columns": "text"},
    }
    for message, wrong in cases.items():
        with pytest.raises(InputError, match=message):
            ElmoEmbeddings("books", **{"columns": ["text"]} | wrong)
    with pytest.raises(InputError, match=r"^pool: expected None or one of mean, max, found 'sum'$"):
        ElmoModelHandler("books", pool="sum")
    with pytest.raises(InputError, match=r"^precision: expected one of float32, bfloat16, found 'int8'$"):
        ElmoModelHandler("books", precision="int8")
