"""Every cap on memory, its unit in its name, with the reason for its default.

Defaults follow limits.md §1. A cap is checked before the bytes are kept, so a stream that never ends a line, an event or
an argument text costs at most the cap.
"""

from __future__ import annotations

from typing import Final

from attrs import field, frozen
from attrs.validators import ge

MIB = 1024 * 1024


@frozen(kw_only=True)
class Limits:
    """Caps for one stream. Immutable: pass a changed copy (``attrs.evolve``) where a default does not fit."""

    #: Nearly every event is one line; base64 images and a Responses ``completed`` event pass 1 MiB.
    line_bytes: int = field(default=16 * MIB, validator=ge(1))
    #: The lines of one event together, or the payload of one binary message.
    event_bytes: int = field(default=16 * MIB, validator=ge(1))
    #: JSON values in one event: each takes a hundred bytes and several microseconds once it is read, whatever it is. An event
    #: that ends a response with five alternatives for each of 8,000 tokens has 400,000.
    event_values: int = field(default=500_000, validator=ge(1))
    #: The headers of one binary message: what the format itself allows.
    headers_bytes: int = field(default=128 * 1024, validator=ge(1))
    #: Event names and ids are short words; clients copy them about.
    name_bytes: int = field(default=1024, validator=ge(1))
    #: Largest index on the wire. An index is a label, so this guards against nonsense (2^63), not against memory.
    index: int = field(default=65_535, validator=ge(0))
    #: Argument text of one call, in characters: four times the largest seen in the field.
    arguments_chars: int = field(default=4 * MIB, validator=ge(1))
    #: Argument text of all calls of one stream, in characters.
    stream_arguments_chars: int = field(default=16 * MIB, validator=ge(1))
    #: Calls in one stream.
    tool_calls: int = field(default=128, validator=ge(1))
    #: Choices (n > 1) in one stream.
    choices: int = field(default=128, validator=ge(1))
    #: Content blocks in one response.
    content_blocks: int = field(default=4096, validator=ge(1))
    #: Nesting of argument JSON; real schemas stay under ten.
    json_depth: int = field(default=128, validator=ge(1))
    #: The schemas of a request's tools together. A description of a field is a paragraph; a hundred tools have many.
    schema_bytes: int = field(default=MIB, validator=ge(1))
    #: What an encoder may hold back while its dialect has another block open, or keep to repeat it at the end, in characters.
    held_chars: int = field(default=16 * MIB, validator=ge(1))
    #: What a whole answer keeps of what only its dialect knows, as text: log probabilities of each token among it; and of
    #: media that a model made, both as they came and as base64.
    aside_chars: int = field(default=64 * MIB, validator=ge(1))


DEFAULT_LIMITS = Limits()
#: Texts and names in a report, beyond which it counts: each is an object of a hundred bytes, however short its text is.
WITHHELD_TEXTS: Final = 1000
LOST_NAMES: Final = 1000
#: Values in the JSON of a request that is served: a turn has four or more, a conversation that fills a window of a million
#: tokens some ten thousand. Each takes a hundred bytes and several microseconds, whatever it is.
REQUEST_VALUES: Final = 250_000
#: The same of a whole answer: twenty alternatives for each of 12,000 tokens, with their bytes, are two million.
ANSWER_VALUES: Final = 2_000_000
