"""Systems of `evening.py` that learn vectors from a text within a budget: this project's, gensim's and spaCy's.

Each class has `train`, which resumes what an interrupted run left in its folder and returns the passes over the text;
`encoder`, as in `encoder_scores.py`; and `log_probabilities`, if it gives probabilities to sentences.
"""

import json
import math
import pathlib
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

import numpy as np

import elmo_tf
from benchmarks import encoder_scores
from benchmarks.encoder_scores import Encode
from benchmarks.evening_budget import Budget, spend


def sentences_of(text: pathlib.Path) -> list[list[str]]:
    """Returns the tokens of each line."""
    return [line.split() for line in text.read_text("utf-8").splitlines()]


class Elmo:
    """A preset of elmo_tf's without dropout.

    The learning rate decays until the last step, so the number of steps is planned: from the speed in the first tenth
    of the budget, which has a constant rate, and again when 60 % are spent.
    """

    _PLANS = (0.1, 0.6)  # shares of the budget
    _MEASURED = 5  # times that as many steps as there are between two logs are measured, at least

    def __init__(self, preset: str):
        self._preset = preset

    def train(self, text: pathlib.Path, folder: pathlib.Path, budget: Budget) -> float:
        """Preprocesses the text and trains; the budget is for both."""
        records, plan = folder / "records", folder / "steps.json"
        if not records.exists():
            options = ["--input", text, "--output", records, "--min-count", "3"]
            subprocess.run([sys.executable, "-m", "elmo_tf.cli", "preprocess", *map(str, options)], check=True)
            budget.save()
        for end in (*self._PLANS, math.inf):
            if budget.fraction < min(1, end):
                steps = json.loads(plan.read_bytes()) if plan.exists() else None
                if planned := self._planned(records, folder / "workdir", budget, steps, end):
                    plan.write_text(json.dumps(planned))
                budget.save()
        recipe = elmo_tf.preset(self._preset).train
        predictions = sum(len(sentence) + 1 for sentence in sentences_of(text))
        return json.loads(plan.read_bytes()) * recipe.batch_size * recipe.unroll_steps / predictions

    def _planned(
        self, records: pathlib.Path, workdir: pathlib.Path, budget: Budget, steps: int | None, end: float
    ) -> int | None:
        """Trains up to `steps` or a share of the budget; at the share, returns the steps that all of it allows."""
        decay = "none" if steps is None else "linear"
        recipe = ["train.dropout_rate=0", f"train.decay={decay}", "train.look_steps=0", "train.checkpoint_steps=200"]
        config = elmo_tf.override(elmo_tf.preset(self._preset), recipe)
        if steps is None:
            print(f"measuring the speed for {end:.0%} of the budget; ignore the steps and the time left", flush=True)
        seen: list[tuple[int, float]] = []  # steps, and the CPU seconds spent by then

        def reached() -> bool:
            return budget.fraction > end and len(seen) > self._MEASURED

        def on_record(line: dict) -> None:
            if line["step"] % config.train.log_steps:
                return  # it comes together with the next
            seen.append((line["step"], budget.spent))
            if line["step"] % config.train.checkpoint_steps == 0:
                budget.save()
            if reached():
                signal.raise_signal(signal.SIGTERM)

        try:
            elmo_tf.train(config, records, workdir, steps=steps or 10**9, on_record=on_record)
        except KeyboardInterrupt:
            if not reached():
                raise
            (first, started), (last, ended) = seen[0], seen[-1]
            return last + max(1, int(budget.left * (last - first) / (ended - started)))
        return None

    def encoder(self, folder: pathlib.Path) -> tuple[Encode, list[str]]:
        """Returns the layers and their average."""
        return encoder_scores.elmo(str(folder / "workdir"))

    def log_probabilities(self, folder: pathlib.Path, sentences: Sequence[list[str]]) -> list[float]:
        """Returns the sums of both directions."""
        return [score.total for score in elmo_tf.load(folder / "workdir").score(sentences)]


class FastText:
    """gensim's fastText: skip-grams of words and their parts, 300 numbers; the learning rate falls to 0."""

    _RATE, _SENTENCES = 0.025, 10_000  # sentences of a step

    def train(self, text: pathlib.Path, folder: pathlib.Path, budget: Budget) -> float:
        """Reads the text again and again."""
        from gensim.models import FastText as Model  # noqa: PLC0415

        sentences = sentences_of(text)
        if (folder / "state").exists():
            model = Model.load(str(folder / "state/model"))
        else:
            model = Model(vector_size=300, sg=1, min_count=3, bucket=500_000, workers=encoder_scores.CORES, seed=0)
            model.build_vocab(corpus_file=str(text))
            model.steps = 0  # kept in the file

        def step(fraction: float) -> None:
            start = model.steps * self._SENTENCES % len(sentences)
            part = sentences[start : start + self._SENTENCES]
            rate = max(self._RATE * (1 - fraction), 1e-5)
            model.train(part, total_examples=len(part), epochs=1, start_alpha=rate, end_alpha=rate)
            model.steps += 1

        spend(budget, folder, step, lambda state: model.save(str(state / "model")))
        return model.steps * self._SENTENCES / len(sentences)

    def encoder(self, folder: pathlib.Path) -> tuple[Encode, list[str]]:
        """Returns a vector for each word, also for unknown ones."""
        from gensim.models import FastText as Model  # noqa: PLC0415

        vectors = Model.load(str(folder / "state/model")).wv

        def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
            for number, tokens in enumerate(sentences):
                yield number, np.stack([vectors[token] for token in tokens])[None]

        return encode, ["words"]


class Spacy:
    """spaCy's `pretrain` of `tok2vec`: the characters at a word's ends, from the words around it.

    The model, objective and optimizer are those of `spacy init config --pretraining --optimize efficiency`, and so is
    the step; the loop is `spend`, because spaCy's does not stop at a budget or keep the optimizer's state.
    """

    _SENTENCES = 128  # of a step; about spaCy's 3,000 words

    def train(self, text: pathlib.Path, folder: pathlib.Path, budget: Budget) -> float:
        """Reads the text again and again."""
        from spacy.tokens import Doc  # noqa: PLC0415
        from spacy.training.pretrain import make_update  # noqa: PLC0415

        nlp, model, optimizer = self._new()
        sentences, steps, state = sentences_of(text), 0, folder / "state/training.pickle"
        if state.exists():
            weights, optimizer, steps = pickle.loads(state.read_bytes())
            model.from_bytes(weights)

        def step(_: float) -> None:
            nonlocal steps
            start = steps * self._SENTENCES % len(sentences)
            docs = [Doc(nlp.vocab, words=words) for words in sentences[start : start + self._SENTENCES]]
            make_update(model, docs, optimizer, model.attrs["loss"])
            steps += 1

        def save(state: pathlib.Path) -> None:
            (state / "training.pickle").write_bytes(pickle.dumps((model.to_bytes(), optimizer, steps)))
            with model.use_params(optimizer.averages):
                (state / "tok2vec.bin").write_bytes(model.get_ref("tok2vec").to_bytes())

        spend(budget, folder, step, save)
        return steps * self._SENTENCES / len(sentences)

    def encoder(self, folder: pathlib.Path) -> tuple[Encode, list[str]]:
        """Returns the output of `tok2vec`."""
        nlp, model, _ = self._new()
        model.get_ref("tok2vec").from_bytes((folder / "state/tok2vec.bin").read_bytes())
        return encoder_scores.tok2vec(nlp.vocab, nlp.get_pipe("tok2vec")), ["tok2vec"]

    def _new(self) -> tuple:
        """Returns a pipeline, the network that trains its `tok2vec`, and an optimizer."""
        from spacy.cli.init_config import init_config  # noqa: PLC0415
        from spacy.schemas import ConfigSchemaPretrain  # noqa: PLC0415
        from spacy.training.pretrain import create_pretraining_model  # noqa: PLC0415
        from spacy.util import fix_random_seed, load_model_from_config, registry  # noqa: PLC0415

        fix_random_seed(0)
        config = init_config(lang="en", pipeline=["tagger"], optimize="efficiency", gpu=False, pretraining=True)
        nlp = load_model_from_config(config, auto_fill=True)
        settings = registry.resolve(nlp.config.interpolate()["pretraining"], schema=ConfigSchemaPretrain)
        return nlp, create_pretraining_model(nlp, settings), settings["optimizer"]
