"""AllenNLP 0.9's `ElmoEmbedder` on top of `elmo_tf.load`: a program written for it changes one import.

    from elmo_tf.allennlp import ElmoEmbedder  # instead of allennlp.commands.elmo

Shapes, orders and files are AllenNLP's. AllenNLP's vectors also depend on earlier batches, because it carries
LSTM states from batch to batch; here every sentence starts from the zero state, like AllenNLP's first batch.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import h5py
import numpy as np

from elmo_tf import embedder
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.published import models


class ElmoEmbedder:
    """ELMo vectors of all layers.

    Args:
        options_file: `options.json` of a published model, or its address; without both files, `original` is used.
        weight_file: its weights, or their address.
        cuda_device: a GPU's number: TensorFlow computes, on the GPUs that it sees; -1: NumPy does, on the CPU.
    """

    def __init__(
        self,
        options_file: str | os.PathLike | None = None,
        weight_file: str | os.PathLike | None = None,
        cuda_device: int = -1,
    ):
        if (options_file is None) != (weight_file is None):
            raise InputError("options_file, weight_file", "give both files, or neither")
        source: str | list[str] = "original"
        if options_file is not None and weight_file is not None:
            source = [os.fspath(options_file), os.fspath(weight_file)]
            named = [model.name for model in models.MODELS if model.weights and source[1].endswith(f"/{model.weights}")]
            source = named[0] if named else source
        self._elmo = embedder.load(source, engine="tensorflow" if cuda_device >= 0 else None)

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """Returns the layers of a sentence's tokens, float32 `(num_layers, tokens, dim)`: `(3, tokens, 1024)`."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Returns the layers of each sentence, as `embed_sentence` does; `InputError` for a string."""
        for sentence in batch:
            if isinstance(sentence, str | bytes):
                raise InputError("sentence", "a list of tokens, sentence.split() for tokenized text", repr(sentence))
        return [encoded.vectors for encoded in self._elmo.encode(map(list, batch), layers="all")]

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = 64) -> Iterator[np.ndarray]:
        """Yields the layers of each sentence, as `embed_sentence` does."""
        embedder.check_count(batch_size, "batch_size")
        remaining = iter(sentences)
        while batch := list(itertools.islice(remaining, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: Iterable[str],
        output_file_path: str | os.PathLike,
        output_format: str = "all",
        batch_size: int = 64,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Writes the vectors of a text to an HDF5 file: a dataset for each line, float32, with its number as the key.

        Args:
            input_file: an open file, tokens separated by white space, one sentence per line.
            output_file_path: overwritten if it exists.
            output_format: "all" layers, `(num_layers, tokens, dim)`; the "top" layer or the "average", `(tokens, dim)`.
            batch_size: sentences that are computed together.
            forget_sentences: whether to leave out `sentence_to_index`, the keys by their sentences as JSON.
            use_sentence_keys: whether the sentences are the keys; there is no `sentence_to_index` then.

        Raises:
            InputError: for blank lines, another format, or with `use_sentence_keys` a sentence that occurs twice.
        """
        chosen: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "all": np.asarray,
            "top": lambda layers: layers[-1],
            "average": lambda layers: layers.mean(0),
        }
        if output_format not in chosen:
            raise InputError("output_format", f"one of {', '.join(chosen)}", repr(output_format))
        lines = [line.strip() for line in input_file]
        if blank := [number for number, line in enumerate(lines, 1) if not line]:
            raise InputError("input_file", f"the lines {blank} are blank; remove them")
        if use_sentence_keys and len(set(lines)) < len(lines):
            raise InputError("input_file", "a sentence occurs twice; without use_sentence_keys, its number is the key")
        keys = lines if use_sentence_keys else [str(number) for number in range(len(lines))]
        embedded = self.embed_sentences((line.split() for line in lines), batch_size)
        with h5py.File(output_file_path, "w") as file:
            for key, layers in zip(keys, embedded, strict=True):
                file.create_dataset(key, data=chosen[output_format](layers), dtype=np.float32)
            if not forget_sentences and not use_sentence_keys:
                index = json_file.dumps(dict(zip(lines, keys, strict=True)))
                file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())
