"""Systems of `evening.py` that train in PyTorch: a small BERT, and Flair's character language models.

PyTorch is only in the environment of this benchmark. The classes have the methods of those in `evening_systems.py`.
"""

import collections
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import tokenizers
import torch
import transformers

from benchmarks import encoder_scores
from benchmarks.encoder_scores import Encode
from benchmarks.evening_budget import Budget, spend

_STATE = pathlib.Path("state/training.pt")

torch.set_num_threads(min(encoder_scores.CORES, len(os.sched_getaffinity(0))))


def _train(
    models: Sequence[torch.nn.Module],
    optimizer: torch.optim.Optimizer,
    budget: Budget,
    folder: pathlib.Path,
    losses: Callable[[int], Iterable[torch.Tensor]],
    rate: Callable[[float], float],
    clip_norm: float,
) -> int:
    """Trains models that one optimizer has the parameters of; returns the steps, those of earlier runs included.

    `losses` returns a step's loss of each model, given the number of steps before it; `rate` the learning rate, given
    the share of the budget that is spent.
    """
    steps = 0
    if (folder / _STATE).exists():
        saved = _restored(models, folder)
        optimizer.load_state_dict(saved["optimizer"])
        steps = saved["steps"]

    def step(fraction: float) -> None:
        nonlocal steps
        optimizer.param_groups[0]["lr"] = rate(fraction)
        for model, loss in zip(models, losses(steps), strict=True):
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1

    def save(state: pathlib.Path) -> None:
        weights = [model.state_dict() for model in models]
        saved = {"models": weights, "optimizer": optimizer.state_dict(), "steps": steps}
        torch.save(saved, state / _STATE.name)

    spend(budget, folder, step, save)
    return steps


def _restored(models: Sequence[torch.nn.Module], folder: pathlib.Path) -> dict:
    """Gives models the weights of the last save; returns what was saved."""
    saved = torch.load(folder / _STATE, weights_only=True)
    for model, weights in zip(models, saved["models"], strict=True):
        model.load_state_dict(weights)
    return saved


class Bert:
    """A masked language model: four layers of 256 units and four heads, on the text's own word pieces.

    As in "Cramming" (Geiping and Goldstein 2022), the learning rate is a triangle over the budget, and nothing is
    dropped out.
    """

    _PIECES, _LENGTH, _BATCH = 16_000, 128, 32
    _RATE, _WARM_UP = 1e-3, 0.05
    _MASKED, _AS_MASK, _AS_RANDOM = 0.15, 0.8, 0.1  # shares: of all pieces; of those, the ones that are replaced
    _SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    _CLS, _SEP, _MASK = 2, 3, 4

    def train(self, text: pathlib.Path, folder: pathlib.Path, budget: Budget) -> float:
        """Makes the word pieces, then trains; the budget is for both."""
        if not (folder / "blocks.npy").exists():
            self._prepare(text, folder)
            budget.save()
        blocks = np.load(folder / "blocks.npy", mmap_mode="r")
        model = self._new()
        optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)

        def losses(steps: int) -> Iterator[torch.Tensor]:
            torch.manual_seed(steps)
            rows = torch.randint(len(blocks), (self._BATCH,)).numpy()
            inputs, targets = self._masked(torch.tensor(blocks[rows].astype(np.int64)))
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model.bert(inputs).last_hidden_state[targets >= 0]  # logits of the masked pieces alone
                logits = model.cls(hidden).float()
            yield torch.nn.functional.cross_entropy(logits, targets[targets >= 0])

        def rate(fraction: float) -> float:
            return self._RATE * min(fraction / self._WARM_UP, (1 - fraction) / (1 - self._WARM_UP))

        steps = _train([model], optimizer, budget, folder, losses, rate, clip_norm=1.0)
        return steps * self._BATCH / len(blocks)

    def _prepare(self, text: pathlib.Path, folder: pathlib.Path) -> None:
        """Writes the word pieces, and the text as blocks of them, uint16 `(blocks, length)`; each begins with [CLS]."""
        pieces = tokenizers.BertWordPieceTokenizer(lowercase=False, strip_accents=False)
        pieces.train([str(text)], vocab_size=self._PIECES, special_tokens=list(self._SPECIAL), show_progress=False)
        pieces.save(str(folder / "pieces.json"))
        lines = text.read_text("utf-8").splitlines()
        parts = (lines[start : start + 10_000] for start in range(0, len(lines), 10_000))
        batches = (pieces.encode_batch(part, add_special_tokens=False) for part in parts)
        whole = np.concatenate([np.array([*line.ids, self._SEP], np.uint16) for batch in batches for line in batch])
        blocks = whole[: len(whole) // (self._LENGTH - 1) * (self._LENGTH - 1)].reshape(-1, self._LENGTH - 1)
        np.save(folder / "blocks.npy", np.pad(blocks, ((0, 0), (1, 0)), constant_values=self._CLS))

    def _masked(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns inputs, of which some are replaced, and the targets of those, -1 elsewhere."""
        chosen = (torch.rand(ids.shape) < self._MASKED) & (ids >= len(self._SPECIAL))
        way = torch.rand(ids.shape)
        inputs = torch.where(chosen & (way < self._AS_MASK), self._MASK, ids)
        random_ids = torch.randint(len(self._SPECIAL), self._PIECES, ids.shape)
        return torch.where(chosen & (way >= 1 - self._AS_RANDOM), random_ids, inputs), torch.where(chosen, ids, -1)

    def _new(self) -> transformers.BertForMaskedLM:
        torch.manual_seed(0)
        sizes = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
        dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        config = transformers.BertConfig(vocab_size=self._PIECES, output_hidden_states=True, **sizes, **dropout)
        return transformers.BertForMaskedLM(config)

    def _open(self, folder: pathlib.Path) -> tuple[torch.nn.Module, transformers.PreTrainedTokenizerFast]:
        model = self._new()
        _restored([model], folder)
        special = zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), self._SPECIAL, strict=True)
        path = str(folder / "pieces.json")
        pieces = transformers.PreTrainedTokenizerFast(tokenizer_file=path, model_max_length=512, **dict(special))
        return model.eval(), pieces

    def encoder(self, folder: pathlib.Path) -> tuple[Encode, list[str]]:
        """Returns the embeddings and the layers, pieces averaged into words."""
        model, pieces = self._open(folder)
        names = [f"layer {number}" for number in range(model.config.num_hidden_layers + 1)]
        return encoder_scores.transformer(model.bert, pieces), names

    def log_probabilities(self, folder: pathlib.Path, sentences: Sequence[list[str]]) -> list[float]:
        """Returns sums over the pieces, each masked in turn (pseudo-log-likelihood, Salazar et al. 2020)."""
        model, pieces = self._open(folder)
        totals = []
        for tokens in sentences:
            ids = torch.tensor(pieces(tokens, is_split_into_words=True)["input_ids"])
            rows, positions = torch.arange(len(ids) - 2), torch.arange(1, len(ids) - 1)
            masked = ids.repeat(len(rows), 1)
            masked[rows, positions] = self._MASK
            with torch.inference_mode():
                logits = model.cls(model.bert(masked).last_hidden_state[rows, positions])
            totals.append(-float(torch.nn.functional.cross_entropy(logits, ids[1:-1], reduction="sum")))
        return totals


class Flair:
    """Flair's character language models, one forward and one backward LSTM of 512 units, trained in turns.

    The network is Flair's; the loop is `spend`, because Flair's trainer does not stop at a budget.
    """

    _UNITS, _STREAMS, _LENGTH, _RATE, _CLIP = 512, 32, 100, 20, 0.25  # the last two as in Flair's trainer

    def train(self, text: pathlib.Path, folder: pathlib.Path, budget: Budget) -> float:
        """Reads the text, as characters in parallel streams, forward and backward."""
        written = text.read_text("utf-8")
        counts = collections.Counter(written)
        known = [character for character, count in counts.most_common() if count > 1]
        (folder / "characters.json").write_text(json.dumps(known))
        models = self._new(folder)
        table = np.zeros(max(map(ord, counts)) + 1, np.uint16)
        for character in known:
            table[ord(character)] = models[0].dictionary.get_idx_for_item(character)
        ids = table[np.frombuffer(written.encode("utf-32-le"), np.uint32)]
        ids = ids[: len(ids) // self._STREAMS * self._STREAMS]
        streams = [direction.reshape(self._STREAMS, -1).T for direction in (ids, ids[::-1])]
        windows = (len(streams[0]) - 1) // self._LENGTH
        hidden = [model.init_hidden(self._STREAMS) for model in models]

        def losses(steps: int) -> Iterator[torch.Tensor]:
            start = steps % windows * self._LENGTH
            for number, model in enumerate(models):
                window = torch.tensor(streams[number][start : start + self._LENGTH + 1].astype(np.int64))
                logits, _, states = model(window[:-1], hidden[number])
                hidden[number] = tuple(state.detach() for state in states)
                yield torch.nn.functional.cross_entropy(logits.flatten(0, 1), window[1:].flatten())

        optimizer = torch.optim.SGD([weights for model in models for weights in model.parameters()])
        steps = _train(models, optimizer, budget, folder, losses, lambda share: self._RATE * (1 - share), self._CLIP)
        return steps / windows

    def _new(self, folder: pathlib.Path) -> list:
        """Returns the forward and the backward model."""
        from flair.data import Dictionary  # noqa: PLC0415
        from flair.models import LanguageModel  # noqa: PLC0415

        torch.manual_seed(0)
        characters = Dictionary()
        for character in json.loads((folder / "characters.json").read_text()):
            characters.add_item(character)
        return [LanguageModel(characters, forward, self._UNITS, nlayers=1) for forward in (True, False)]

    def _open(self, folder: pathlib.Path) -> list:
        models = self._new(folder)
        _restored(models, folder)
        return [model.eval() for model in models]

    def encoder(self, folder: pathlib.Path) -> tuple[Encode, list[str]]:
        """Returns the states of both directions at each word's ends."""
        from flair.data import Sentence  # noqa: PLC0415
        from flair.embeddings import FlairEmbeddings, StackedEmbeddings  # noqa: PLC0415

        both = StackedEmbeddings([FlairEmbeddings(model, has_decoder=True) for model in self._open(folder)])

        def encode(sentences: Sequence[list[str]]) -> Iterator[tuple[int, np.ndarray]]:
            for batch in encoder_scores.by_length(sentences):
                texts = [Sentence(sentences[number]) for number in batch]
                both.embed(texts)
                for number, text in zip(batch, texts, strict=True):
                    yield number, np.stack([token.embedding.numpy() for token in text])[None]

        return encode, ["both directions"]

    def log_probabilities(self, folder: pathlib.Path, sentences: Sequence[list[str]]) -> list[float]:
        """Returns the sums of both directions' characters, those of the line breaks around a sentence included."""
        models = self._open(folder)
        totals = np.zeros(len(sentences))
        for batch in encoder_scores.by_length(sentences):
            texts = [f"\n{' '.join(sentences[number])}\n" for number in batch]
            for model in models:
                rows = [model.dictionary.get_idx_for_items(list(text)) for text in texts]
                ids = [torch.tensor(row if model.is_forward_lm else row[::-1]) for row in rows]
                padded = torch.nn.utils.rnn.pad_sequence(ids, padding_value=-1)
                with torch.inference_mode():
                    logits = model(padded[:-1].clamp(min=0), model.init_hidden(len(batch)))[0]
                losses = torch.nn.functional.cross_entropy(
                    logits.permute(0, 2, 1), padded[1:], ignore_index=-1, reduction="none"
                )
                totals[batch] -= losses.double().sum(0).numpy()
        return totals.tolist()
