"""ELMo in spaCy: `nlp.add_pipe("elmo", config={"source": "english"})`. Needs `elmo-tf[spacy]`.

spaCy finds the component by the entry point in pyproject.toml.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from elmo_tf import embedder, extras, sources
from elmo_tf.errors import InputError

with extras.explain_missing_extra():
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token
    from spacy.util import minibatch


class ElmoPipe:
    """A component that sets `doc.tensor`, float32 `(tokens, dim)`, and each `token.vector`, a row of it.

    A sentence's vectors depend on that sentence alone. Sentences are `doc.sents` if an earlier component has set them;
    otherwise the whole document is a sentence. Tokens of white space are left out, and their vectors are zeros.

    Args:
        source: as for `elmo_tf.load`. Looked up at once; the weights are read with the first document.
        layers: as for `Embedder.encode`, except `"all"`.

    Raises:
        InputError: as `elmo_tf.load` does, or for other layers.
    """

    def __init__(self, source: sources.Path, layers: embedder.Layers = "mix"):
        self._source, self._layers = sources.find(source), layers
        self._model: embedder.Embedder | None = None
        embedder.check_layers(layers, self._source.num_layers)
        if layers == "all":
            raise InputError("layers", "one vector per token: mix, top, average, sum or a number", "'all'")

    def __call__(self, doc: Doc) -> Doc:
        self._embed([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], batch_size: int = 256) -> Iterator[Doc]:
        """Yields the documents; sentences of `batch_size` documents are computed together, by length."""
        for docs in minibatch(stream, batch_size):
            self._embed(docs)
            yield from docs

    def _embed(self, docs: list[Doc]) -> None:
        self._model = self._model or embedder.Embedder(self._source)
        sentences = []
        for doc in docs:
            doc.tensor = np.zeros((len(doc), self._source.dim), np.float32)
            # Without these hooks spaCy prefers static vectors, and a word would equal itself in every context.
            doc.user_token_hooks |= {"vector": _vector, "similarity": _similarity}
            doc.user_span_hooks["similarity"] = doc.user_hooks["similarity"] = _similarity
            for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc]:
                sentences.append([token for token in sentence if not token.is_space])
        words = [[token.text.encode() for token in sentence] for sentence in sentences]
        for index, vectors in self._model.embed(words, self._layers):
            sentence = sentences[index]
            sentence[0].doc.tensor[[token.i for token in sentence]] = vectors


@Language.factory("elmo", assigns=["doc.tensor", "token.vector"], default_config={"source": "english", "layers": "mix"})
def make(nlp: Language, name: str, source: str, layers: str | int) -> ElmoPipe:
    """Returns the component for spaCy."""
    return ElmoPipe(source, layers)


def _vector(token: Token) -> np.ndarray:
    return token.doc.tensor[token.i]


def _similarity(part: Token | Span | Doc, other: Token | Span | Doc) -> float:
    """Returns the cosine of their vectors; 0 if either is zero."""
    lengths = np.linalg.norm(part.vector) * np.linalg.norm(other.vector)
    return float(part.vector @ other.vector / lengths) if lengths else 0.0
