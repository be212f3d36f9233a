"""Typing errors: linear probes that were trained on clean text, tested on text with errors, for several encoders.

    build/encoders/bin/python benchmarks/noise.py --data DIR --output DIR

The encoders, their installation and --data are those of `encoders.py`. For each share of the test text's words, one of
four errors, chosen at random: two neighboring characters swapped, a character dropped, doubled, or replaced by its
neighbor on a QWERTY keyboard. Words with fewer than two letters stay. The errors of 5 % of the words are among those of
10 %, and these among those of 20 %.

- part of speech: accuracy of a logistic regression on UD English EWT's test set, and that of the changed words;
- named entities: F1 of the spans of a logistic regression on Universal NER's EWT dev set.

Prints a table and a line of JSON and draws noise.png. Results are kept in --output; an interrupted run resumes.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import encoder_scores, encoders, measuring, probes
from benchmarks.encoder_scores import Encode
from elmo_tf.annotated import columns
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.conllu import read_conllu
from elmo_tf.probes import pos

SHARES = (0, 5, 10, 20)  # percent of the words
# The layers with the best scores on clean text, see docs/compared.md; another source's average.
_LAYERS = {
    "pos": {"english": 1, "minilm": 2, "spacy": 0, "glove": 0},
    "entities": {"english": 2, "minilm": 4, "spacy": 0, "glove": 0},
}
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBORS = {
    key: row[max(0, column - 1) : column] + row[column + 1 : column + 2]
    for row in _ROWS
    for column, key in enumerate(row)
}
_TITLES = {"pos": "part of speech, accuracy", "entities": "named entities, F1"}


def misspelled(word: str, random: np.random.Generator) -> str:
    """Returns a word with one typing error; it differs from the word, and has at least one character."""
    while True:
        position, kind = int(random.integers(len(word))), int(random.integers(4))
        before, key, after = word[:position], word[position], word[position + 1 :]
        if kind == 0:
            changed = before + after[:1] + key + after[1:]
        elif kind == 1:
            changed = before + after
        elif kind == 2:
            changed = before + key * 2 + after
        else:
            neighbors = _NEIGHBORS.get(key.lower(), key)
            new = neighbors[random.integers(len(neighbors))]
            changed = before + (new.upper() if key.isupper() else new) + after
        if changed not in ("", word):
            return changed


def with_errors(sentences: Sequence[Tagged], percent: int, seed: int) -> tuple[list[Tagged], np.ndarray]:
    """Returns sentences with errors in some percent of their words, and which of all tokens they are in."""
    random = np.random.default_rng(seed)
    tokens = [token for sentence in sentences for token in sentence.tokens]
    words = random.permutation([n for n, token in enumerate(tokens) if sum(map(str.isalpha, token)) >= 2])
    chosen = np.zeros(len(tokens), bool)
    for number in words[: round(len(words) * percent / 100)].tolist():
        chosen[number], tokens[number] = True, misspelled(tokens[number], random)
    ends = np.cumsum([0, *(len(sentence.tokens) for sentence in sentences)])
    changed = [
        Tagged(tokens[start : start + len(sentence.labels)], sentence.labels)
        for sentence, start in zip(sentences, ends, strict=False)
    ]
    return changed, chosen


def scores(name: str, arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Returns the scores of an encoder for each share of errors, 0 to 1, one for each seed."""
    encode, vectors = encoders.opened(name, arguments.data)
    data, by_task = arguments.data, {}
    parts = {
        "pos": [read_conllu(data / path) for path in encoder_scores.POS_FILES],
        "entities": [columns.read_columns(data / f"uner_ewt/{part}.conll.xz") for part in ("train", "dev")],
    }
    for task, whole in parts.items():
        random = np.random.default_rng(0)
        train, test = (
            [part[n] for n in random.permutation(len(part))[:limit]]
            for part, limit in zip(whole, (arguments.train, arguments.test), strict=True)
        )
        layer = _LAYERS[task].get(name, len(vectors) - 1)
        variants = [(0, 0), *((percent, seed) for percent in SHARES[1:] for seed in range(arguments.seeds))]
        tests = [with_errors(test, *variant) for variant in variants]
        features = [_vectors(encode, part, layer) for part in (train, *(changed for changed, _ in tests))]
        labels = np.array([label for sentence in train for label in sentence.labels])
        tags = np.split(pos.classify(features[0], np.concatenate(features[1:]), labels), len(tests))
        gold = np.array([label for sentence in test for label in sentence.labels])
        for (percent, _), (_, chosen), predicted in zip(variants, tests, tags, strict=True):
            score = np.mean(predicted == gold) if task == "pos" else encoder_scores.entity_f1(test, predicted)
            by_task.setdefault(task, {}).setdefault(str(percent), []).append(float(score))
            if task == "pos" and percent:
                right = float(np.mean(predicted[chosen] == gold[chosen]))
                by_task.setdefault("changed words", {}).setdefault(str(percent), []).append(right)
    return by_task


def _vectors(encode: Encode, sentences: Sequence[Tagged], layer: int) -> np.ndarray:
    """Returns one layer of each token, float32 `(tokens, dim)`."""
    tokens = [sentence.tokens for sentence in sentences]
    spans = [[(n, n + 1) for n in range(len(words))] for words in tokens]
    return encoder_scores.spans_of(encode, tokens, spans)[:, layer].astype(np.float32)


def draw(results: dict[str, dict], path: pathlib.Path) -> None:
    """Draws each encoder's scores over the share of words with errors."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for axes, (task, title) in zip(figure.subplots(1, len(_TITLES)), _TITLES.items(), strict=True):
        for name, result in results.items():
            axes.plot(SHARES, [100 * np.mean(result[task][str(share)]) for share in SHARES], marker="o", label=name)
        axes.set(title=title, xlabel="words with an error, percent", xticks=SHARES)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), frameon=False, loc="outside right center")
    figure.savefig(path, dpi=120)


def main(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of data sets")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for results and noise.png")
    help_text = f"{', '.join(encoders.PEERS)}, or a source of elmo_tf's"
    parser.add_argument("--encoders", nargs="+", default=["english", *encoders.PEERS], metavar="NAME", help=help_text)
    parser.add_argument("--train", type=int, metavar="N", help="sentences to train on, at random (default: all)")
    parser.add_argument("--test", type=int, metavar="N", help="sentences to test on, at random (default: all)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="of the errors, from 0 (default: 3)")
    parser.add_argument("--only", action="store_true", help="measure one encoder in this process, and print JSON")
    arguments = parser.parse_args(argv)
    if arguments.only:
        print(json.dumps(scores(arguments.encoders[0], arguments)))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--data", str(arguments.data), "--output", str(arguments.output)]
    for option in ("train", "test", "seeds"):
        if (value := getattr(arguments, option)) is not None:
            command += [f"--{option}", str(value)]
    results = {
        name: probes.result(f"{name}.noise", [*command, "--only", "--encoders", name], arguments.output)
        for name in arguments.encoders
    }
    lines = [("encoder", "score", *(f"{share} %" for share in SHARES))]
    for name, result in results.items():
        for score in ("pos", "changed words", "entities"):
            by_share = (100 * np.array(result[score].get(str(share), [np.nan])) for share in SHARES)
            cells = (f"{seeds.mean():.1f} ± {seeds.std(ddof=len(seeds) > 1):.1f}" for seeds in by_share)
            lines.append((name, score, *cells))
    print(measuring.aligned(lines))
    draw(results, arguments.output / "noise.png")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
