"""The configuration of `preprocess`."""

import dataclasses
import os

from elmo_tf.beam import job_config
from elmo_tf.beam.job_config import Path, require, require_integer
from elmo_tf.corpus import sentences
from elmo_tf.text import vocabulary

HELDOUT_FRACTION = 0.01
MIN_VOCABULARY = len(vocabulary.SPECIAL_TOKENS) + 1  # words, with one of the text
MAX_SEED = 2**63 - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessConfig(job_config.JobConfig):
    """What to preprocess, and how. `output` is the folder to create."""

    vocab: Path | None = None  # use this vocabulary instead of counting the words of the text
    min_count: int | None = None  # leave out words that occur less often; None: 1
    max_vocab: int | None = None  # words to keep, `<S>`, `</S>` and `<UNK>` among them; None: all
    shards: int | None = None  # files to write; None: one per 8 MB of text
    seed: int = 0  # of the held-out split
    heldout: Path | None = None  # folder to create for held-out sentences, which are then left out of `output`
    heldout_fraction: float | None = None  # share of the distinct sentences to hold out; None: 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_at_least("shards", 1)
        self.require_at_least("min_count", 1)
        self.require_at_least("max_vocab", MIN_VOCABULARY)
        require_integer("seed", self.seed, 0, MAX_SEED)
        for name in ("min_count", "max_vocab"):
            alone = self.vocab is None or getattr(self, name) is None
            require("vocab", alone, f"cannot be combined with {name}, which applies to counted words")
        fraction = self.heldout_fraction
        if fraction is not None:
            require("heldout_fraction", 0 < fraction < 1, "a number between 0 and 1", fraction)
            require("heldout_fraction", self.heldout is not None, "requires heldout")

    @property
    def folders(self) -> dict[str, str]:
        """The output folder of each split."""
        named = {sentences.TRAIN: self.output, sentences.HELDOUT: self.heldout}
        return {split: os.fspath(path) for split, path in named.items() if path}

    def settings(self) -> sentences.Settings:
        """Returns how text becomes the sentences of each split."""
        fraction = (self.heldout_fraction or HELDOUT_FRACTION) if self.heldout else None
        return super().settings()._replace(seed=self.seed, heldout_fraction=fraction)
