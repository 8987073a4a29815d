"""Read and write whole responses: the ``response`` object and error bodies.

The object is the same as in the last event of a stream, so the stream decoder reads it; its items are read as items that just
done. A status such as ``queued``, or none, is no end. When written, parts become items in their order: neighbouring texts are
one message, reasoning up to its signature one item. Data that only another vendor can read are sealed in a reasoning item.

Source: dialects.md §2.1, §2.2, §2.4, §7.1, §7.2, §7.5, quirks.md R14 (opaque data must survive).
"""

from __future__ import annotations

from typing import Any

from streamkit.conversation.messages import Choice, Extras, Part, Reasoning, RedactedReasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.openai import identity
from streamkit.dialects.bodies.responses import ResponseWriter
from streamkit.dialects.members.fields import add_missing
from streamkit.dialects.members.values import UNREAD, name_of
from streamkit.dialects.openai_responses import wire
from streamkit.dialects.openai_responses.asides import write_image
from streamkit.dialects.openai_responses.decode import RESPONSE, ResponsesDecoder, known_status
from streamkit.dialects.openai_responses.encode import DEFAULTS
from streamkit.dialects.openai_responses.output import Item, OutputList, call_item, reasoning_item, thoughts
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.compactions import COMPACTION
from streamkit.dialects.streams.event_encoder import only_choice
from streamkit.dialects.vocabulary.error_bodies import error_in
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.errors import TooManyBlocks
from streamkit.events import Aside, MediaGenerated, Opaque, ProviderFailed, ResponseFinished


class ResponsesBodyDecoder(ResponsesDecoder):
    """Reads one whole body."""

    error_forms = (dict,)

    def decode(self, document: dict[str, Any]) -> None:
        if document.get("object") != "response" and not isinstance(document.get("output"), list):
            self.unknown_frame("body", document)
            return
        self.recognised, response = True, document
        # a stream has the member ``completed_at`` only in its last event
        self._start({name: value for name, value in response.items() if name != "completed_at"})
        self.keep_unread(response, RESPONSE)
        output = self.items(response.get("output"))
        if len(output) > self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        for place, found in enumerate(output):
            self._item(place, self.fields(found))
        if status := known_status(response.get("status")):
            self._ended({"type": f"response.{status}", "response": {**response, "output": None}})
        elif (error := error_in(response)) is not None:
            self.fail(error, told_by="response")

    def _item(self, place: int, found: dict[str, Any]) -> None:
        kind = self.string(self.kind_of(found))
        if not kind.strip():
            if found:
                self.keep_invalid(found)
            return
        item = self._begin(place, kind, self.string(found.get("id")), found)
        if kind in wire.OWN_ITEMS:
            if kind in {"message", "reasoning"}:
                self._unknown(item, found)
            self._whole_item(item, found, ("output", place))
            self.end_lacking()
            for path, value in self._emitted.of_item(found, place, "added"):
                self.out.append(Aside(wire.VENDOR, "unknown_event", f"{UNREAD}{path}", value))
            return
        self.whole_carried(item, found)


class ResponsesBodyWriter(ResponseWriter):
    """Writes one response."""

    vendor = wire.VENDOR
    _calls = 0  # the number of calls written
    _images = 0  # the number of images of another vendor written

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return {"error": wire.encode_error(failure, self.report)}

    def answer(self) -> dict[str, Any]:
        response = self.response
        choice = only_choice(response, self.report)
        output = self._output(choice)
        body: dict[str, Any] = {
            **identity(response, self.encoding, "resp_", "response", "created_at"),
            **self._status(choice, output),
            "error": None,
            "output": output,
            "usage": self._usage(),
            **DEFAULTS,
            **self.encoding.profile.settings,
        }
        return {**body, **self.own_extras(response.extras, "response_fields"), **self.members}

    def _status(self, choice: Choice, output: list[Item]) -> dict[str, Any]:
        stop = choice.stop_reason or "other"
        if stop == "compaction" and not any(item["type"] == COMPACTION for item in output):  # no compaction was made
            self.report.lose("stop_reason")
            stop = "length"
        end = ResponseFinished(stop, choice.native_stop_reason, 0, choice.stop_sequence)
        called, refused = self._calls > 0, bool(choice.refusal)
        status, incomplete = wire.encode_end(end, self.report, own=self.own, refused=refused, called=called)
        return {"status": status, "incomplete_details": incomplete}

    def _usage(self) -> dict[str, Any] | None:
        usage = self.response.usage
        if usage is None:
            return None
        wire.count_usage_losses(usage, self.report)
        body = wire.encode_usage(usage)
        if usage.vendor != wire.VENDOR:  # required in a whole body, but not in a stream
            body["input_tokens_details"].setdefault("cache_write_tokens", 0)
        return body

    def _output(self, choice: Choice) -> list[Item]:
        output = OutputList(self.report, self._message)
        for part in thoughts(choice.parts):
            if isinstance(part, list):
                output.add(self._thought(part), [each.block for each in part])
            else:
                self._part(part, output)
        return output.finish()

    def _part(self, part: Part, output: OutputList) -> None:
        match part:
            case Text():
                if part.text:
                    text = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
                    output.add_part(text, part.block, None, apart=False)
                if part.signature is not None:
                    output.add(self._sealed("text" if part.text else "part", part.signature))
            case Refusal():
                output.add_part({"type": "refusal", "refusal": part.text}, part.block, None, apart=False)
            case RedactedReasoning():
                output.add(self._sealed("opaque", part.opaque), [part.block])
            case ToolCall():
                self._call(part, output)
            case Aside():
                self._aside(part, output)
            case _:
                raise TypeError(f"a response can't contain a {type(part).__name__}")

    def _message(self, _members: Extras) -> Item:
        made = self.encoding.make_id("msg_")
        return {"id": made, "type": "message", "status": "completed", "role": "assistant", "content": []}

    def _thought(self, run: list[Reasoning]) -> Item:
        item = {"id": self.encoding.make_id("rs_"), "status": "completed", **reasoning_item(run)}
        if (signature := run[-1].signature) is not None:
            item["encrypted_content"] = _blob("reasoning", signature)
        return item

    def _sealed(self, kind: Kind, opaque: Opaque) -> Item:
        """Return a reasoning item that has only opaque data."""
        item = {"id": self.encoding.make_id("rs_"), "type": "reasoning", "status": "completed", "summary": []}
        return {**item, "encrypted_content": _blob(kind, opaque)}

    def _call(self, call: ToolCall, output: OutputList) -> None:
        """Write a call. A truncated call is ``incomplete``, since clients run completed calls."""
        if not call.name:
            self.withhold(call)
            return
        if call.signature is not None:  # seal it in an item before the call
            output.add(self._sealed("call", call.signature))
        cut = not call.ended or (call.verdict is not None and call.verdict.kind == "truncated")
        made = self.encoding.make_id("ctc_" if call.kind == "custom" else "fc_")
        item = {"id": made, "status": "incomplete" if cut else "completed", **call_item(call, cut=cut)}
        self._calls += 1
        output.add(add_missing(item, self.own_extras(call.extras)))

    def media_form(self, media: MediaGenerated) -> list[Aside]:
        self._images += 1
        return write_image(media, self._images)

    def _aside(self, part: Aside, output: OutputList) -> None:
        owner, _, name = part.type.partition(".")
        if part.vendor != wire.VENDOR:
            self.report.lose(part.kind, what=name_of(part))
        elif part.kind == "metadata" and owner == "response" and part.type not in wire.ASIDES:
            self.members[name] = part.raw
        else:
            self._calls += part.kind == "client_tool"  # an item that the client runs counts as a call
            if part.type != WAITS:
                output.aside(part)


def _blob(kind: Kind, opaque: Opaque) -> str:
    """Return ``encrypted_content``: OpenAI's reasoning unchanged; other data sealed (base64 with the vendor's name)."""
    own = kind in {"opaque", "reasoning"} and opaque.vendor == wire.OPAQUE_VENDOR
    return opaque.blob if own else seal(kind, opaque.vendor, opaque.blob)
