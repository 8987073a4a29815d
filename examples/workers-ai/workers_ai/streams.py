"""The stream of Cloudflare Workers AI's own API (``/ai/run``), as a streamkit dialect: text in pieces, calls as a whole.

    data: {"response":"Let me look."}
    data: {"tool_calls":[{"name":"get_weather","arguments":{"city":"Oslo"}}]}
    data: {"response":"","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}
    data: [DONE]

Source: https://developers.cloudflare.com/workers-ai/features/function-calling/ and its provider for the AI SDK.
"""

from typing import Any

import orjson

from streamkit import plugin as sk

NAME = "workers-ai"
#: ``p`` is padding, by which the length of an answer tells nobody what it says.
KNOWN = frozenset({"response", "tool_calls", "usage", "errors", "p"})
CALL = frozenset({"name", "arguments"})


def recognises(_event: str, document: Any) -> bool:
    """Whether a payload can be a chunk; Ollama's have a ``response``, too, and a ``model``."""
    if not isinstance(document, dict) or "model" in document:
        return False
    return not document.keys().isdisjoint(KNOWN - {"p"})


class WorkersDecoder(sk.FrameDecoder):
    dialect = vendor = NAME
    #: the path to the object that is a chunk, in a whole response
    within: tuple[str, ...] = ()

    def __init__(self, limits: sk.Limits, report: sk.StreamReport) -> None:
        super().__init__(limits, report)
        self._calls = 0
        self._done = False

    def decode(self, document: dict[str, Any]) -> None:
        if self._done:
            self.behind_end(self._chunk, document)
        elif recognises("", document):
            self._chunk(document)
        else:
            self.foreign_frame()
            self.out.append(sk.Aside(NAME, "unknown_event", "chunk", document))

    def _chunk(self, chunk: dict[str, Any]) -> None:
        if not self.recognised:
            self.recognised = True
            self.out += (sk.ResponseStarted(vendor=NAME), sk.ChoiceStarted())
        if errors := chunk.get("errors"):
            error = (self.items(errors) or [errors])[0]
            self.out.append(sk.provider_failed({"error": error}, NAME, {}))
        if text := self.string(chunk.get("response")):
            self.out.append(sk.TextDelta(text))
        if calls := self.items(chunk.get("tool_calls")):
            sources = self.texts_at(len(calls), *self.within, "tool_calls")
            for call, source in zip(calls, sources, strict=True):
                self._call(self.fields(call), source)
        if usage := self.fields(chunk.get("usage")):
            counts = sk.UsageReported(
                input_total=sk.count_of(usage, "prompt_tokens"),
                output_total=sk.count_of(usage, "completion_tokens"),
                raw=usage,
                vendor=NAME,
            )
            self.tell_counts(counts)
        self.keep_others(chunk, KNOWN, "")

    def _call(self, call: dict[str, Any], source: bytes) -> None:
        """One call; ``source`` is its own text, of which an object of arguments is kept as it was written."""
        arguments = call.get("arguments")
        if isinstance(arguments, str):
            self.report.repair("arguments_not_object")
        elif arguments is not None:
            arguments = sk.lenient_text(source, "arguments")
        name = self.string(call.get("name")) or None
        delta = sk.ToolCallDelta(self._calls, None, name, arguments, snapshot=True)
        delta.anonymous = True  # the dialect gives calls no id
        delta.extras = {key: call[key] for key in call if key not in CALL} or None
        self.out += (delta, sk.ToolCallEnded(self._calls))
        self._calls += 1

    def done(self) -> None:
        if not self._done:
            self._done = True
            self.out += (
                sk.StopReasonSeen("stop", "[DONE]", covers_calls=True),
                sk.TerminatorSeen(),
            )


class WorkersEncoder(sk.WholeCallEncoder):
    native = vendor = NAME

    def _chunk(self, **members: Any) -> None:
        self.write(b"data: %b\n\n" % orjson.dumps(members))

    def write_text(self, text: str) -> None:
        self._chunk(response=text)

    def write_call(
        self, start: sk.ToolCallStarted, call: sk.ToolCallFinished, arguments: bytes
    ) -> None:
        if not start.id_made:  # the dialect has no place for it
            self.lose("call_id")
        self._chunk(
            tool_calls=[{"name": call.name, "arguments": orjson.Fragment(arguments)}]
        )

    def aside(self, event: sk.Aside) -> None:
        if event.vendor == NAME and event.kind == "metadata":
            self._chunk(response="", **{event.type: event.raw})
        else:
            super().aside(event)

    def terminate(self) -> None:
        if self.stop is not None and self.stop.reason not in {"stop", "tool_calls"}:
            self.lose("stop_reason")
        if self.usage is not None:
            self._chunk(response="", usage=write_usage(self.usage))
        self.write(b"data: [DONE]\n\n")

    def error(self, event: sk.ProviderFailed) -> None:
        self._chunk(errors=[write_error(event)])


def write_usage(usage: sk.UsageReported) -> dict[str, Any]:
    """The counts of a stream or a whole response; the dialect's own as they came."""
    if usage.vendor == NAME:
        return dict(usage.raw or {})
    return {"prompt_tokens": usage.input_total, "completion_tokens": usage.output_total}


def write_error(failed: sk.ProviderFailed) -> dict[str, Any]:
    return {"message": failed.message, "code": failed.code}
