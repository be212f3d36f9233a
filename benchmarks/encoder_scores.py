"""Encoders of tokens, and scores of linear probes on their vectors: what several benchmarks share."""

import pathlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import elmo_tf
from elmo_tf.annotated import columns, tag_schemes
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.conllu import read_conllu
from elmo_tf.annotated.senses import read_semcor
from elmo_tf.probes import pos, wsd

CORES = 2
_BATCH = 32  # sentences of about one length
POS_FILES = ("ud_ewt/en_ewt-ud-train.conllu.xz", "ud_ewt/en_ewt-ud-test.conllu")

# From sentences to `(number of the sentence, float32 (layers, tokens, dim))`, in any order.
Encode = Callable[[Sequence[list[str]]], Iterator[tuple[int, np.ndarray]]]


def elmo(source: str) -> tuple[Encode, list[str]]:
    """Returns an encoder of elmo_tf's and the names of its vectors."""
    embedder = elmo_tf.load(source)

    def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for number, layers in embedder.embed([[token.encode() for token in tokens] for tokens in sentences]):
            yield number, np.concatenate([layers, layers.mean(0, keepdims=True)])

    return encode, [*(f"layer {number}" for number in range(embedder.source.num_layers)), "average"]


def transformer(model, tokenizer) -> Encode:
    """Returns an encoder of a model of Hugging Face's: all hidden states, word pieces averaged into words."""
    import torch  # noqa: PLC0415

    def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for batch in by_length(sentences):
            pieces = tokenizer(
                [sentences[number] for number in batch],
                is_split_into_words=True,
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            with torch.inference_mode():
                layers = torch.stack(model(**pieces).hidden_states, 1).numpy()
            for row, number in enumerate(batch):
                words = pieces.word_ids(row)
                inside = [position for position, word in enumerate(words) if word is not None]
                sums = np.zeros((layers.shape[1], len(sentences[number]), layers.shape[-1]), np.float32)
                counts = np.zeros(len(sentences[number]), np.float32)
                words_of_pieces = np.array([words[position] for position in inside], int)
                np.add.at(sums, (slice(None), words_of_pieces), layers[row][:, inside])
                np.add.at(counts, words_of_pieces, 1)
                yield number, sums / np.maximum(counts, 1)[:, None]  # a word without a piece stays 0

    return encode


def tok2vec(vocab, component) -> Encode:
    """Returns an encoder of a component `tok2vec` of spaCy's."""
    from spacy.tokens import Doc  # noqa: PLC0415

    def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for batch in by_length(sentences):
            vectors = component.predict([Doc(vocab, words=sentences[number]) for number in batch])
            for number, sentence in zip(batch, vectors, strict=True):
                yield number, sentence[None]

    return encode


def by_length(sentences: Sequence[list[str]]) -> Iterator[list[int]]:
    """Yields the numbers of sentences, in batches of about one length."""
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    for start in range(0, len(order), _BATCH):
        yield order[start : start + _BATCH]


def spans_of(encode: Encode, sentences: Sequence[list[str]], spans: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """Returns float16 `(spans, layers, dim)`: the mean vector of each span of tokens, in order."""
    firsts = np.cumsum([0, *map(len, spans)])
    with_spans = [number for number, inside in enumerate(spans) if inside]
    means = None
    for index, layers in encode([sentences[number] for number in with_spans]):
        number = with_spans[index]
        if means is None:
            means = np.zeros((firsts[-1], layers.shape[0], layers.shape[-1]), np.float16)
        for row, (start, end) in enumerate(spans[number], firsts[number]):
            means[row] = layers[:, start:end].mean(1)
    return means


def predicted_tags(encode: Encode, parts: Sequence[Sequence[Tagged]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yields for each vector of an encoder the tags of the second part's tokens: the data's, and those predicted.

    A logistic regression learns them from the first part.
    """
    tokens = [[sentence.tokens for sentence in part] for part in parts]
    layers = [spans_of(encode, part, [[(n, n + 1) for n in range(len(words))] for words in part]) for part in tokens]
    train, test = (np.array([label for sentence in part for label in sentence.labels]) for part in parts)
    for number in range(layers[0].shape[1]):
        yield test, pos.classify(*(vectors[:, number].astype(np.float32) for vectors in layers), train)


def entity_f1(sentences: Sequence[Tagged], all_tags: Sequence[str]) -> float:
    """Returns the F1 of the entities in IOB2 tags; an `I-` that continues nothing begins an entity."""
    num_right = num_spans = start = 0
    for sentence in sentences:
        end = start + len(sentence.labels)
        gold, predicted = (set(tag_schemes.spans(list(tags))) for tags in (sentence.labels, all_tags[start:end]))
        num_right, num_spans, start = num_right + len(gold & predicted), num_spans + len(gold) + len(predicted), end
    return 2 * num_right / num_spans


def scores_of(
    encode: Encode, names: Sequence[str], data: pathlib.Path, limit: int | None = None
) -> dict[str, dict[str, float]]:
    """Returns the scores of each of the named vectors, 0 to 1; `limit` is that of `sampled`."""
    pos_parts = [sampled(read_conllu(data / path), limit) for path in POS_FILES]
    tags = [float(np.mean(gold == predicted)) for gold, predicted in predicted_tags(encode, pos_parts)]
    entity_files = (data / f"uner_ewt/{part}.conll.xz" for part in ("train", "dev"))
    entity_parts = [sampled(columns.read_columns(path), limit) for path in entity_files]
    entities = [entity_f1(entity_parts[1], predicted) for _, predicted in predicted_tags(encode, entity_parts)]
    sense_parts = [sampled(part, limit) for part in wsd.split(read_semcor(data / "semcor30/semcor30.tsv.xz"))]
    uses = [[[(use.start, use.end) for use in sentence.uses] for sentence in part] for part in sense_parts]
    vectors = [
        spans_of(encode, [sentence.tokens for sentence in part], spans)
        for part, spans in zip(sense_parts, uses, strict=True)
    ]
    senses = [
        wsd.f1([part[:, number].astype(np.float32) for part in vectors], sense_parts) for number in range(len(names))
    ]
    rows = zip(tags, entities, senses, strict=True)
    return {
        name: dict(zip(("pos", "entities", "senses"), row, strict=True)) for name, row in zip(names, rows, strict=True)
    }


def sampled(sentences: list, limit: int | None) -> list:
    """Returns at most `limit` of the sentences, in a random order; all in their order if there are not more."""
    if limit is None or limit >= len(sentences):
        return sentences
    return [sentences[number] for number in np.random.default_rng(0).permutation(len(sentences))[:limit]]
