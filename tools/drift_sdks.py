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
    left_out: Collection[str] = ()  #: types and members that an SDK keeps to itself, or sends as headers
    values: Mapping[str, Any] = {}  #: values of members that servers need where the SDK says less

    def variants(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the alternatives of a schema, without null."""
        while "$ref" in schema:
            *_, group, name = schema["$ref"].split("/")
            schema = {"title": name, **self.root[group][name]}
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

    def tag_of(self, members: Mapping[str, Any]) -> str:
        """Return the member that names the type of an object, for which its schema has one word only; "" if there is none."""
        for tag in TAGS:
            variants = list(self.variants(members[tag])) if tag in members else []
            if len(variants) == 1 and ("const" in variants[0] or len(variants[0].get("enum", ())) == 1):
                return tag
        return ""

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
            needed = {*schema.get("required", ()), *self.values, self.tag_of(members)}
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

    start: Any = None
    end: Any = None
    #: The event that opens the block of a delta, by the delta's type. Decoders open the blocks of other deltas themselves.
    before: Mapping[str, Any] = {}

    def __call__(self, document: Any) -> list[Any]:
        is_start = self.start is not None and _name(document) == _name(self.start)
        delta = document.get("delta")
        opened = self.before.get(delta.get("type")) if isinstance(delta, dict) else None
        events = [document, self.end] if is_start else [self.start, opened, document, self.end]
        return [event for event in events if event is not None]


def _name(event: Any) -> str:
    return event.get("type") or event.get("event_type") or next(iter(event), "")


@attrs.frozen
class Roles:
    """Gives the messages of a request the role that their parts need."""

    parts: str  #: the member of a message that has its parts
    roles: Mapping[str, str]  #: by the type of a part, or by a member of a part or of the message

    def __call__(self, document: Any) -> list[Any]:
        document = json.loads(json.dumps(document))  # a copy
        messages = document.get("messages", document.get("contents"))
        for message in messages if isinstance(messages, list) else ():
            parts = message[self.parts] if isinstance(message.get(self.parts), list) else []
            names = [name for part in [message, *parts] for name in (part.get("type"), *part)]
            message.update([("role", self.roles[name]) for name in names if name in self.roles][:1])
        return [document]


# -- the SDKs ----------------------------------------------------------------------------------------------------------


def anthropic() -> Compared:
    message = {"type": "message", "role": "assistant", "id": "m", "model": "m", "content": [], "stop_reason": None}
    message |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    opened = {
        "input_json_delta": {"type": "tool_use", "id": "t", "name": "x", "input": {}},
        "compaction_delta": {"type": "compaction", "content": ""},
    }
    before = {name: {"type": "content_block_start", "index": 0, "content_block": opened[name]} for name in opened}
    roles = Roles("content", dict.fromkeys(("thinking", "redacted_thinking", "tool_use"), "assistant"))
    headers = {"betas", "user_profile_id", "workspace_id"}
    return Compared("anthropic", version("anthropic"), "anthropic", [
        Schemas("stream", _schema(beta.BetaRawMessageStreamEvent),
                Stream({"type": "message_start", "message": message}, end, before)),
        Schemas("response", _schema(beta.BetaMessage), values={"stop_reason": "end_turn"}),
        Schemas("request", _schema(MessageCreateParams), roles, headers),
    ])  # fmt: skip


def openai_responses() -> Compared:
    response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
    start = {"type": "response.created", "response": response}
    end = {"type": "response.completed", "response": {**response, "status": "completed"}}
    return Compared("openai", version("openai"), "openai-responses", [
        Schemas("stream", _schema(responses.ResponsesServerEvent), Stream(start, end)),
        Schemas("response", _schema(responses.Response), values={"status": "completed"}),
        Schemas("request", _schema(ResponseCreateParams)),
    ])  # fmt: skip


def openai_chat() -> Compared:
    whole = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}]}
    return Compared("openai", version("openai"), "openai-chat", [
        Schemas("stream", _schema(chat.ChatCompletionChunk)),
        Schemas("response", _schema(chat.ChatCompletion), values=whole),
        Schemas("request", _schema(CompletionCreateParams)),
    ])  # fmt: skip


def gemini() -> Compared:
    request = TypedDict("request", {  # the SDK's own config has other names than the wire  # noqa: UP013
        "contents": typing.Required[list[types.Content]], "systemInstruction": types.Content,
        "tools": list[types.Tool], "toolConfig": types.ToolConfig, "safetySettings": list[types.SafetySetting],
        "generationConfig": types.GenerationConfig, "cachedContent": str,
    }, total=False)  # fmt: skip
    own = {"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed"}
    part = {"Part": ("thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution")}
    answer = _schema(types.GenerateContentResponse, part)
    roles = Roles("parts", {"functionCall": "model"})
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}]}
    return Compared("google-genai", version("google-genai"), "gemini", [
        Schemas("stream", answer, Stream(end=said), own),
        Schemas("response", answer, left_out=own, values=said),
        Schemas("request", _schema(request, {**part, "Tool": ()}), roles, values={"name": "f"}),
    ])  # fmt: skip


def gemini_interactions() -> Compared:
    interaction = {"id": "x", "object": "interaction", "model": "m", "status": "in_progress"}
    start = {"event_type": "interaction.created", "interaction": interaction}
    end = {"event_type": "interaction.completed", "interaction": {**interaction, "status": "completed"}}
    events, own = _schema(interactions.InteractionSSEEvent), {"UNKNOWN"}
    types = [each["properties"].get("type", {}) for each in events["$defs"].values() if "properties" in each]
    kinds = [each["const"] for each in types if each.get("const", "").endswith(("_call", "_result"))]
    steps: dict[str, Any] = {kind: {"type": kind} for kind in kinds}
    steps |= {"arguments_delta": {"type": "function_call", "id": "c", "name": "f", "arguments": {}}}
    before = {delta: {"event_type": "step.start", "index": 0, "step": steps[delta]} for delta in steps}
    repeated = {"input", "tools"}  # a response repeats its request
    return Compared("google-genai", version("google-genai"), "gemini-interactions", [
        Schemas("stream", events, Stream(start, end, before), own),
        Schemas("response", _schema(interactions.Interaction), left_out=own | repeated, values={"status": "completed"}),
        Schemas("request", _schema(interactions.CreateModelInteraction), left_out=own),
    ])  # fmt: skip


def mistral() -> Compared:
    own = {"UNKNOWN"}  # how the SDK reads types that it does not know itself
    thought = {"thinking": [{"type": "text", "text": "x"}]}
    return Compared("mistralai", version("mistralai"), "mistral", [
        Schemas("stream", _schema(models.CompletionChunk), left_out=own),
        Schemas("response", _schema(models.ChatCompletionResponse), left_out=own),
        Schemas("request", _schema(models.ChatCompletionRequest), left_out=own, values=thought),
    ])  # fmt: skip


def cohere() -> Compared:
    hints = typing.get_type_hints(cohere_sdk.ClientV2.chat, include_extras=True)
    needed = {"model", "messages"}
    request = TypedDict("request", {  # type: ignore[operator]
        name: typing.Required[hint] if name in needed else hint
        for name, hint in hints.items() if name not in {"return", "request_options"}
    }, total=False)  # fmt: skip
    message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    start = {"type": "message-start", "id": "x", "delta": {"message": message}}
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    return Compared("cohere", version("cohere"), "cohere", [
        Schemas("stream", _schema(cohere_sdk.V2ChatStreamResponse), Stream(start, end)),
        Schemas("response", _schema(cohere_sdk.V2ChatResponse)),
        Schemas("request", _schema(request)),
    ])  # fmt: skip


def ollama() -> Compared:
    answer, own = {"model": "m", "done": True, "role": "assistant"}, {"value"}
    request = {"messages": [{"role": "user", "content": "x"}], "role": "user", "name": "f"}
    roles = Roles("content", {"thinking": "assistant", "tool_calls": "assistant", "tool_name": "tool"})
    return Compared("ollama", version("ollama"), "ollama", [
        Schemas("stream", _schema(ChatResponse), left_out=own, values=answer),
        Schemas("response", _schema(ChatResponse), left_out=own, values=answer),
        Schemas("request", _schema(ChatRequest), roles, own, request),
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
        if shape.type_name == "blob":
            return {"const": VALUES["data"]}
        if shape.type_name != "structure":
            return {"type": words.get(shape.type_name, "string"), "enum": getattr(shape, "enum", ())}
        if shape.is_document_type:
            return {"type": "object"}
        if shape.name not in made:
            made[shape.name] = {}  # some shapes contain themselves
            sent = {name: each for name, each in shape.members.items() if "location" not in each.serialization}
            properties = {name: made_of(each) for name, each in sent.items()}
            made[shape.name] |= {"properties": properties, "required": shape.required_members}
            if shape.is_tagged_union or shape.name == "ConverseStreamOutput":
                made[shape.name]["x-union"] = list(shape.members)
        return {"$ref": f"#/$defs/{shape.name}"}

    stream = Stream({"messageStart": {"role": "assistant"}}, {"messageStop": {"stopReason": "end_turn"}})
    roles = Roles("content", dict.fromkeys(("toolUse", "reasoningContent"), "assistant"))
    asked = {"messages": [{"role": "user", "content": [{"text": "x"}]}], "uri": "s3://bucket/key"}
    return Compared("botocore", version("botocore"), "bedrock", [
        Schemas("stream", {**made_of(streamed.output_shape.members["stream"]), "$defs": made}, stream),
        Schemas("response", {**made_of(converse.output_shape), "$defs": made}),
        Schemas("request", {**made_of(converse.input_shape), "$defs": made}, roles, values=asked),
    ])  # fmt: skip


def _of_npm(package: str, folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the version and the schemas of a package of npm. Raises FileNotFoundError if it is not installed."""
    installed = json.loads((folder / "node_modules" / package / "package.json").read_text("utf-8"))["version"]
    command = [shutil.which("node") or "node", Path(__file__).with_name("drift_schemas.mjs"), folder, package]
    return installed, json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def ai_sdk() -> Compared:
    number, made = _of_npm("ai", TESTS / "gateway" / "clients" / "ai_sdk")
    return Compared(
        "ai", number, "ai-sdk", [Schemas("stream", made["stream"], Stream({"type": "start"}, {"type": "finish"}))]
    )


def ag_ui() -> Compared:
    number, made = _of_npm("@ag-ui/core", TESTS / "clients" / "ag_ui")
    run = {"threadId": "x", "runId": "x"}
    stream = Stream({"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run})
    schemas = [Schemas("stream", made["stream"], stream), Schemas("request", made["request"])]
    return Compared("@ag-ui/core", number, "ag-ui", schemas)


#: Most important first: what agents of the year speak.
SDKS: Final[Sequence[Callable[[], Compared]]] = (
    anthropic, openai_responses, openai_chat, gemini, gemini_interactions, bedrock, mistral, cohere, ollama, ag_ui, ai_sdk
)  # fmt: skip
