"""ELMo vectors in a `tf.data` pipeline, from a SavedModel.

    python examples/embed_dataset.py --model savedmodels/mine/1 --input corpus.txt

Use `with_vectors` in your own program. With `.cache()` or `.save(path)` after it, each sentence is embedded once, not
once per epoch.
"""

import argparse
import sys

import tensorflow as tf

from elmo_tf.errors import InputError


def with_vectors(sentences: tf.data.Dataset, savedmodel: str, batch_size: int = 64) -> tf.data.Dataset:
    """Returns the tokens, string `(tokens,)`, and the ELMo vectors, float32 `(tokens, dim)`, of each sentence.

    Args:
        sentences: string `()`, split by the model's signature `default`.
        savedmodel: a version's folder; `elmo-tf import NAME --output DIR` makes one of a published model.
        batch_size: sentences embedded at a time.
    """
    model = tf.saved_model.load(savedmodel)

    def embed(batch):
        outputs = model.signatures["default"](strings=batch)
        lengths = tf.reduce_sum(tf.cast(outputs["mask"], tf.int64), 1)
        return tuple(tf.RaggedTensor.from_tensor(outputs[name], lengths) for name in ("tokens", "elmo"))

    # No parallel calls: the model uses all cores.
    return sentences.batch(batch_size).map(embed).unbatch().map(_dense).prefetch(batch_size)


def _dense(tokens, vectors):
    # An element of a ragged batch may be a RaggedTensor, even if its rows have the same length.
    return tokens, vectors.to_tensor() if isinstance(vectors, tf.RaggedTensor) else vectors


def main() -> None:
    """Prints the tokens and the shape of the vectors for the first lines of a text."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a version's folder")
    parser.add_argument("--input", required=True, help="a file with one sentence per line")
    parser.add_argument("--count", type=int, default=5, help="how many lines to print (5)")
    arguments = parser.parse_args()
    if not tf.io.gfile.exists(arguments.input) or tf.io.gfile.isdir(arguments.input):
        raise InputError(arguments.input, "a file with one sentence per line", "none")
    dataset = with_vectors(tf.data.TextLineDataset(arguments.input), arguments.model)
    for tokens, vectors in dataset.take(arguments.count):
        print(b" ".join(tokens.numpy()).decode(errors="replace"), vectors.shape)


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"embed_dataset.py: error: {error}")
