"""Decode Ollama lines to wire events. Each call is complete in one line, so it starts and ends at once.

``index`` in ``function`` is unreliable, and an id is optional. So calls are numbered in their order, and never joined. The
text of ``arguments``, an object, is taken from the bytes of the line.

Source: dialects.md §4.1, §4.2, §4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamkit.dialects.members.values import count_of, decode_time, has_value, others_of, text_of
from streamkit.dialects.ollama.wire import COUNTS, STOP_REASONS, VENDOR, decode_usage, image_aside
from streamkit.dialects.streams.alike import Said
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.roles import is_other_role
from streamkit.errors import TooManyToolCalls
from streamkit.events import (
    Aside,
    MediaGenerated,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.value_text import lenient_text

# Members that the decoder reads: of a line, of its ``message``, of a call, and of its ``function`` (``index`` is ignored).
# It keeps other members as asides.
LINE_FIELDS = frozenset({"model", "created_at", "message", "done", "done_reason", "logprobs", "error", *COUNTS})
LINE_FIELDS |= {"response", "thinking", "tool_calls"}  # only in lines of /api/generate
MESSAGE_FIELDS = frozenset({"role", "content", "thinking", "tool_calls"})
CALL_FIELDS = frozenset({"id", "type", "function"})
FUNCTION_FIELDS = frozenset({"index", "name", "arguments"})
#: If the last line begins with all text so far, and this has at least so many characters, the line repeats it. A shorter text
#: may be equal by chance.
REPEATED_CHARS: Final = 16


def recognises(_event: str, document: Any) -> bool:
    """Return whether a payload may be an Ollama line."""
    return isinstance(document, dict) and (
        ("model" in document and ("message" in document or "response" in document or "done" in document))
        or isinstance(document.get("error"), str)
    )


class OllamaDecoder(FrameDecoder):
    """Decodes lines of ``/api/chat``, and of ``/api/generate``, which has the same members one level up."""

    dialect = "ollama"
    vendor = VENDOR
    error_forms = (str,)
    idle = frozenset({"created_at"})
    frame_name = "line"  # HTML or an indented JSON body: no line of it belongs to the dialect

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._done = False
        self._calls: list[int] = []  # hashes of calls, to find repeated ones

    def unterminated(self) -> None:
        """Accept a last line without a line end, which is complete and common."""

    def noting(self, event: Said | None) -> Callable[[str], object]:
        return self.texts.of(isinstance(event, TextDelta)).append

    def decode(self, document: dict[str, Any]) -> None:
        if self._done:
            self.behind_end(self._line, document)
        else:
            self._line(document)

    def _line(self, line: dict[str, Any]) -> None:
        is_alone = "error" in line and not (line.get("message") or line.get("response"))
        if is_alone and self.read_error(line, alone=True):
            return
        if not recognises("", line):
            self.unknown_frame("line", line)
            return
        self.recognised = True
        if not self._started:
            model, seconds = text_of(line.get("model")), decode_time(line.get("created_at"))
            self.start(ResponseStarted(None, model, seconds, VENDOR))
        message, ends = line.get("message"), self.truth(line.get("done"))
        if message is not None and type(message) is not dict:
            message = self._as_object(message)
        if message is not None and is_other_role(message.get("role")):
            self.keep_other_role(message)
        elif message is not None:
            self._message(message, ("message",), ends=ends)
            if not message.keys() <= MESSAGE_FIELDS:
                self._members(message)
            self._outside(line, message, ends=ends)
        else:  # /api/generate has the same members one level up
            self._message({**line, "content": line.get("response")}, (), ends=ends)
        if logprobs := line.get("logprobs"):
            self.out.append(Aside(VENDOR, "logprobs", "logprobs", logprobs))
        if has_others := not line.keys() <= LINE_FIELDS:
            self.keep_others(line, LINE_FIELDS, "")
        if usage := decode_usage(line):
            self.tell_counts(usage)
        for name in COUNTS:
            if line.get(name) is not None and count_of(line, name) is None:
                self.keep_invalid({name: line[name]})
        if ends:
            self._end(line)
        if has_others or "error" in line:
            self.read_error(line)

    def _as_object(self, message: Any) -> dict[str, Any]:
        """Return a malformed message as an object: a text becomes its content, and a list of one message this message."""
        if type(message) is str and message:
            self.report.repair("object_missing")
            return {"content": message}
        return self.fields(message)

    def _members(self, message: dict[str, Any]) -> None:
        """Read other members of a message: images that the model made. Any other value is kept as an aside."""
        images, read = message.get("images"), MESSAGE_FIELDS
        if isinstance(images, list) and all(isinstance(image, str) and image for image in images):
            self.out += [MediaGenerated("image", data=image, native=image_aside(image)) for image in images]
            read = MESSAGE_FIELDS | {"images"}
        self.keep_others(message, read, "message.")

    def _outside(self, line: dict[str, Any], message: dict[str, Any], *, ends: bool) -> None:
        """Read members that a line has next to its message, as in ``/api/generate``, unless the message has them, too."""
        rest = {}
        for name, of_message in ("response", "content"), ("thinking", "thinking"), ("tool_calls", "tool_calls"):
            if has_value(line.get(name)):
                self.report.repair("said_twice")
                if not has_value(message.get(of_message)):
                    rest[of_message] = line[name]
        if rest:
            self._message(rest, (), ends=ends)

    def _add_text(self, delta: TextDelta | ReasoningDelta, *, ends: bool) -> None:
        """Emit the text of a line. Ollama's own last line has none, but some servers repeat the whole text in it."""
        text = self.texts.of(isinstance(delta, TextDelta))
        if ends and text.chars >= REPEATED_CHARS and (rest := text.rest_of(delta.text)) is not None:
            self.report.repair("text_repeated")
            delta.text = rest
        if delta.text:
            text.append(delta.text)
            self.out.append(delta)

    def _message(self, message: dict[str, Any], path: tuple[str, ...], *, ends: bool) -> None:
        if thinking := self.string(message.get("thinking")):
            self._add_text(ReasoningDelta(thinking), ends=ends)
        if content := self.string(message.get("content")):
            self._add_text(TextDelta(content), ends=ends)
        calls = message.get("tool_calls")
        if calls is None:  # nearly always: the line has no calls
            return
        if isinstance(calls, dict | list) and len(calls) > self.limits.content_blocks:  # far above the limit of calls
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        if type(calls) is dict:
            listed = self.listed(calls)
            texts = [self.text_at(*path, "tool_calls", *step).encode() for step, _ in listed]
            self._tool_calls([call for _, call in listed], texts, ends=ends)
        elif calls := self.items(calls):  # the JSON text is split only once, because a line may have many calls
            self._tool_calls(calls, self.texts_at(len(calls), *path, "tool_calls"), ends=ends)

    def _tool_calls(self, calls: list[Any], texts: list[bytes], *, ends: bool) -> None:
        """Emit the calls of a line. A last line that begins with all earlier calls repeats the whole response.

        Ollama's own calls always differ, because each has another index.
        """
        count = len(self._calls)
        if ends and count and self._calls == [hash(text) for text in texts[:count]]:
            self.report.repair("arguments_repeated")
            calls, texts = calls[count:], texts[count:]
        for call, text in zip(calls, texts, strict=True):
            self._tool_call(call, text)

    def _tool_call(self, call: Any, text: bytes) -> None:
        """Emit one call. ``text`` is its JSON text in the line."""
        call = self.alone(call)
        path: tuple[str, ...] = ("function",)
        function = self.alone(call.get("function")) if type(call) is dict else None
        if function is None and type(call) is dict and (bare := self.bare_function(call, {})):
            function, path, call = bare, (), {name: value for name, value in call.items() if name not in bare}
        if type(function) is not dict:
            self.keep_invalid(call)
            return
        member = self.member_of_arguments(function)
        extras = others_of(call, CALL_FIELDS) | others_of(function, FUNCTION_FIELDS | {member})
        index = len(self._calls)
        if index >= self.limits.content_blocks:
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        self._calls.append(hash(text))
        arguments = function.get(member)
        if isinstance(arguments, str):
            self.report.repair("arguments_not_object")
        elif arguments is not None:
            arguments = lenient_text(text, *path, member)
        call_id, name = self.string(call.get("id")), self.string(function.get("name"))
        delta = ToolCallDelta(index, call_id or None, name or None, arguments, snapshot=True, anonymous=True)
        delta.extras = extras or None
        self.out += (delta, ToolCallEnded(index))

    def _end(self, line: dict[str, Any]) -> None:
        self._done = True
        if native := text_of(line.get("done_reason")):
            reason = self.stop_reason(native, STOP_REASONS)
            self.out.append(StopReasonSeen(reason, native, covers_calls=True))
        self.out.append(TerminatorSeen())
