"""The types of the newest SDKs as JSON schemas, for ``tools/drift.py``: one function for each SDK.

pydantic writes the schemas of most SDKs; those of botocore's service model are made here, and those of npm's packages by zod
(``drift_schemas.mjs``).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import typing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import attrs
import cohere as cohere_sdk
from anthropic.types import beta
from anthropic.types.beta.message_create_params import MessageCreateParams
from botocore.loaders import Loader
from botocore.model import ServiceModel
from google.genai import types
from google.genai._gaos.types import interactions
from mistralai.client import models
from ollama import ChatResponse
from ollama._types import ChatRequest
from openai.types import chat, responses
from openai.types.chat.completion_create_params import CompletionCreateParams
from openai.types.responses.response_create_params import ResponseCreateParams
from pydantic import TypeAdapter
from typing_extensions import TypedDict

TESTS: Final = Path(__file__).resolve().parents[1] / "tests"
#: Values of members of which readers check more than the type.
VALUES: Final = {
    **dict.fromkeys(("data", "bytes", "value"), "aGk="),
    **dict.fromkeys(("arguments", "input", "schema"), "{}"),
    "parameters": {"type": "object", "properties": {}},
    **dict.fromkeys(("url", "image_url", "uri", "fileUri"), "https://x.test/a"),
    **dict.fromkeys(("mimeType", "mime_type", "media_type"), "image/png"),
    **dict.fromkeys(("index", "output_index", "content_index", "summary_index", "contentBlockIndex"), 0),
}
TAGS: Final = ("type", "event_type", "role")  #: members that name the type of an object
DEPTH: Final = 8  #: of a minimal value: some types contain themselves


@attrs.frozen(eq=False)
class Schemas:
    """The JSON schema of what is sent in one place."""

    place: str  #: stream, response or request
    root: Mapping[str, Any]
    #: The documents to read for a document: a stream needs the events before and after it, a message its role.
    within: Callable[[Any], list[Any]] = lambda document: [document]
    left_out: frozenset[str] = frozenset()  #: types and members that an SDK keeps to itself, or sends as headers
    values: Mapping[str, Any] = {}  #: values of members that servers need where the SDK says less

    @property
    def kind(self) -> str:
        """The kind of the root's types."""
        return "event" if self.place == "stream" else ""

    def resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema without references and wrappers."""
        while True:
            if "$ref" in schema:
                *_, group, name = schema["$ref"].split("/")
                schema = {"title": name, **self.root[group][name]}
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema

    def variants(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the alternatives of a schema, without null."""
        schema = self.resolve(schema)
        if alternatives := schema.get("anyOf") or schema.get("oneOf"):
            for each in alternatives:
                yield from self.variants(each)
        elif schema.get("type") != "null":
            yield schema

    def values_of(self, schema: Mapping[str, Any], name: str) -> list[Any]:
        """Return a value for each alternative of a member's schema, and for each of its words."""
        if name in self.values:
            return [self.values[name]]
        variants = list(self.variants(schema)) or [{}]
        words = [word for variant in variants for word in variant.get("enum", ())]
        return words or [self.minimal(variant, name, full=True) for variant in variants]

    def is_word(self, schema: Mapping[str, Any]) -> bool:
        """Return whether a schema allows one value only, which names a type."""
        variants = list(self.variants(schema))
        return len(variants) == 1 and ("const" in variants[0] or len(variants[0].get("enum", ())) == 1)

    def nested(
        self, schema: Mapping[str, Any], depth: int = 0
    ) -> Iterator[tuple[Mapping[str, Any], Callable[[Any], Any]]]:
        """Yield the schemas of objects in a value, each with a function that puts an object into such a value."""
        variants = list(self.variants(schema)) if depth < DEPTH else []
        if objects := [variant for variant in variants if "properties" in variant]:
            yield {"anyOf": objects}, lambda value: value
        for variant in variants:
            if variant.get("type") == "array" and "items" in variant:
                for below, put in self.nested(variant["items"], depth + 1):
                    yield below, lambda value, put=put: [put(value)]
            elif "properties" not in variant and isinstance(more := variant.get("additionalProperties"), dict):
                for below, put in self.nested(more, depth + 1):
                    yield below, lambda value, put=put: {"key": put(value)}

    def minimal(self, schema: Mapping[str, Any], name: str = "", depth: int = 0, *, full: bool = False) -> Any:
        """Return the smallest value of a schema. With ``full``, lists and objects are not empty."""
        if name in self.values:
            return self.values[name]
        schema = next(self.variants(schema), {})
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        kind, full = schema.get("type"), full and depth < DEPTH
        if (members := schema.get("properties")) is not None:
            needed = {
                *schema.get("required", ()),
                *self.values,
                *(tag for tag in TAGS if tag in members and self.is_word(members[tag])),
            }
            wanted = [member for member in members if member in needed]
            if "x-union" in schema:
                wanted = list(schema["x-union"])[:1]
            elif full and (depth == 0 or not wanted):
                wanted = list(members) if depth == 0 else list(members)[:1]
            return {member: self.minimal(members[member], member, depth + 1, full=full) for member in wanted}
        if kind == "array":
            return [self.minimal(schema.get("items", {}), name, depth + 1, full=full)] if full else []
        if kind == "object":
            return {"key": "x"} if full else {}
        return {"integer": 1, "number": 1.0, "boolean": True}.get(kind, "x") if name not in VALUES else VALUES[name]


@attrs.frozen
class Compared:
    """The schemas of one SDK, and the dialect that reads them."""

    sdk: str
    version: str
    dialect: str
    schemas: Sequence[Schemas]

    @property
    def title(self) -> str:
        return f"{self.sdk} {self.version}: {self.dialect}"


def _schema(kind: Any, unions: Mapping[str, Collection[str]] = {}) -> Mapping[str, Any]:
    """Return the JSON schema of a type. Types in ``unions`` have one of their members at a time, but for those named."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = TypeAdapter(kind).json_schema(mode="validation")
    for name, others in unions.items():
        schema["$defs"][name]["x-union"] = [each for each in schema["$defs"][name]["properties"] if each not in others]
    return schema


@attrs.frozen
class Stream:
    """The events of a stream that come before and after one event."""

    start: tuple[Any, ...]
    end: tuple[Any, ...]
    before: Mapping[str, tuple[Any, ...]] = {}  #: by the beginning of the event's name and the type in it

    def __call__(self, document: Any) -> list[Any]:
        name = self.name(document)
        if self.start and name.partition(" ")[0] == self.name(self.start[0]).partition(" ")[0]:
            return [document, *self.end]
        before = next((events for beginning, events in self.before.items() if name.startswith(beginning)), ())
        return [*self.start, *before, document, *self.end]

    def name(self, event: Any) -> str:
        kind = event.get("type") or event.get("event_type") or next(iter(event), "")
        inner = event.get("delta")
        return f"{kind} {inner.get('type') if isinstance(inner, dict) else ''}"


# -- the SDKs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Messages:
    """Gives a request's messages the role that their parts need, and a content to those that have none."""

    messages: str
    content: str
    roles: Mapping[str, str] = {}  #: by the type of a block, or by a member of a block or of the message
    empty: Any = "y"  #: the content of a message without one: a text, or the only item of a list

    def __call__(self, document: Any) -> list[Any]:
        if not isinstance(document.get(self.messages), list):
            return [document]
        messages = [dict(message) for message in document[self.messages]]
        for message in messages:
            if "role" in message and not message.get(self.content):
                message[self.content] = self.empty if isinstance(self.empty, str) else [self.empty]
            blocks = message[self.content] if isinstance(message.get(self.content), list) else []
            names = [name for block in [message, *blocks] for name in (block.get("type"), *block)]
            if role := next((self.roles[name] for name in names if name in self.roles), None):
                message["role"] = role
        return [{**document, self.messages: messages}]


def anthropic() -> Compared:
    message = {"type": "message", "role": "assistant", "id": "m", "model": "m", "content": [], "stop_reason": None}
    message |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    call = {"type": "tool_use", "id": "t", "name": "x", "input": {}}
    opened = {"thinking_delta": thinking, "signature_delta": thinking, "input_json_delta": call}
    opened |= {"compaction_delta": {"type": "compaction", "content": ""}, "": {"type": "text", "text": ""}}
    before = {
        f"content_block_delta {delta}": ({"type": "content_block_start", "index": 0, "content_block": block},)
        for delta, block in opened.items()
    }

    roles = Messages("messages", "content", dict.fromkeys(("thinking", "redacted_thinking", "tool_use"), "assistant"))
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    stream = Stream(({"type": "message_start", "message": message},), (end, {"type": "message_stop"}), before)
    headers = frozenset({"betas", "user_profile_id", "workspace_id"})
    return Compared("anthropic", version("anthropic"), "anthropic", [
        Schemas("stream", _schema(beta.BetaRawMessageStreamEvent), stream),
        Schemas("response", _schema(beta.BetaMessage), values={"stop_reason": "end_turn"}),
        Schemas("request", _schema(MessageCreateParams), roles, headers),
    ])  # fmt: skip


def openai_responses() -> Compared:
    response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}

    def added(kind: str, *then: Any, **members: Any) -> tuple[Any, ...]:
        item = {"id": "x", "type": kind, "status": "in_progress", **members}
        return {"type": "response.output_item.added", "output_index": 0, "item": item}, *then

    def part(kind: str, event: str, place: str) -> Any:
        part = {"type": kind, "text": ""}
        return {"type": event, "output_index": 0, "item_id": "x", place: 0, "part": part}

    message = added("message", role="assistant", content=[])
    call = {"call_id": "c", "name": "f"}
    before = {
        "response.output_text": (*message, part("output_text", "response.content_part.added", "content_index")),
        "response.refusal": (*message, part("refusal", "response.content_part.added", "content_index")),
        "response.content_part": message,
        "response.reasoning_summary_part.added": added("reasoning", summary=[]),
        "response.reasoning_summary": added(
            "reasoning", part("summary_text", "response.reasoning_summary_part.added", "summary_index"), summary=[]
        ),
        "response.reasoning_text": added(
            "reasoning", part("reasoning_text", "response.content_part.added", "content_index"), summary=[]
        ),
        "response.function_call": added("function_call", arguments="", **call),
        "response.custom_tool_call": added("custom_tool_call", input="", **call),
        **{f"response.{kind}": added(kind) for kind in ("mcp_call", "mcp_list_tools", "web_search_call", "shell_call")},
    }
    stream = Stream(
        ({"type": "response.created", "response": response},),
        ({"type": "response.completed", "response": {**response, "status": "completed"}},),
        before,
    )
    return Compared("openai", version("openai"), "openai-responses", [
        Schemas("stream", _schema(responses.ResponsesServerEvent), stream),
        Schemas("response", _schema(responses.Response), values={"status": "completed"}),
        Schemas("request", _schema(ResponseCreateParams), Messages("input", "content")),
    ])  # fmt: skip


def openai_chat() -> Compared:
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end = {"index": 0, "finish_reason": "stop"}
    whole = {"choices": [{**end, "message": {"role": "assistant", "content": "x"}}]}
    return Compared("openai", version("openai"), "openai-chat", [
        Schemas("stream", _schema(chat.ChatCompletionChunk), Stream((), ({**chunk, "choices": [{**end, "delta": {}}]},))),
        Schemas("response", _schema(chat.ChatCompletion), values=whole),
        Schemas("request", _schema(CompletionCreateParams), Messages("messages", "content")),
    ])  # fmt: skip


def gemini() -> Compared:
    request = TypedDict("request", {  # the SDK's own config has other names than the wire  # noqa: UP013
        "contents": typing.Required[list[types.Content]], "systemInstruction": types.Content,
        "tools": list[types.Tool], "toolConfig": types.ToolConfig, "safetySettings": list[types.SafetySetting],
        "generationConfig": types.GenerationConfig, "cachedContent": str,
    }, total=False)  # fmt: skip
    roles = Messages("contents", "parts", {"functionCall": "model"}, {"text": "y"})
    said = {"content": {"role": "model", "parts": [{"text": "x"}]}}
    end = {"candidates": [{**said, "finishReason": "STOP"}]}
    own = frozenset({"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"})
    part = {"Part": ("thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution")}
    answer = _schema(types.GenerateContentResponse, part)
    return Compared("google-genai", version("google-genai"), "gemini", [
        Schemas("stream", answer, Stream(({"candidates": [said]},), (end,)), own),
        Schemas("response", answer, left_out=own, values=end | {"finishReason": "STOP"}),
        Schemas("request", _schema(request, {**part, "Tool": ()}), roles, values={"name": "f", "data": "aGk="}),
    ])  # fmt: skip


def gemini_interactions() -> Compared:
    interaction = {"id": "x", "object": "interaction", "model": "m"}
    start = {"event_type": "interaction.created", "interaction": {**interaction, "status": "in_progress"}}
    end = {"event_type": "interaction.completed", "interaction": {**interaction, "status": "completed"}}
    events, own = _schema(interactions.InteractionSSEEvent), frozenset({"UNKNOWN"})
    deltas = [each["properties"]["type"]["const"] for name, each in events["$defs"].items() if name.endswith("Delta")
              and "const" in each.get("properties", {}).get("type", {})]  # fmt: skip
    repeated = frozenset({"input", "tools"})  # a response repeats its request
    steps = {kind: {"type": kind} for kind in deltas if kind.endswith(("_call", "_result"))}
    steps |= {"arguments_delta": {"type": "function_call", "id": "c", "name": "f", "arguments": {}}}
    steps |= {"thought_": {"type": "thought"}, "": {"type": "model_output"}}
    before = {
        f"step.delta {delta}": ({"event_type": "step.start", "index": 0, "step": step},)
        for delta, step in steps.items()
    }
    return Compared("google-genai", version("google-genai"), "gemini-interactions", [
        Schemas("stream", events, Stream((start,), (end,), before), own),
        Schemas("response", _schema(interactions.Interaction), left_out=own | repeated, values={"status": "completed"}),
        Schemas("request", _schema(interactions.CreateModelInteraction), left_out=own),
    ])  # fmt: skip


def mistral() -> Compared:
    choice = {"index": 0, "finish_reason": "stop"}
    end = {"id": "x", "model": "m", "choices": [{**choice, "delta": {"content": ""}}]}
    whole = {"choices": [{**choice, "message": {"role": "assistant", "content": "x"}}]}
    thought = {"thinking": [{"type": "text", "text": "x"}]}
    own = frozenset({"UNKNOWN"})  # how the SDK reads types that it does not know itself
    return Compared("mistralai", version("mistralai"), "mistral", [
        Schemas("stream", _schema(models.CompletionChunk), Stream((), (end,)), own),
        Schemas("response", _schema(models.ChatCompletionResponse), left_out=own, values=whole),
        Schemas("request", _schema(models.ChatCompletionRequest), Messages("messages", "content"), own, thought),
    ])  # fmt: skip


def cohere() -> Compared:
    hints = typing.get_type_hints(cohere_sdk.ClientV2.chat, include_extras=True)
    needed = {"model", "messages"}
    request = TypedDict("request", {  # type: ignore[operator]
        name: typing.Required[hint] if name in needed else hint
        for name, hint in hints.items() if name not in {"return", "request_options"}
    }, total=False)  # fmt: skip
    message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    block = {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}}
    called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    call = {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": called}}}
    before = {"content-delta": (block,), "content-end": (block,), "citation": (block,)}
    before |= {"tool-call-delta": (call,), "tool-call-end": (call,)}
    stream = Stream(
        ({"type": "message-start", "id": "x", "delta": {"message": message}},),
        ({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},),
        before,
    )
    return Compared("cohere", version("cohere"), "cohere", [
        Schemas("stream", _schema(cohere_sdk.V2ChatStreamResponse), stream),
        Schemas("response", _schema(cohere_sdk.V2ChatResponse)),
        Schemas("request", _schema(request)),
    ])  # fmt: skip


def ollama() -> Compared:
    answer = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "role": "assistant"}
    request = {"model": "m", "messages": [{"role": "user", "content": "x"}], "role": "user", "name": "f"}
    roles = Messages("messages", "content", {"thinking": "assistant", "tool_calls": "assistant", "tool_name": "tool"})
    return Compared("ollama", version("ollama"), "ollama", [
        Schemas("stream", _schema(ChatResponse), left_out=frozenset({"value"}), values=answer),
        Schemas("response", _schema(ChatResponse), left_out=frozenset({"value"}), values=answer),
        Schemas("request", _schema(ChatRequest), roles, frozenset({"value"}), request),
    ])  # fmt: skip


def bedrock() -> Compared:
    model = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    converse, streamed = model.operation_model("Converse"), model.operation_model("ConverseStream")
    made: dict[str, Any] = {}
    words = {"integer": "integer", "long": "integer", "float": "number", "double": "number", "boolean": "boolean"}

    def made_of(shape: Any) -> Mapping[str, Any]:
        if shape.type_name == "list":
            return {"type": "array", "items": made_of(shape.member)}
        if shape.type_name == "map":
            return {"type": "object", "additionalProperties": made_of(shape.value)}
        if shape.type_name != "structure" or getattr(shape, "is_document_type", False):
            name = "data" if shape.type_name == "blob" else ""
            typed = (
                {"type": "object"} if shape.type_name == "structure" else {"type": words.get(shape.type_name, "string")}
            )
            return (
                typed
                | ({"const": VALUES[name]} if name else {})
                | ({"enum": shape.enum} if getattr(shape, "enum", ()) else {})
            )
        if shape.name not in made:
            made[shape.name] = {}
            made[shape.name] = {
                "properties": {
                    name: made_of(each)
                    for name, each in shape.members.items()
                    if each.serialization.get("location") not in {"uri", "header"}
                },
                "required": shape.required_members,
            }
            if shape.is_tagged_union or shape.name == "ConverseStreamOutput":
                made[shape.name]["x-union"] = list(shape.members)
        return {"$ref": f"#/$defs/{shape.name}"}

    start, end = {"messageStart": {"role": "assistant"}}, {"messageStop": {"stopReason": "end_turn"}}
    output = streamed.output_shape.members["stream"]
    roles = Messages("messages", "content", dict.fromkeys(("toolUse", "reasoningContent"), "assistant"), {"text": "y"})
    messages = {"messages": [{"role": "user", "content": [{"text": "x"}]}], "uri": "s3://bucket/key"}
    return Compared("botocore", version("botocore"), "bedrock", [
        Schemas("stream", {**made_of(output), "$defs": made}, Stream((start,), (end,))),
        Schemas("response", {**made_of(converse.output_shape), "$defs": made}, values={"stopReason": "end_turn"}),
        Schemas("request", {**made_of(converse.input_shape), "$defs": made}, roles, values=messages),
    ])  # fmt: skip


def _of_npm(package: str, folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the version and the schemas of a package of npm. Raises FileNotFoundError if it is not installed."""
    installed = json.loads((folder / "node_modules" / package / "package.json").read_text("utf-8"))["version"]
    script = Path(__file__).with_name("drift_schemas.mjs")
    command = [shutil.which("node") or "node", script, folder, package]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return installed, json.loads(done.stdout)


def ai_sdk() -> Compared:
    number, made = _of_npm("ai", TESTS / "gateway" / "clients" / "ai_sdk")
    text = ({"type": "text-start", "id": "x"},)
    before = {"text-delta": text, "text-end": text, "reasoning-": ({"type": "reasoning-start", "id": "x"},)}
    before |= {"tool-input-delta": ({"type": "tool-input-start", "toolCallId": "x", "toolName": "x"},)}
    return Compared("ai", number, "ai-sdk", [
        Schemas("stream", made["stream"], Stream(({"type": "start"},), ({"type": "finish"},), before))
    ])  # fmt: skip


def ag_ui() -> Compared:
    number, made = _of_npm("@ag-ui/core", TESTS / "clients" / "ag_ui")
    text = ({"type": "TEXT_MESSAGE_START", "messageId": "x", "role": "assistant"},)
    thought = ({"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning"},)
    call = ({"type": "TOOL_CALL_START", "toolCallId": "x", "toolCallName": "x"},)
    before = {"TEXT_MESSAGE_CONTENT": text, "TEXT_MESSAGE_END": text, "TOOL_CALL_ARGS": call, "TOOL_CALL_END": call}
    before |= {"REASONING_MESSAGE_CONTENT": thought, "REASONING_MESSAGE_END": thought}
    run = {"threadId": "x", "runId": "x"}
    stream = Stream(({"type": "RUN_STARTED", **run},), ({"type": "RUN_FINISHED", **run},), before)
    return Compared("@ag-ui/core", number, "ag-ui", [
        Schemas("stream", made["stream"], stream),
        Schemas("request", made["request"]),
    ])  # fmt: skip


#: Most important first: what agents of the year speak.
SDKS: Final[Sequence[Callable[[], Compared]]] = (
    anthropic, openai_responses, openai_chat, gemini, gemini_interactions, bedrock, mistral, cohere, ollama, ag_ui, ai_sdk
)  # fmt: skip
