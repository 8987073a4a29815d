"""Switches for deviations of a provider, as one value.

There is a switch only where sensible software makes either choice, not for the rules of a wire format, nor for deviations
that every reader must tolerate. The default is ``TOLERANT``.

Source: quirks.md §16, dialects.md §7.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

from attrs import frozen

from streamkit.errors import check_type, check_words

#: For a conversation that begins with the assistant, in a dialect that forbids this. ``bridge``: put a short user turn first,
#: and count the repair. ``refuse``: reject the request.
AssistantFirst: TypeAlias = Literal["bridge", "refuse"]
#: For a conversation that ends with the assistant's text, for a model that can't continue it. ``bridge``: add a short user
#: turn, and count the repair. ``refuse``: reject the request.
AssistantLast: TypeAlias = Literal["bridge", "refuse"]
#: The syntaxes in which models write tool calls into their text: see ``in_text/grammars.py``.
TextCalls: TypeAlias = Literal["hermes", "qwen", "glm", "kimi", "deepseek", "minimax", "claude", "mistral", "llama"]
ThinkTags: TypeAlias = Literal["auto", "on", "opened", "off"]  #: see ``Policy.think_tags``
#: For media at a URL, in a dialect without such media. ``refuse``: reject the request. ``drop``: count the media as lost.
LinkedMedia: TypeAlias = Literal["refuse", "drop"]
#: For what only another provider can read (a file by its id). ``refuse``: reject the request. ``drop``: count it as lost.
UnreadableParts: TypeAlias = Literal["refuse", "drop"]
#: Whether streamkit marks a prompt for the provider's cache.
CacheMarks: TypeAlias = Literal["off", "auto"]
#: What becomes of deferred tools. ``off``: the provider searches them, or all are defined. ``emulate``: the gateway searches.
ToolSearch: TypeAlias = Literal["off", "emulate"]
PolicyName: TypeAlias = Literal["strict", "tolerant", "lenient"]


@frozen(kw_only=True)
class Policy:
    """Which faults of a provider to tolerate. Use ``TOLERANT`` (the default), ``STRICT``, ``LENIENT``, or a changed
    copy.

    Make a copy with ``attrs.evolve(TOLERANT, missing_id="refuse")``.
    """

    #: For a stream that ends without a stop reason. ``refuse``: the stream counts as interrupted. ``derive``: the
    #: stream counts as finished if it has complete calls and the terminator. ``accept``: like ``derive``, but the
    #: stream also counts as finished if it has text and the terminator, or complete calls and a clean end of the input.
    end_without_finish: Literal["refuse", "derive", "accept"] = "derive"
    #: For a call without an id. ``make``: make an id. ``refuse``: end the stream with ``MissingCallId``.
    missing_id: Literal["make", "refuse"] = "make"
    #: For a call that gets a second name before its argument text. ``append``: add the second name to the first. ``first``:
    #: drop the second name.
    name_pieces: Literal["append", "first"] = "append"
    #: For a fragment that begins a second JSON object right after a complete object, and has no id or index of another
    #: call. ``report``: the call gets the verdict ``malformed``. ``split``: the second object becomes another call of
    #: the same tool.
    two_objects: Literal["report", "split"] = "report"
    #: For thinking between tags at the start of the text (``<think>…</think>``). ``auto``: read the thinking as
    #: reasoning if the provider is known to send such tags and the stream is translated into another dialect. ``on``:
    #: read the thinking as reasoning, whatever the provider. ``opened``: like ``on``, but the text begins with
    #: thinking, without the opening tag, because the server's prompt template contains that tag. ``off``: leave the
    #: thinking in the text.
    think_tags: ThinkTags = "auto"
    #: The syntaxes of calls to search for in the model's text. Calls that are found become tool calls.
    text_calls: tuple[TextCalls, ...] = ()
    #: Repair nothing: the first fault that would be repaired ends the stream with ``NeedsRepair``. The report counts
    #: only this repair, and repaired events are not emitted.
    refuse_repairs: bool = False

    def __attrs_post_init__(self) -> None:
        """Raise UsageError for a word that a switch does not have."""
        for switch, words in _WORDS.items():
            check_words(switch, (getattr(self, switch),), words)
        check_type("text_calls", self.text_calls, tuple, "('hermes',)")
        check_words("each of text_calls", self.text_calls, get_args(TextCalls))
        check_type("refuse_repairs", self.refuse_repairs, bool, "True or False")

    @property
    def reads_text(self) -> bool:
        """True if the text of every provider is searched for thinking or calls. Frames can then not be forwarded byte
        for byte.
        """
        return self.think_tags in {"on", "opened"} or bool(self.text_calls)


#: The words of each switch.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    name: get_args(kind) for name, kind in get_type_hints(Policy).items() if get_origin(kind) is Literal
}
STRICT: Final = Policy(
    end_without_finish="refuse",
    missing_id="refuse",
    name_pieces="first",
    two_objects="report",
    think_tags="off",
    refuse_repairs=True,
)
TOLERANT: Final = Policy()
LENIENT: Final = Policy(end_without_finish="accept", two_objects="split")

POLICIES: Final[Mapping[str, Policy]] = {"strict": STRICT, "tolerant": TOLERANT, "lenient": LENIENT}
