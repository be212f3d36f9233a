"""How much surprisal adds to a regression of reading times: Natural Stories, stories 1 to 7.

    python benchmarks/surprisal_reading.py --stories DIR --text FILE .. --output DIR

--stories is a folder with `stories.tok`, `processed_wordinfo.tsv.xz` and `all_stories_gpt3.csv.xz`; --text is tokenized
text, a sentence per line, that a 5-gram model and the frequencies are counted from (133 million tokens take 6 GB).

Linear regressions of each word's mean self-paced reading time. Predictors of the baseline: the length in characters and
the logarithm of the frequency, of the word and of the word before it. Each model adds the surprisal of both words. The
gain is the difference of the log-likelihood of held-out words under a normal distribution: ten folds, the mean of ten
divisions (seeds 0 to 9) and over the words; its standard error is over the words. The first two words of a story are
left out, because GPT-3 gives the first no probability. Sentences are split by `raw_text`.

Prints a table and a line of JSON. The 5-gram model's bits and the frequencies are kept in --output.
"""

import argparse
import collections
import csv
import json
import lzma
import math
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import kneser_ney, measuring
from elmo_tf import scoring
from elmo_tf.scoring import Sentence
from elmo_tf.text import raw_text
from elmo_tf.text.vocabulary import BEGIN_ID, END_ID, Vocabulary

FOLDS, SEEDS = 10, 10
_GPT3 = "all_stories_gpt3.csv.xz"


class Story(NamedTuple):
    """The words of a story and the mean reading time of each."""

    words: list[str]
    times: list[float]  # milliseconds


def read_stories(folder: pathlib.Path) -> list[Story]:
    """Returns the stories that have reading times."""
    with lzma.open(folder / "processed_wordinfo.tsv.xz", "rt", encoding="utf-8") as file:
        times = {(row["item"], row["zone"]): row for row in csv.DictReader(file, dialect="excel-tab", quoting=3)}
    stories: dict[str, Story] = collections.defaultdict(lambda: Story([], []))
    with open(folder / "stories.tok", encoding="utf-8") as file:
        for row in csv.DictReader(file, dialect="excel-tab", quoting=3):
            timed = times[row["item"], row["zone"]]
            assert timed["word"] == row["word"], (row, timed)
            stories[row["item"]].words.append(row["word"])
            stories[row["item"]].times.append(float(timed["meanItemRT"]))
    return list(stories.values())


def lines(words: Sequence[str]) -> Iterator[list[str]]:
    """Yields the words of each sentence."""
    for sentence in raw_text.break_sentences([" ".join(words)]).numpy():
        yield sentence.decode().split(" ")


def gpt3(folder: pathlib.Path, stories: Sequence[Story]) -> list[float]:
    """Returns the bits of each word by GPT-3, the sum over its tokens; nan for the first of a story.

    A token belongs to the word that its first character, white space aside, is in.
    """
    tokens = collections.defaultdict(list)
    with lzma.open(folder / _GPT3, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            tokens[int(row["story"])].append((row["token"], float(row["logprob"] or "nan")))
    bits = []
    for number, story in enumerate(stories):
        ends = np.cumsum([len(word) for word in story.words])
        pieces = [("".join(token.split()), value) for token, value in tokens[number]]
        begins = np.cumsum([0, *(len(token) for token, _ in pieces)])
        written, read = "".join(story.words), "".join(token for token, _ in pieces)
        # One word is spelled in two ways.
        assert len(written) == len(read) and sum(map(str.__ne__, written, read)) < 3, number
        kept = [(begin, value) for (token, value), begin in zip(pieces, begins[:-1], strict=True) if token]
        word_of = np.searchsorted(ends, [begin for begin, _ in kept], "right")
        bits_of_words = np.bincount(word_of, [-value / math.log(2) for _, value in kept], len(ends))
        assert np.bincount(word_of, minlength=len(ends)).all(), number
        bits += bits_of_words.tolist()
    return bits


def ngrams(sentences: Sequence[Sentence], vocabulary: Vocabulary, files: Sequence[pathlib.Path]) -> dict[str, list]:
    """Returns the bits of each word by a 5-gram model of the files, and the logarithm of its frequency there.

    The frequency is that of a word's first token with a letter or digit, in lower case.
    """
    find = {token.decode(): number for number, token in enumerate(vocabulary.tokens)}
    unknown, parts, counts = find["<UNK>"], [], collections.Counter()
    for file in files:
        part = []
        with lzma.open(file, "rt", encoding="utf-8") as text:
            for line in text:
                tokens = line.split()
                counts.update(tokens)
                part += [BEGIN_ID, *(find.get(token, unknown) for token in tokens), END_ID]
        parts.append(np.array(part, np.int32))
    texts = [[token.decode() for token in sentence.tokens] for sentence in sentences]
    test = [[BEGIN_ID, *(find.get(token, unknown) for token in tokens), END_ID] for tokens in texts]
    token_bits = kneser_ney.log_probs(np.concatenate(parts), np.concatenate(test), len(vocabulary)) / -math.log(2)
    lower = collections.Counter()
    for token, count in counts.items():
        lower[token.lower()] += count
    total, bits, frequencies = counts.total(), [], []
    by_sentence = np.split(token_bits, np.cumsum(list(map(len, test)))[:-1])
    for sentence, tokens, part in zip(sentences, texts, by_sentence, strict=True):
        bits += np.bincount(sentence.word_of, part[1:-1], len(sentence.words)).tolist()
        for number in range(len(sentence.words)):
            own = [token for token, word in zip(tokens, sentence.word_of, strict=True) if word == number]
            main = next((token for token in own if any(map(str.isalnum, token))), own[0])
            frequencies.append(math.log((lower[main.lower()] + 1) / total))
    return {"bits": bits, "log_frequency": frequencies, "tokens": total}


def gains(times: np.ndarray, base: np.ndarray, added: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns each held-out word's log-likelihood by the baseline, and how much more it is with more predictors.

    Args:
        times: `(words,)`.
        base: the baseline's predictors, `(words, predictors)`.
        added: those of each model.
    """
    designs = {"baseline": base} | {name: np.hstack([base, columns]) for name, columns in added.items()}
    likelihoods = {name: _held_out(times, design) for name, design in designs.items()}
    baseline = likelihoods.pop("baseline")
    return {"baseline": baseline} | {name: likelihood - baseline for name, likelihood in likelihoods.items()}


def _held_out(times: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Returns the mean over the divisions of each word's log-likelihood when its fold is held out."""
    design = np.hstack([np.ones((len(design), 1)), (design - design.mean(0)) / design.std(0)])
    sums = np.zeros(len(times))
    for seed in range(SEEDS):
        for fold in np.array_split(np.random.default_rng(seed).permutation(len(times)), FOLDS):
            rest = np.ones(len(times), bool)
            rest[fold] = False
            weights = np.linalg.solve(design[rest].T @ design[rest], design[rest].T @ times[rest])
            variance = np.mean((times[rest] - design[rest] @ weights) ** 2)
            errors = times[fold] - design[fold] @ weights
            sums[fold] -= 0.5 * np.log(2 * math.pi * variance) + errors**2 / (2 * variance)
    return sums / SEEDS


def with_word_before(predictors: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Returns `(words, 2 * columns)`: a word's predictors and those of the word before it, of the words `inside`."""
    columns = predictors.reshape(len(predictors), -1)
    return np.hstack([columns[inside], columns[inside - 1]])


def main(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stories", type=pathlib.Path, required=True, help="a folder of Natural Stories")
    parser.add_argument("--text", type=pathlib.Path, nargs="+", required=True, help="tokenized text, .xz")
    parser.add_argument("--model", default="english", help="a source of elmo_tf's with a softmax")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder for what takes long")
    arguments = parser.parse_args(argv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    stories, model = read_stories(arguments.stories), elmo_tf.load(arguments.model)
    text = [line for story in stories for line in [*lines(story.words), []]]

    kept = arguments.output / "ngrams.json"
    if not kept.exists():
        sentences = list(scoring.numbered([[w.encode() for w in line] for line in text], model.source.tokenizer))
        kept.write_text(json.dumps(ngrams(sentences, model.source.softmax().vocabulary, arguments.text)))
    counted = json.loads(kept.read_text())

    bits = {"5-grams": np.array(counted["bits"]), "GPT-3": np.array(gpt3(arguments.stories, stories))}
    for context in ("sentence", "passage"):
        rows = model.surprisal(text, context)
        assert [row.word for row in rows] == [word for story in stories for word in story.words]
        by_direction = np.array([[row.forward, row.backward, row.both] for row in rows])
        for number, name in enumerate(("forward", "backward", "both")):
            bits[f"{name}, {context}"] = by_direction[:, number]
        bits[f"forward and backward, {context}"] = by_direction[:, :2]
    bits["forward, sentence, and 5-grams"] = np.stack([bits["forward, sentence"], bits["5-grams"]], 1)
    words = [word for story in stories for word in story.words]
    starts = np.cumsum([0, *(len(story.words) for story in stories)])[:-1]
    inside = np.setdiff1d(np.arange(len(words)), np.concatenate([starts, starts + 1]))
    base = np.stack([[len(word) for word in words], counted["log_frequency"]], 1).astype(float)
    times = np.array([time for story in stories for time in story.times])
    result = gains(
        times[inside],
        with_word_before(base, inside),
        {name: with_word_before(surprisals, inside) for name, surprisals in bits.items()},
    )
    unknown = sum(not row.known for row in rows)
    print(
        f"{len(inside):,} words, {unknown} not in the vocabulary; baseline {result['baseline'].mean():.4f} nats a word"
    )
    table = [("surprisal", "mean bits", "gain, 1e-3 nats a word", "more than forward, sentence")]
    figures = {}
    for name, surprisals in bits.items():
        mean = surprisals[inside].reshape(len(inside), -1).sum(1).mean()
        gains_of_words = result[name], result[name] - result["forward, sentence"]
        summaries = [(1000 * gain.mean(), 1000 * gain.std() / math.sqrt(len(inside))) for gain in gains_of_words]
        table.append((name, f"{mean:.2f}", *(f"{gain:.2f} ± {error:.2f}" for gain, error in summaries)))
        figures[name] = {"bits": mean, "gain": summaries[0], "difference": summaries[1]}
    print(measuring.aligned(table))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
