"""The user's options for reading files whose contents leave the format open."""

import dataclasses
import os
import pathlib

from elmo_tf.annotated import numbered_lines
from elmo_tf.text.tokenizers import words_of

# A column by its index from 0, by its index from the right (-1 is the last), or by its name in the file's header.
Column = int | str


@dataclasses.dataclass(frozen=True)
class Reading:
    """Options of the readers; each reader uses those for its format."""

    token_column: Column | None = None  # None: detected from the file's first sentences
    tag_column: Column | None = None  # likewise
    prefers_columns: bool = False  # whether an ambiguous single line is a token and its tag, not a sentence
    text_columns: tuple[str, ...] = ()  # names of the sentences' columns; (): those in published data sets
    label_column: str | None = None  # likewise
    labels: tuple[str, ...] = ()  # names of labels stored as numbers from 0
    strict: bool = False  # whether an odd line is an error; otherwise it is left out
    tokenizer: str = "penn"  # of running text, a name in `tokenizers.TOKENIZERS`

    def split(self, text: str) -> list[str]:
        """Returns the tokens of running text."""
        return [word.text for word in words_of(text, self.tokenizer)]


DEFAULT = Reading()


def label_names(text: str) -> tuple[str, ...]:
    """Returns the names given by an option: a file with a name per line, or names separated by commas."""
    if os.path.exists(text):
        names = [line.text.strip() for line in numbered_lines.nonblank_lines(text)]
        return tuple(numbered_lines.require_nonempty(names, pathlib.Path(text), "name of a label"))
    return tuple(name.strip() for name in text.split(","))
