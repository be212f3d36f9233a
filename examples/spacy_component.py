"""A spaCy component that puts ELMo vectors into `doc.tensor`: one row for each token, in the context of its sentence.

    nlp = spacy.load("en_core_web_sm")  # or spacy.blank("en"), with the component "sentencizer"
    nlp.add_pipe("elmo", config={"savedmodel": "savedmodels/mine"})
    doc = nlp("The bank lends money.")
    print(doc.tensor.shape)  # (5, 256)

Import this file first; spaCy then knows the name "elmo". Components that run before it, such as the tagger, keep what
they have computed, but not what they may have put into `doc.tensor`.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

import elmo_tf


@Language.factory("elmo", default_config={"savedmodel": "books"})
def make_elmo(nlp: Language, name: str, savedmodel: str) -> "ElmoTensors":
    """Returns the component for a SavedModel: a folder, or the name of a published model."""
    return ElmoTensors(savedmodel)


class ElmoTensors:
    """Fills `doc.tensor` with float32 `(tokens, dim)`."""

    def __init__(self, savedmodel: str):
        self._model = elmo_tf.load(savedmodel)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = 64) -> Iterator[Doc]:
        """Yields the documents of a stream; the sentences of `batch_size` documents are one batch of the model."""
        for docs in minibatch(stream, batch_size):
            # A document without sentence boundaries is one sentence.
            split = [list(doc.sents) if doc.has_annotation("SENT_START") else [doc] for doc in docs]
            sentences = [[token.text for token in sentence] for one in split for sentence in one]
            vectors = iter(self._vectors(sentences))
            for doc, one in zip(docs, split, strict=True):
                found = [next(vectors) for _ in one]
                if found:
                    doc.tensor = np.concatenate(found)
                yield doc

    def _vectors(self, sentences: list[list[str]]) -> list[np.ndarray]:
        tokens = tf.ragged.constant(sentences, tf.string, ragged_rank=1)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        found = self._model.signatures["tokens"](tokens=tokens.to_tensor(""), sequence_len=lengths)["elmo"].numpy()
        return [vectors[:length] for vectors, length in zip(found, lengths.numpy(), strict=True)]
