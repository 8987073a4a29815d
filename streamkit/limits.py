"""Limits on memory. The name of each limit contains its unit.

Defaults follow limits.md §1. A limit is checked before the bytes are kept, so a line, an event or an argument text that never
ends takes no more memory than the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import Attribute, field, frozen

from streamkit.errors import check_whole

MIB = 1024 * 1024


def whole(least: int) -> Callable[[object, Attribute[int], Any], None]:
    """Return a validator of attrs for whole numbers of ``least`` or more. It raises UsageError."""

    def check(_limits: object, limit: Attribute[int], value: Any) -> None:
        check_whole(limit.name, value, least)

    return check


@frozen(kw_only=True)
class Limits:
    """The limits for one stream. The object is immutable: use ``attrs.evolve`` to make a copy with other values."""

    #: The length of one line. Nearly every event is one line, and a line with a base64 image or with a whole response
    #: exceeds 1 MiB.
    line_bytes: int = field(default=16 * MIB, validator=whole(1))
    #: The length of all lines of one event together, or of the payload of one binary message.
    event_bytes: int = field(default=16 * MIB, validator=whole(1))
    #: The number of JSON values in one event. Parsing takes a hundred bytes and several microseconds for each value. The
    #: default allows a last event that lists five alternatives for each of 8,000 tokens: such an event has 400,000
    #: values.
    event_values: int = field(default=500_000, validator=whole(1))
    #: The length of the headers of one binary message. The default is the maximum of the Amazon event-stream format.
    headers_bytes: int = field(default=128 * 1024, validator=whole(1))
    #: The length of an event name or event id. The limit is low because names and ids are usually short, and clients
    #: keep copies of them.
    name_bytes: int = field(default=1024, validator=whole(1))
    #: The largest index on the wire. An index is only a label, so this limit does not save memory. It rejects nonsensical
    #: values such as 2^63.
    index: int = field(default=65_535, validator=whole(0))
    #: The length of one call's argument text, in characters. The same limit applies to a text that is checked as JSON:
    #: a longer text gets the verdict ``unchecked``. The default is four times the longest argument text seen in
    #: practice.
    arguments_chars: int = field(default=4 * MIB, validator=whole(1))
    #: The length of the argument texts of all calls of one stream together, in characters. The same limit applies to
    #: all texts together that are checked as JSON in one stream.
    stream_arguments_chars: int = field(default=16 * MIB, validator=whole(1))
    tool_calls: int = field(default=128, validator=whole(1))  #: The number of tool calls in one stream.
    #: The number of choices in one stream. A request asks for several choices with ``n``.
    choices: int = field(default=128, validator=whole(1))
    content_blocks: int = field(default=4096, validator=whole(1))  #: The number of content blocks in one response.
    #: The number of nested levels in the JSON of arguments. Real schemas have fewer than ten levels.
    json_depth: int = field(default=128, validator=whole(1))
    #: The length of the JSON schemas of all tools of a request together. The default allows for a request that has a
    #: hundred tools with long descriptions.
    schema_bytes: int = field(default=MIB, validator=whole(1))
    #: The number of characters that an encoder may hold back while another block is open, or may keep because the end
    #: of the response repeats them.
    held_chars: int = field(default=16 * MIB, validator=whole(1))
    #: The number of characters of asides that are kept for a whole response, counted as JSON text. An example is the
    #: log probabilities of all tokens. Generated media count twice: as received and as base64.
    aside_chars: int = field(default=64 * MIB, validator=whole(1))


DEFAULT_LIMITS = Limits()
#: Maximum number of withheld texts that a report keeps; it only counts further texts. Even a short one takes 100 bytes.
WITHHELD_TEXTS: Final = 1000
LOST_NAMES: Final = 1000  #: maximum number of names of lost things that a report keeps; it only counts further losses
#: JSON values in a request to the gateway. A turn has four or more; a conversation that fills a context window of a million
#: tokens has some ten thousand turns. Each value takes a hundred bytes and several microseconds, whatever it is.
REQUEST_VALUES: Final = 250_000
#: JSON values in a whole response: twenty alternatives for each of 12,000 tokens, with their bytes, are two million.
ANSWER_VALUES: Final = 2_000_000
