"""An extension of griffe for the site: the ``#:`` comment of a field is its docstring, and the API reference shows it."""

from __future__ import annotations

from typing import Any

import griffe


class Fields(griffe.Extension):
    """Reads the comment behind each field of a class, or in front of it."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Give an attribute without a docstring the text of its comment."""
        if attr.docstring is not None or attr.lineno is None or not (attr.parent and attr.parent.is_class):
            return
        lines = attr.lines_collection[attr.filepath]
        behind = lines[(attr.endlineno or attr.lineno) - 1].partition("#: ")[2]
        before, first = [], attr.lineno - 2
        while not behind and lines[first].lstrip().startswith("#: "):
            before.insert(0, lines[first].strip()[3:])
            first -= 1
        text = behind or " ".join(before)
        if text:
            attr.docstring = griffe.Docstring(text.replace("``", "`"), parent=attr)
