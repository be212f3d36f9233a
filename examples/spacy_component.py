"""A spaCy component that puts ELMo vectors into `doc.tensor`: one row for each token, in the context of its sentence.

    nlp = spacy.load("en_core_web_sm")  # or spacy.blank("en"), with the component "sentencizer"
    nlp.add_pipe("elmo", config={"source": "savedmodels/mine"})
    doc = nlp("The bank lends money.")
    print(doc.tensor.shape)  # (5, 256)

Import this file first; spaCy then knows the name "elmo". Components that run before it, such as the tagger, keep what
they have computed, but not what they may have put into `doc.tensor`.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

import elmo_tf


@Language.factory("elmo", default_config={"source": "books"})
def make_elmo(nlp: Language, name: str, source: str) -> "ElmoTensors":
    """Returns the component for a model: a SavedModel, a workdir, or the name of a published model."""
    return ElmoTensors(source)


class ElmoTensors:
    """Fills `doc.tensor` with float32 `(tokens, dim)`."""

    def __init__(self, source: str):
        self._model = elmo_tf.load(source)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = 64) -> Iterator[Doc]:
        """Yields the documents of a stream; the sentences of `batch_size` documents are one batch of the model."""
        for docs in minibatch(stream, batch_size):
            # A document without sentence boundaries is one sentence.
            split = [list(doc.sents) if doc.has_annotation("SENT_START") else [doc] for doc in docs]
            sentences = [[token.text for token in sentence] for one in split for sentence in one]
            vectors = iter(one.vectors for one in self._model.encode(sentences))
            for doc, one in zip(docs, split, strict=True):
                found = [next(vectors) for _ in one]
                if found:
                    doc.tensor = np.concatenate(found)
                yield doc
