"""Prints docs/settings.md from elmo_tf/config.py: `python docs/settings.py > docs/settings.md`."""

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Collection

from elmo_tf import config

PAGE = """# Settings

Each setting of a model and its training: `elmo-tf train --set KEY=VALUE`, or `elmo_tf.override(config, ["KEY=VALUE"])`
in a program. A value is JSON or a bare word. `python docs/settings.py` makes this page from `elmo_tf/config.py`.
"""


def main() -> None:
    """Prints the page."""
    print(page(), end="")


def page() -> str:
    """Returns the page."""
    sections = (
        ("The token encoder", "model.char_cnn.", config.CharCNNConfig),
        ("The LSTMs", "model.lstm.", config.LSTMConfig),
        ("Training", "train.", config.TrainConfig),
    )
    return PAGE + "".join(_section(*section) for section in sections)


def meanings(source: str, names: Collection[str]) -> dict[str, str]:
    """Returns the comment of each field of a class, behind it or above it, with its unit; the site uses it, too."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in source.splitlines():
        code, _, comment = re.sub(r"# type: ignore\S* ", "", line).strip().partition("# ")
        name = code.partition(":")[0]
        if name in names:
            found[name] = " ".join(filter(None, [*above, comment]))
        above = [*above, comment] if comment and not code else []
    return found


def _section(title: str, prefix: str, section: type) -> str:
    names = [field.name for field in dataclasses.fields(section)]
    texts = meanings(inspect.getsource(section), names)
    rows = [f"| `{prefix}{name}` | {_default(prefix + name)} | {text} |" for name, text in texts.items()]
    return "\n".join([f"\n## {title}\n", "| key | default | meaning, with its unit |", "|---|---|---|", *rows, ""])


def _default(key: str) -> str:
    """Returns the value of a key, with the presets that have it if they differ."""
    presets: dict[str, list[str]] = {}
    for name, preset in config.PRESETS.items():
        value: typing.Any = config.to_dict(preset)
        for part in key.split("."):
            value = value[part]
        text = value if isinstance(value, str) else json.dumps(value)
        presets.setdefault(f"`{text}`", []).append(name)
    if len(presets) == 1:
        return next(iter(presets))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in presets.items())


if __name__ == "__main__":
    main()
