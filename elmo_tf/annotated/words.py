"""Words of annotated files: splitting on white space, and undoing a treebank's escapes."""

import re

_SPACE = re.compile(r"[ \t\n\v\f\r]+")  # as bytes.split and tf.strings.split: a no-break space belongs to its word
# How treebanks write brackets of the text.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def split(text: str) -> list[str]:
    """Returns the columns or words of a line between runs of ASCII white space."""
    return [part for part in _SPACE.split(text) if part]


def word(form: str) -> str:
    """Returns a word as its text has it: a bracket for `-LRB-`, and no white space, which some treebanks have inside.

    The result is "" for a form that is only white space, a no-break space for example.
    """
    form = "".join(form.split())
    return _BRACKETS.get(form, form)
