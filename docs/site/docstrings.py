"""An extension of Griffe, which reads the docstrings of the reference."""

import inspect
import pathlib
import re
import runpy
from typing import Any

import griffe

meanings = runpy.run_path(str(pathlib.Path(__file__).parents[1] / "settings.py"))["meanings"]


class HouseStyle(griffe.Extension):
    """Lists the fields of a class with their comments, and the call arguments of a layer like other arguments."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called for each class that has been read."""
        if cls.docstring:
            text = inspect.cleandoc(cls.docstring.value).replace("Call arguments:", "Other Parameters: Call arguments")
            names = [name for name, field in cls.attributes.items() if field.annotation and not field.docstring]
            fields = [f"    {name}: {comment}" for name, comment in meanings(cls.source, names).items()]
            text = re.sub(r"[a-z]+/[\w-]+\.md", r"[\g<0>](../\g<0>)", text)
            cls.docstring.value = "\n".join([text, *(["", "Attributes:"] if fields else []), *fields])
