"""A biLM fine-tuned on a task's own sentences, and its perplexities before and after (the paper's Table 7, A.1).

`paper_table.py --finetuned` uses it: a task's training sentences train the biLM for one epoch, its dev sentences give
the perplexities, with the biLM's own vocabulary. Every step is a command of `elmo-tf` and is done once.
"""

import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from benchmarks import probes
from benchmarks.measuring import aligned
from elmo_tf.files import stores

_ELMO_TF = [sys.executable, "-m", "elmo_tf.cli"]


def workdir(row: str, output: pathlib.Path) -> pathlib.Path:
    """Returns the workdir of a row's fine-tuned model."""
    return output / f"{row}.finetuned"


def tuned(row: str, task: str, files: Mapping[str, pathlib.Path], model: str, output: pathlib.Path) -> dict[str, float]:
    """Fine-tunes a model on a task's training sentences, unless that is done.

    Args:
        row: the name of the data.
        task: the name of the task.
        files: the task's files, `train` and `dev` among them.
        model: a model's name, or a workdir.
        output: a folder for everything that is made.

    Returns:
        `sentences`, the distinct ones of `train`; `before` and `after`, perplexities of `dev`.
    """
    source = pathlib.Path(model)
    if not source.is_dir():
        source = output / f"{model}.workdir"
        if not source.exists():
            _run("import", model, "--workdir", str(source))
    texts = {part: output / f"{row}.{part}.sentences.txt" for part in ("train", "dev")}
    records = {part: output / f"{row}.{part}.records" for part in texts}
    for part, text in texts.items():
        if not text.exists():
            stores.write(text, _run("task", task, "text", "--data", str(files[part])))
        if not records[part].exists():
            vocabulary = ["--vocab", str(source / "vocab.txt"), "--tokenizer", "penn"]
            with tempfile.TemporaryDirectory(dir=output) as folder:
                made = pathlib.Path(folder) / "records"
                _run("preprocess", "--input", str(text), *vocabulary, "--output", str(made))
                made.rename(records[part])
    target, figures = workdir(row, output), {"sentences": len(texts["train"].read_text("utf-8").splitlines())}
    _run("finetune", "--from", str(source), "--data", str(records["train"]), "--workdir", str(target), "--epochs", "1")
    for when, path in (("before", source), ("after", target)):
        command = [*_ELMO_TF, "evaluate", "--workdir", str(path), "--data", str(records["dev"])]
        figures[when] = probes.result(f"{row}.{when}", command, output)["perplexity"]
    return figures


def table(perplexities: Mapping[str, Mapping[str, float]]) -> str:
    """Returns a line for each row: its sentences, the perplexities, and by how much the second is lower."""
    lines = [("data", "distinct sentences", "perplexity before", "after", "lower by")]
    for row, figures in perplexities.items():
        before, after = figures["before"], figures["after"]
        numbers = (f"{figures['sentences']:,}", f"{before:.1f}", f"{after:.1f}", f"{100 - 100 * after / before:.0f} %")
        lines.append((row, *numbers))
    return aligned(lines)


def _run(*words: str) -> bytes:
    """Returns what a command of `elmo-tf` printed; ends this program if it fails."""
    print("$", shlex.join([*_ELMO_TF, *words]), flush=True)
    process = subprocess.run([*_ELMO_TF, *words], stdout=subprocess.PIPE, check=False)
    if process.returncode:
        sys.exit(process.returncode)
    return process.stdout
