"""Trains skip-gram word vectors for the task systems' `--glove`, as GloVe's files are written.

    python benchmarks/skip_gram.py --text FILE ... --output vectors.txt [--threads 2]

--text is text with a sentence a line and tokens between spaces, as `.txt` or `.txt.xz`. The vectors are 100-dimensional
and of lower-cased words, as GloVe's 6B vectors are. Needs gensim, which `evening-requirements.txt` names.
"""

import argparse
import lzma
import pathlib
import sys
import time
from collections.abc import Iterator

import gensim

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from elmo_tf.files import stores


class Sentences:
    """The lower-cased tokens of each line of files; can be read again."""

    def __init__(self, paths: list[pathlib.Path]):
        self.paths = paths

    def __iter__(self) -> Iterator[list[str]]:
        for path in self.paths:
            opened = lzma.open if path.suffix == ".xz" else open
            with opened(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    yield line.lower().split()


def main(argv: list[str] | None = None) -> None:
    """Trains and writes the vectors, the most frequent word first."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", nargs="+", type=pathlib.Path, required=True, help="tokenized sentences, one a line")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the file to write")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the text (2)")
    parser.add_argument("--min-count", type=int, default=10, help="rarer words get no vector (10)")
    parser.add_argument("--threads", type=int, default=2, help="with more than one, no two runs are equal (2)")
    arguments = parser.parse_args(argv)
    started = time.monotonic()
    network = gensim.models.Word2Vec(
        Sentences(arguments.text),
        sg=1,
        vector_size=100,
        epochs=arguments.epochs,
        min_count=arguments.min_count,
        workers=arguments.threads,
        seed=1,
    )
    vectors = network.wv
    lines = [
        f"{word} {' '.join(f'{value:.5f}' for value in vector)}\n"
        for word, vector in zip(vectors.index_to_key, vectors.vectors, strict=True)
    ]
    stores.write(arguments.output, "".join(lines).encode())
    print(
        f"{len(lines):,} vectors of {network.corpus_total_words:,} tokens read {arguments.epochs} times, "
        f"in {time.monotonic() - started:,.0f} s"
    )


if __name__ == "__main__":
    main()
