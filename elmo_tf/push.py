"""A model as published files with a card, for Hugging Face's hub: what the command `push` writes."""

import os
import pathlib

import numpy as np

from elmo_tf import extras, sources
from elmo_tf.errors import InputError, damage_reported
from elmo_tf.files import intact
from elmo_tf.files.staging import new_folder
from elmo_tf.published import arrays, card, hub, models, options

FILES = (models.OPTIONS_FILE, models.WEIGHTS_FILE, models.SOFTMAX_FILE, models.VOCABULARY_FILE, card.FILE)


def write_folder(
    source: sources.Source, output: str | os.PathLike, address: str, license_code: str, language: str | None = None
) -> pathlib.Path:
    """Writes a model's published files and its card, for `address` on the hub, to the new folder `output`.

    The softmax and its words are included if the source has them. A card beside the source's files is kept, but for its
    section `Use`, the `license_code`, which the hub defines, and the code of the language, if given.

    Raises:
        InputError: if a file is damaged, the card has another license, or `output` is in use.
    """
    with extras.explain_missing_extra():
        from huggingface_hub import ModelCard  # noqa: PLC0415 - only this command needs it
    try:
        softmax = source.softmax()
        softmax = softmax._replace(kernel=_stored(softmax.kernel), bias=_stored(softmax.bias))
    except sources.NoSoftmaxError:
        softmax = None
    beside, name = source.path / card.FILE, hub.parse(address)[0].partition("/")[2]
    with new_folder(output) as folder:
        options.write_options(source.config, folder / models.OPTIONS_FILE, source.tokenizer)
        arrays.write(folder, ((name, _stored(values)) for name, values in source.weights().items()), softmax)
        card.write(folder, name, source.config, source.tokenizer, softmax and softmax.vocabulary, _facts(source))
        with damage_reported("a model card", beside):
            content = intact.read(beside) if beside.is_file() else (folder / card.FILE).read_bytes()
            edited = ModelCard(content.decode("utf-8-sig").replace("\r\n", "\n"))
            edited.text = card.for_hub(edited.text, address)
            if (known := edited.data.get("license", license_code)) != license_code:
                raise InputError("license_code", f"{known}, as {beside} says", license_code)
            edited.data["license"], edited.data["language"] = license_code, language or edited.data.get("language")
            edited.save(folder / card.FILE)
    return pathlib.Path(output)


def _facts(source: sources.Source) -> card.Facts:
    if not isinstance(source, sources.Workdir):
        return {}  # exports have a card, and other files say nothing
    from elmo_tf.workdir import checkpoints, folder  # noqa: PLC0415 - published files do not need TensorFlow

    workdir = folder.open_workdir(source.name)
    return card.trained(workdir, checkpoints.restore(workdir, with_softmax=False)[1])


def _stored(values: np.ndarray) -> np.ndarray:
    """Returns numbers in float16 if that is exact, as it is for `english`."""
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    return half if np.array_equal(half, values) else values
