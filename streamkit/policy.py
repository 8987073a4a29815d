"""Where projects disagree, a switch: what is tolerated of a provider, as one value.

The wire's own rules are not here, nor what every reader must tolerate. Each switch is something that sensible software
decides both ways; the default is ``TOLERANT``.

Source: quirks.md §16, dialects.md §7.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from attrs import frozen

#: A history that begins with the assistant, for a dialect that refuses one. ``bridge``: a short turn of the user is put in
#: front, and counted. ``refuse``: the request is an error.
AssistantFirst: TypeAlias = Literal["bridge", "refuse"]
#: A history that ends with the assistant's text, for a model that does not go on with it. ``bridge``: a short turn of the
#: user is added, and counted. ``refuse``: the request is an error.
AssistantLast: TypeAlias = Literal["bridge", "refuse"]
#: Whose way of writing calls into a text: see ``in_text/grammars.py``.
TextCalls: TypeAlias = Literal["hermes", "qwen", "glm", "kimi", "deepseek", "minimax", "claude", "mistral", "llama"]
ThinkTags: TypeAlias = Literal["auto", "on", "opened", "off"]
#: Media at a URL for a dialect that takes none. ``refuse``: the request is an error. ``drop``: they are a counted loss.
LinkedMedia: TypeAlias = Literal["refuse", "drop"]
PolicyName: TypeAlias = Literal["strict", "tolerant", "lenient"]


@frozen(kw_only=True)
class Policy:
    """What is tolerated of a provider: ``TOLERANT`` (the default), ``STRICT``, ``LENIENT``, or a changed copy of one.

    A copy is made with ``attrs.evolve(TOLERANT, missing_id="refuse")``.
    """

    #: A stream that ends without any stop reason. ``refuse``: it was cut. ``derive``: complete calls and the terminator
    #: stand for one. ``accept``: so do text and the terminator, and complete calls at a clean end of input.
    end_without_finish: Literal["refuse", "derive", "accept"] = "derive"
    #: A call without an id. ``make`` one, or ``refuse`` the stream.
    missing_id: Literal["make", "refuse"] = "make"
    #: Another name for a call that has one and no argument text. ``append`` it, or keep the ``first``.
    name_pieces: Literal["append", "first"] = "append"
    #: A fragment that begins a second object right behind a complete one, with no sign of identity. ``report`` it by the
    #: verdict ``malformed``, or ``split`` it off as another call of that name.
    two_objects: Literal["report", "split"] = "report"
    #: Thinking between tags at the start of the text (``<think>…</think>``), as reasoning. ``auto``: of providers that are
    #: known to send it so, where the stream goes into another dialect. ``on``: of any. ``opened``: of any, and the text begins
    #: with thinking though no tag opens it, since the server's template opened it in the prompt. ``off``: it stays text.
    think_tags: ThinkTags = "auto"
    #: Calls that the model wrote into its text in one of these grammars, as calls.
    text_calls: tuple[TextCalls, ...] = ()
    #: Repair nothing: the first thing in the stream that would be repaired ends it with ``NeedsRepair``. Nothing of its frame
    #: is handed on mended, and the report counts that repair alone.
    refuse_repairs: bool = False

    @property
    def reads_text(self) -> bool:
        """Whether text is read for what is no text whoever sent it, so that frames can't pass as they came."""
        return self.think_tags in {"on", "opened"} or bool(self.text_calls)


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
