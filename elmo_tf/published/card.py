"""The card of a model: `README.md` beside its files, with front matter that Hugging Face's hub reads."""

import pathlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from elmo_tf import config as config_lib
from elmo_tf.workdir import metrics_file

if TYPE_CHECKING:  # checkpoints import TensorFlow
    from elmo_tf.text.vocabulary import Vocabulary
    from elmo_tf.workdir.checkpoint_files import Progress
    from elmo_tf.workdir.folder import Workdir

FILE = "README.md"
Facts = dict[str, str]  # rows of the card's table

_CARD = """---
library_name: elmo_tf
pipeline_tag: feature-extraction
tags: [elmo, contextual-word-vectors, language-model, tensorflow]
---
# {name}

An ELMo (Peters et al. 2018): a bidirectional language model that reads characters and gives each token of a sentence a
vector for each of its layers.

| | |
|---|---|
{rows}

{use}
## Limits

- Its vectors and scores carry the prejudices of its text.
"""
_USE = """## Use

```python
import elmo_tf

elmo = elmo_tf.load("{source}")
for text in elmo.encode(["The first sentence .", "Another one ."]):
    print(text.tokens, text.vectors.shape)
```

In a program that has only TensorFlow: `tf.saved_model.load("savedmodels/mine/1")`, where `savedmodels/mine` is what
`elmo-tf export` wrote, or `elmo-tf import {source} --output savedmodels/mine`.
"""


def write(
    folder: pathlib.Path,
    name: str,
    config: config_lib.ModelConfig,
    tokenizer: str,
    words: "Vocabulary | None",
    facts: Facts,
) -> None:
    """Writes the card of the model `name` in `folder`: its sizes, whether it has a softmax, and what else is known."""
    cnn, lstm = config.char_cnn, config.lstm
    rows = {
        "preset": ", ".join(preset for preset, values in config_lib.PRESETS.items() if values.model == config),
        "network": f"{cnn.num_filters:,} character filters; highway layers: {cnn.num_highway}; LSTM layers in each "
        f"direction: {lstm.num_layers}, of {lstm.units:,} units projected to {lstm.projection_dim:,}",
        "parameters, without a softmax": f"{config.num_parameters():,}",
        "vectors": f"{2 * lstm.projection_dim:,} numbers for each of {lstm.num_layers + 1} layers",
        "tokenizer": tokenizer,
        "softmax": f"{len(words):,} words" if words else "none: vectors, but no probabilities",
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in (rows | facts).items() if value)
    (folder / FILE).write_text(_CARD.format(name=name, rows=table, use=_USE.format(source=name)), "utf-8")


def trained(workdir: "Workdir", progress: "Progress") -> Facts:
    """Returns what a workdir says about the training of a checkpoint: its length, and the held-out perplexity."""
    length = f"{progress.step:,} steps"
    if progress.num_streams and progress.unroll_steps and not progress.offset_step:
        tokens = progress.step * progress.num_streams * progress.unroll_steps
        length += f" of {progress.num_streams} streams of {progress.unroll_steps} tokens: {tokens:,} tokens"
    lines = [line for line in metrics_file.evaluations(workdir.metrics) if line.step == progress.step]
    scores = [f"{line.rank:.1f} on {line.tokens:,} tokens of the text {line.heldout}" for line in lines]
    return {"training": length, "held-out perplexity": "; ".join(scores)}


def mix(spec: str | int | Sequence[float], gamma: float) -> Facts:
    """Returns a mix of the layers as options of `export` and `import`."""
    shown = spec if isinstance(spec, str | int) else ",".join(f"{value:.6g}" for value in spec)
    return {"mix of the layers": f"`--mix={shown} --gamma={gamma:.6g}`"}


def for_hub(text: str, address: str) -> str:
    """Returns a card's text, without its front matter, with a section about how to use the model at `address`.

    Links to files beside it would lead nowhere there, so only their words are left.
    """
    text = re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)
    text = re.sub(r"^## Use\n.*?(?=^## |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    before, heading, after = text.partition("\n## ")
    return f"{before}\n{_USE.format(source=address)}{heading}{after}"
