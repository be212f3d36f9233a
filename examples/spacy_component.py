"""A spaCy component that writes ELMo vectors to `doc.tensor`: one row per token, in the context of its sentence.

    nlp = spacy.load("en_core_web_sm")  # or spacy.blank("en"), with the component "sentencizer"
    nlp.add_pipe("elmo", config={"source": "savedmodels/mine"})
    doc = nlp("The bank lends money.")
    print(doc.tensor.shape)  # (5, 256)

Import this file first, so that spaCy knows the name "elmo". It replaces a `doc.tensor` that an earlier component wrote;
that component's other results, such as tags, stay.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

import elmo_tf


@Language.factory("elmo", default_config={"source": "english"})
def make_elmo(nlp: Language, name: str, source: str) -> "ElmoTensors":
    """Returns the component; `source` is a SavedModel, a workdir, or the name of a published model."""
    return ElmoTensors(source)


class ElmoTensors:
    """Fills `doc.tensor` with float32 `(tokens, dim)`."""

    def __init__(self, source: str):
        self._model = elmo_tf.load(source)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = 64) -> Iterator[Doc]:
        """Yields the documents of a stream, embedded `batch_size` documents at a time."""
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
