"""Reading the options of a request that are one field each, by the table by which ``RequestWriter.options`` writes them.

Source: dialects.md §7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamkit.conversation.messages import Options
from streamkit.dialects.members.fields import Fields

#: How the value of each option is read, by our names.
READERS: Final[Mapping[str, Callable[[Fields, str], Any]]] = {
    "max_tokens": Fields.integer,
    "temperature": Fields.number,
    "top_p": Fields.number,
    "top_k": Fields.integer,
    "stop": Fields.strings,
    "seed": Fields.integer,
    "presence_penalty": Fields.number,
    "frequency_penalty": Fields.number,
    "choices": Fields.integer,
    "logprobs": Fields.boolean,
    "top_logprobs": Fields.integer,
    "service_tier": Fields.string,
    "user": Fields.string,
}


def read_options(fields: Fields, names: Mapping[str, str], **others: Any) -> Options:
    """The options whose names in the dialect are in ``names``, by ours, and ``others``, which are read already.

    Raises BadRequest for a value of another type.
    """
    plain = {name: READERS[name](fields, theirs) for name, theirs in names.items() if name not in others}
    return Options(**plain, **others)
