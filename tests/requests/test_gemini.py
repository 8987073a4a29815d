"""Requests to Gemini's ``generateContent``, both directions: each row of dialects.md §5.3, §7.3 and §7.4 that concerns them."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.translation.bodies import decode_request, decode_response
from streamkit.translation.tool_loop import request_with_results
from tests.requests.rows import NONE, Dialect, Row, by_model, by_system, by_user, parameters, rows

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
OPENAPI = {"type": "OBJECT", "properties": {"q": {"type": "STRING", "nullable": True}}, "required": ["q"]}
AS_JSON_SCHEMA = {"type": "object", "properties": {"q": {"type": ["string", "null"]}}, "required": ["q"]}
PNG, PDF = "iVBORw0KGgo=", "JVBERi0="
FILE = "https://generativelanguage.googleapis.com/v1beta/files/abc"
GOOGLE = Opaque("google", "QUJD")
CLAUDE = Opaque("anthropic", "S")
HI = {"role": "user", "parts": [{"text": "Hi"}]}
USER = by_user(Text("Hi"))

GEMINI = Dialect(
    "gemini",
    {"contents": [HI]},
    Request("gemini", None, [USER]),
    Request("openai-chat", "m", [USER]),
    {"linked_media": "drop"},
)


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def call(name: str = "look", args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"q": 1} if args is None else args, **more}}


def answer(response: Any = None, name: str = "look", **more: Any) -> dict[str, Any]:
    return {
        "functionResponse": {"name": name, "response": {"output": "done"} if response is None else response, **more}
    }


def answered(*responses: dict[str, Any]) -> list[dict[str, Any]]:
    """A history with a call for each response."""
    calls = [call(id=response["functionResponse"]["id"]) for response in responses]
    return [HI, model(*calls), user(*responses)]


def result(*texts: str, call_id: str = "a", **more: Any) -> ToolResult:
    return ToolResult(call_id, [Text(text) for text in texts], "look", **more)


# -- contents, both ways -----------------------------------------------------------------------------------------------

CODE = {"executableCode": {"language": "PYTHON", "code": "1 + 1", "id": "c"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "c"}}
SEARCHED = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}, "thoughtSignature": "QUJD"}

#: Contents, and the turns that they are.
CONTENTS: dict[str, tuple[list[dict[str, Any]], list[Turn]]] = {
    "text": ([HI], [by_user(Text("Hi"))]),
    "several parts": ([user({"text": "a"}, {"text": "b"})], [by_user(Text("a"), Text("b"))]),
    "neighbours of the user": ([HI, HI], [by_user(Text("Hi")), by_user(Text("Hi"))]),
    "a prefill": ([HI, model({"text": "So"})], [by_user(Text("Hi")), by_model(Text("So"))]),
    "a part with more": ([user({"text": "a", "partMetadata": {"x": 1}})], [by_user(Text("a", extras={"partMetadata": {"x": 1}}))]),
    "an image": (
        [user({"inlineData": {"mimeType": "image/png", "data": PNG}, "mediaResolution": {"level": "LOW"}})],
        [by_user(Media("image", "image/png", PNG, extras={"mediaResolution": {"level": "LOW"}}))],
    ),
    "a named file": (
        [user({"inlineData": {"mimeType": "application/pdf", "data": PDF, "displayName": "a.pdf"}})],
        [by_user(Media("file", "application/pdf", PDF, name="a.pdf"))],
    ),
    "a sound": ([user({"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}})], [by_user(Media("audio", "audio/wav", "AAAA"))]),
    "a film elsewhere": (
        [user({"fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 2}})],
        [by_user(Media("video", "video/mp4", url="https://youtu.be/x", extras={"videoMetadata": {"fps": 2}}))],
    ),
    "a film without a type": (
        [user({"fileData": {"fileUri": "https://www.youtube.com/watch?v=x"}})],
        [by_user(Media("video", url="https://www.youtube.com/watch?v=x"))],
    ),
    "a file that Google keeps": (
        [user({"fileData": {"fileUri": FILE}}, {"fileData": {"fileUri": "gs://b/o", "mimeType": "text/csv"}})],
        [by_user(Media("file", file_id=FILE), Media("file", "text/csv", file_id="gs://b/o"))],
    ),
    "thoughts": (
        [model({"text": "hm", "thought": True}, {"text": "", "thought": True, "thoughtSignature": "QUJD"})],
        [by_model(Reasoning("hm", "summary"), Reasoning("", "summary", GOOGLE))],
    ),
    "signed text": (
        [model({"text": "a", "thoughtSignature": "QUJD"}, {"text": "", "thoughtSignature": "-_8"}, {"text": "b"})],
        [by_model(Text("a", GOOGLE), Text("", Opaque("google", "-_8")), Text("b"))],
    ),
    "calls, signed and not": (
        [model(
            {**call(id="a"), "thoughtSignature": "QUJD"}, call("list", {}, id="b", willContinue=False),
            {**call(id="c"), "partMetadata": {"x": 1}},
        )],
        [by_model(
            ToolCall(0, "a", "look", '{"q":1}', signature=GOOGLE), ToolCall(1, "b", "list", "{}", extras={"willContinue": False}),
            ToolCall(2, "c", "look", '{"q":1}'), Aside("google", "metadata", "part.partMetadata", {"x": 1}),
        )],
    ),
    "results": (
        [
            model(call(id="a"), call(id="b"), call(id="c"), call(id="d"), call(id="e")),
            user(
                answer(id="a"), answer({"error": "no"}, id="b"), answer({"result": "yes"}, id="c", scheduling="SILENT"),
                answer({"output": ["x", ""]}, id="d"), answer({"output": ""}, id="e"), {"text": "and?"},
            ),
        ],
        [
            by_model(*[ToolCall(number, each, "look", '{"q":1}') for (number, each) in enumerate("abcde")]),
            by_user(
                result("done"), result("no", call_id="b", is_error=True), result("yes", call_id="c", extras={"scheduling": "SILENT"}),
                result("x", "", call_id="d"), result(call_id="e"), Text("and?"),
            ),
        ],
    ),
    "results that are objects": (
        [
            model(call(id="a"), call(id="b"), call(id="c"), call(id="d"), call(id="e")),
            user(
                answer({"temperature": 5, "unit": "C"}, id="a"), answer({"error": {"code": 7}}, id="b"), answer({"output": 5}, id="c"),
                answer({}, id="d"), answer({"output": '{"x":1}'}, id="e"),
            ),
        ],
        [
            by_model(*[ToolCall(number, each, "look", '{"q":1}') for (number, each) in enumerate("abcde")]),
            by_user(
                result('{"temperature":5,"unit":"C"}'), result('{"error":{"code":7}}', call_id="b", is_error=True),
                result('{"output":5}', call_id="c"), result(call_id="d"), result('{"x":1}', call_id="e"),
            ),
        ],
    ),
    "media in a result": (
        answered(answer(id="a", parts=[{"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "x"}}, {"fileData": {"fileUri": "https://x/y", "mimeType": "image/png"}}, {"hologram": {}}]))[1:],
        [by_model(ToolCall(0, "a", "look", '{"q":1}')), by_user(ToolResult(
            "a",
            [
                Text("done"), Media("image", "image/png", PNG, name="x"), Media("image", "image/png", url="https://x/y"),
                Aside("google", "unknown_event", "part", {"hologram": {}}),
            ],
            "look",
        ))],
    ),
    "what Google runs itself": ([model(CODE, RAN, SEARCHED, answer(id="z")), user(RAN)], [
        by_model(*[Aside("google", "server_tool", "part", part) for part in (CODE, RAN, SEARCHED, answer(id="z"))]),
        by_user(Aside("google", "server_tool", "part", RAN)),
    ]),
    "an unknown part": ([user({"hologram": {"x": 1}})], [by_user(Aside("google", "unknown_event", "part", {"hologram": {"x": 1}}))]),
    "a content with more": ([{**HI, "x": 1}], [by_user(Text("Hi"), extras={"x": 1})]),
}  # fmt: skip

#: Contents that say the same as others, which are written.
ALIKE: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "no role": ([{"parts": [{"text": "Hi"}]}], [HI]),
    "the older role of results": ([HI, model(call(id="a")), {"role": "function", "parts": [answer(id="a")]}], answered(answer(id="a"))),
    "a stream's chunks": (
        [
            HI, model({"text": "a"}), model({**call(id="a"), "thoughtSignature": "QUJD"}), model({"text": ""}), {"role": "model"},
            user(answer(id="a")),
        ],
        [HI, model({"text": "a"}, {**call(id="a"), "thoughtSignature": "QUJD"}), user(answer(id="a"))],
    ),
    "the protocol's names": (
        [
            user({"inline_data": {"mime_type": "image/png", "data": PNG}}, {"file_data": {
                "file_uri": "https://x/y", "mime_type": "image/png", "display_name": "y",
            }}),
            model({"function_call": {"name": "look", "args": {"a_b": 1}, "id": "a"}, "thought_signature": "QUJD"}),
            user({"function_response": {"name": "look", "response": {"a_b": {"c_d": 1}}, "id": "a"}}),
        ],
        [
            user({"inlineData": {"mimeType": "image/png", "data": PNG}}, {"fileData": {
                "fileUri": "https://x/y", "mimeType": "image/png", "displayName": "y",
            }}),
            model({**call(args={"a_b": 1}, id="a"), "thoughtSignature": "QUJD"}), user(answer({"a_b": {"c_d": 1}}, id="a")),
        ],
    ),
    "the alphabet for URLs": ([user({"inlineData": {"mimeType": "image/png", "data": "-_8"}})], [user({"inlineData": {
        "mimeType": "image/png", "data": "+/8=",
    }})]),
    "what says nothing": (
        [user({"text": "Hi"}, {"text": ""}), model({"text": ""}, {"text": "a", "thought": False})], [HI, model({"text": "a"})],
    ),
    "a call without arguments": (
        [HI, model({"functionCall": {"name": "look", "id": "a"}}), user(answer(id="a"))],
        [HI, model(call(args={}, id="a")), user(answer(id="a"))],
    ),
    "a signature alone": ([model({"thoughtSignature": "QUJD"})], [model({"text": "", "thoughtSignature": "QUJD"})]),
    "a response that is missing": (
        [HI, model(call(id="a")), user({"functionResponse": {"name": "look", "id": "a"}})], answered(answer({}, id="a")),
    ),
}  # fmt: skip


# -- what was sealed ---------------------------------------------------------------------------------------------------


def sealed(kind: Any, *, thought: bool = True) -> dict[str, Any]:
    """A part as google-genai sends it back: base64 in the alphabet for URLs."""
    blob = base64.urlsafe_b64encode(base64.b64decode(seal(kind, "anthropic", "S?>~?>~"))).decode()
    return {"text": "", **({"thought": True} if thought else {}), "thoughtSignature": blob}


OTHERS = Opaque("anthropic", "S?>~?>~")

SEALED = [
    (
        [{"text": "h", "thought": True}, {"text": "m", "thought": True}, sealed("reasoning"), {"text": "a"}],
        [Reasoning("hm", "summary", OTHERS), Text("a")],
    ),
    (
        [{"text": "x", "partMetadata": {"y": 1}}, {"text": "a"}, sealed("text", thought=False)],
        [Text("x", extras={"partMetadata": {"y": 1}}), Text("a", OTHERS)],
    ),
    ([{"text": "a"}, sealed("reasoning")], [Text("a"), Reasoning("", "summary", OTHERS)]),
    ([{**sealed("reasoning"), "text": "hm"}], [Reasoning("hm", "summary", OTHERS)]),
    ([{"text": "a"}, sealed("part")], [Text("a"), Text("", OTHERS)]),
    ([sealed("opaque")], [RedactedReasoning(OTHERS)]),
    ([sealed("call"), call(id="a")], [ToolCall(0, "a", "look", '{"q":1}', signature=OTHERS)]),
    ([{**call(id="a"), "thoughtSignature": sealed("call")["thoughtSignature"]}], [ToolCall(0, "a", "look", '{"q":1}', signature=OTHERS)]),
    ([sealed("call"), {"text": "a"}], [Text("a"), RedactedReasoning(OTHERS)]),
]  # fmt: skip


# -- members -----------------------------------------------------------------------------------------------------------

SAFE = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
FUNCTION = {"name": "look", "description": "looks", "parametersJsonSchema": SCHEMA}
OLDER = {"name": "list", "parameters": OPENAPI, "response": OPENAPI, "behavior": "BLOCKING"}


def calling(**config: Any) -> dict[str, Any]:
    return {"toolConfig": {"functionCallingConfig": config}}


def configured(**config: Any) -> dict[str, Any]:
    return {"generationConfig": config}


#: Members of a body, and what they are in a request.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the system": ({"systemInstruction": {"parts": [{"text": "rules"}]}}, {"turns": [by_system(Text("rules")), by_user(Text("Hi"))]}),
    "the system in a role": (
        {"systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}], "role": "user", "x": 1}},
        {"turns": [by_system(Text("a"), Text("b"), native_role="user"), by_user(Text("Hi"))], "extras": {"systemInstruction": {"x": 1}}},
    ),
    "options": (
        configured(
            temperature=0.5, topP=1, topK=3, candidateCount=2, maxOutputTokens=9, stopSequences=["x"], seed=7, presencePenalty=0.1,
            frequencyPenalty=0.2, responseLogprobs=True, logprobs=2, speechConfig={"a_b": 1},
        ),
        {
            "options": Options(9, 0.5, 1, 3, ("x",), 7, 0.1, 0.2, 2, logprobs=True, top_logprobs=2),
            "extras": configured(speechConfig={"a_b": 1}),
        },
    ),
    "a tier": ({"serviceTier": "flex"}, {"options": Options(service_tier="flex")}),
    "a level of thinking": (
        configured(thinkingConfig={"thinkingLevel": "HIGH", "includeThoughts": True, "x": 1}),
        {"options": Options(thinking=Thinking("high", summary="auto")), "extras": configured(thinkingConfig={"x": 1})},
    ),
    "a budget of thinking": (
        configured(thinkingConfig={"thinkingBudget": 128, "includeThoughts": False}),
        {"options": Options(thinking=Thinking(budget_tokens=128, summary="none"))},
    ),
    "no thinking": (configured(thinkingConfig={"thinkingBudget": 0}), {"options": Options(thinking=Thinking(enabled=False))}),
    "as much thinking as it likes": (
        configured(thinkingConfig={"thinkingBudget": -1}), {"options": Options(thinking=Thinking(enabled=True))},
    ),
    "plain text": (configured(responseMimeType="text/plain"), {"options": Options(output=OutputFormat("text"))}),
    "JSON": (configured(responseMimeType="application/json"), {"options": Options(output=OutputFormat("json"))}),
    "a JSON schema": (
        configured(responseMimeType="application/json", responseJsonSchema={**SCHEMA, "$comment": "x"}),
        {"options": Options(output=OutputFormat("schema", {**SCHEMA, "$comment": "x"}))},
    ),
    "the older form of a schema": (
        configured(responseMimeType="application/json", responseSchema=OPENAPI),
        {"options": Options(output=OutputFormat("schema", AS_JSON_SCHEMA))},
    ),
    "an enumeration": (
        configured(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a"]}),
        {"extras": configured(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a"]})},
    ),
    "text of a schema": (
        configured(responseMimeType="text/plain", responseSchema={"type": "STRING"}),
        {"extras": configured(responseMimeType="text/plain", responseSchema={"type": "STRING"})},
    ),
    "functions": (
        {"tools": [{"functionDeclarations": [FUNCTION, OLDER, {"name": "stop"}]}]},
        {"tools": [
            Tool("look", "looks", SCHEMA), Tool("list", None, AS_JSON_SCHEMA, extras={"response": OPENAPI, "behavior": "BLOCKING"}),
            Tool("stop"),
        ]},
    ),
    "Google's own tools": (
        {"tools": [{"googleSearch": {}}, {"functionDeclarations": [FUNCTION]}, {"codeExecution": {}}]},
        {"tools": [
            Tool("googleSearch", kind="server", raw={"googleSearch": {}}), Tool("look", "looks", SCHEMA),
            Tool("codeExecution", kind="server", raw={"codeExecution": {}}),
        ]},
    ),
    "auto": (calling(mode="AUTO"), {"tool_choice": ToolChoice("auto")}),
    "none": (calling(mode="NONE"), {"tool_choice": ToolChoice("none")}),
    "any": (calling(mode="ANY"), {"tool_choice": ToolChoice("required")}),
    "one": (calling(mode="ANY", allowedFunctionNames=["look"]), {"tool_choice": ToolChoice("required", ("look",))}),
    "validated": (calling(mode="VALIDATED", allowedFunctionNames=["look", "list"]), {"tool_choice": ToolChoice(
        "auto", ("look", "list"), extras={"mode": "VALIDATED"},
    )}),
    "streamed arguments": (calling(mode="AUTO", streamFunctionCallArguments=True), {
        "tool_choice": ToolChoice("auto"), "extras": calling(streamFunctionCallArguments=True),
    }),
    "only streamed arguments": (calling(streamFunctionCallArguments=True), {"extras": calling(streamFunctionCallArguments=True)}),
    "a configuration without calls": (
        {"toolConfig": {"retrievalConfig": {"languageCode": "de"}}},
        {"extras": {"toolConfig": {"retrievalConfig": {"languageCode": "de"}}}},
    ),
    "members that are Google's own": (
        {"safetySettings": SAFE, "labels": {"a_b": "c"}, "store": False},
        {"extras": {"safetySettings": SAFE, "labels": {"a_b": "c"}, "store": False}},
    ),
    "members nobody knows": ({"x": {"y": 1}}, {"extras": {"x": {"y": 1}}}),
}  # fmt: skip

ALIKE_MEMBERS = [
    (
        {"system_instruction": {"parts": [{"text": "a"}]}, "safety_settings": SAFE, "cached_content": "c"},
        {"systemInstruction": {"parts": [{"text": "a"}]}, "safetySettings": SAFE, "cachedContent": "c"},
    ),
    (
        {"generation_config": {"max_output_tokens": 5, "thinking_config": {"thinking_level": "low"}}},
        configured(maxOutputTokens=5, thinkingConfig={"thinkingLevel": "LOW"}),
    ),
    (
        {"tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"a_b": 1}}], "google_search": {}}]},
        {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"a_b": 1}}]}, {"googleSearch": {}}]},
    ),
    (
        {"tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}}},
        calling(mode="ANY", allowedFunctionNames=["f"]),
    ),
    (
        {"tools": [{"functionDeclarations": [FUNCTION]}, {}, {"functionDeclarations": [{"name": "stop"}]}]},
        {"tools": [{"functionDeclarations": [FUNCTION, {"name": "stop"}]}]},
    ),
    (calling(mode="MODE_UNSPECIFIED"), calling(mode="AUTO")),
    (calling(allowedFunctionNames=["f"]), calling(mode="AUTO", allowedFunctionNames=["f"])),
    (calling(), {}),
    (configured(thinkingConfig={"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}), {}),
    (configured(responseSchema=OPENAPI), configured(responseMimeType="application/json", responseSchema=OPENAPI)),
    (configured(maxOutputTokens=5.0), configured(maxOutputTokens=5)),
    ({"model": "models/m", "systemInstruction": None}, {}),
]  # fmt: skip

OLDER_SCHEMAS = [
    (OPENAPI, AS_JSON_SCHEMA),
    (SCHEMA, SCHEMA),
    ({"type": "TYPE_UNSPECIFIED", "format": "int32"}, {"format": "int32"}),
    ({"type": "STRING", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"any_of": [{"type": "STRING"}], "nullable": True, "nullable_": 1}, {"anyOf": [{"type": "string"}, {"type": "null"}], "nullable_": 1}),
    ({"type": "STRING", "nullable": False}, {"type": "string"}),
    (
        {"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": "2", "max_items": 3, "minLength": "x"},
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3, "minLength": "x"},
    ),
    ({"defs": {"A": {"type": "NULL"}}, "items": {"ref": "#/defs/A"}}, {"$defs": {"A": {"type": "null"}}, "items": {"$ref": "#/$defs/A"}}),
    (
        {"properties": {"type": {"type": "STRING"}}, "additionalProperties": False, "example": 5},
        {"properties": {"type": {"type": "string"}}, "additionalProperties": False, "examples": [5]},
    ),
    ({"properties": 5, "type": 5, "ref": 5, "items": [True]}, {"properties": 5, "type": 5, "$ref": 5, "items": [True]}),
]  # fmt: skip


# -- what can't be -----------------------------------------------------------------------------------------------------


def parts(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"contents": [HI, {"role": role, "parts": list(parts)}]}


BAD = [
    ({"contents": ...}, "contents", "must be a list"),
    ({"contents": HI}, "contents", "must be a list, not an object"),
    ({"contents": ["Hi"]}, "contents[0]", "must be an object, not a string"),
    ({"contents": [{"role": "assistant", "parts": []}]}, "contents[0].role", "must be 'user' or 'model', not 'assistant'"),
    ({"contents": [{"role": 5, "parts": []}]}, "contents[0].role", "must be a string"),
    ({"contents": [{"parts": "Hi"}]}, "contents[0].parts", "must be a list"),
    (parts({"text": 5}), "contents[1].parts[0].text", "must be a string, not an integer"),
    (parts({"text": "a", "thought": 1}, role="model"), "contents[1].parts[0].thought", "must be a boolean"),
    (parts({"text": "a", "thought": True}), "contents[1].parts[0].thought", "must be in a content with the role 'model'"),
    (parts({"text": "a", "inlineData": {}}), "contents[1].parts[0]", "must have only one of text and inlineData"),
    (parts(call()), "contents[1].parts[0].functionCall", "must be in a content with the role 'model'"),
    (parts({"functionCall": 5}, role="model"), "contents[1].parts[0].functionCall", "must be an object"),
    (parts({"function_call": {"args": {}}}, role="model"), "contents[1].parts[0].function_call.name", "must be a string"),
    (parts(call(args=[1]), role="model"), "contents[1].parts[0].functionCall.args", "must be an object, not a list"),
    (parts({"functionResponse": {"response": {}}}), "contents[1].parts[0].functionResponse.name", "must be a string"),
    (parts(answer("done")), "contents[1].parts[0].functionResponse.response", "must be an object"),
    (
        parts(answer(parts=[{"inline_data": {"data": "?"}}])), "contents[1].parts[0].functionResponse.parts[0].inline_data.data",
        "must be base64",
    ),
    (parts({"inlineData": {"mimeType": "image/png"}}), "contents[1].parts[0].inlineData.data", "must be a string"),
    (
        parts({"inlineData": {"data": "data:image/png;base64,AAAA"}}), "contents[1].parts[0].inlineData.data",
        "must be base64 without a data: prefix",
    ),
    (parts({"fileData": {}}), "contents[1].parts[0].fileData.fileUri", "must be a string"),
    ({"systemInstruction": "rules"}, "systemInstruction", "must be an object, not a string"),
    ({"system_instruction": {"parts": [call()]}}, "system_instruction.parts[0].functionCall", "must be in a content with the role 'model'"),
    ({"generationConfig": []}, "generationConfig", "must be an object"),
    (configured(temperature="hot"), "generationConfig.temperature", "must be a number"),
    ({"generation_config": {"top_k": 1.5}}, "generation_config.top_k", "must be an integer"),
    (configured(stopSequences=[5]), "generationConfig.stopSequences[0]", "must be a string"),
    (
        configured(thinkingConfig={"thinkingLevel": "DEEP"}), "generationConfig.thinkingConfig.thinkingLevel",
        "must be one of HIGH, LOW, MEDIUM, MINIMAL, XHIGH, not 'DEEP'",
    ),
    (configured(responseMimeType="application/json", responseSchema=[]), "generationConfig.responseSchema", "must be an object"),
    ({"tools": [{"functionDeclarations": {}}]}, "tools[0].functionDeclarations", "must be a list"),
    ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name", "must be a string"),
    (
        {"tools": [{"functionDeclarations": [{"name": "f", "parameters": []}]}]}, "tools[0].functionDeclarations[0].parameters",
        "must be an object",
    ),
    (
        calling(mode="SOME"), "toolConfig.functionCallingConfig.mode",
        "must be one of MODE_UNSPECIFIED, VALIDATED, AUTO, NONE, ANY, not 'SOME'",
    ),
    ({"safetySettings": SAFE, "safety_settings": SAFE}, "safety_settings", "the member is also given as safetySettings"),
]  # fmt: skip


# -- what comes of other dialects --------------------------------------------------------------------------------------


CALLED = Turn("assistant", [ToolCall(0, "a", "look", '{"q": 1.0}')])


def with_result(*said: Any, **more: Any) -> list[Turn]:
    return [USER, CALLED, Turn("user", [ToolResult("a", list(said), **more)])]


def of_result(response: Any, **more: Any) -> list[dict[str, Any]]:
    written = {"id": "a", "name": "look", "response": response, **more}
    return [HI, model(call(id="a")), user({"functionResponse": written})]


#: Turns, the contents they become, and what is lost and mended on the way.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], list[tuple[str, str]], dict[str, int]]] = {
    "text": ([USER], [HI], [], {}),
    "a name": ([by_user(Text("Hi"), name="Bo")], [HI], [("turn_name", "Bo")], {}),
    "marks": (
        [by_user(Text("Hi", cache="short"), Media("image", "image/png", PNG, cache="long"))],
        [user({"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": PNG}})], [("cache_mark", "short"), ("cache_mark", "long")],
        {},
    ),
    "fields of another dialect": (
        [by_user(Text("Hi", extras={"x": 1}), extras={"y": 2})], [HI], [("metadata", "x"), ("metadata", "y")], {},
    ),
    "parts of another dialect": (
        [by_user(Text("Hi"), Aside("openai", "unknown_event", "content.x", {}))], [HI], [("unknown_event", "content.x")], {},
    ),
    "neighbours": (
        [USER, USER, by_model(Text("a")), by_model(Text("b"))], [user({"text": "Hi"}, {"text": "Hi"}), model({"text": "a"}, {"text": "b"})],
        [], {"turns_joined": 2},
    ),
    "nothing": (
        [USER, by_model(Text("")), by_model(), USER], [user({"text": "Hi"}, {"text": "Hi"})], [], {"turn_empty": 2, "turns_joined": 1},
    ),
    "a refusal": ([USER, by_model(Refusal("no"), Refusal(""))], [HI, model({"text": "no"})], [("refusal_as_text", "")], {"turn_empty": 1}),
    "media": (
        [by_user(
            Media("image", None, PNG, detail="auto"), Media("image", url="https://x/y.png", detail="low"),
            Media("file", "application/pdf", PDF, name="a.pdf"), Media("file", "text/csv", "AAAA"),
        )],
        [user(
            {"inlineData": {"mimeType": "image/png", "data": PNG}}, {"fileData": {"fileUri": "https://x/y.png"}},
            {"inlineData": {"mimeType": "application/pdf", "data": PDF}}, {"inlineData": {"mimeType": "text/csv", "data": "AAAA"}},
        )],
        [("metadata", "detail"), ("metadata", "name")], {},
    ),
    "media that nobody here takes": (
        [by_user(
            Text("Hi"), Media("file", None, "AAAA"), Media("file", "application/zip", "AAAA"), Media("file", file_id="f"),
            Media("image", url="s3://b/o"),
        )],
        [HI], [("media", "file"), ("media", "image"), ("media", "file"), ("media", "application/zip")], {},
    ),
    "thoughts of others": (
        [USER, by_model(
            Reasoning("hm", signature=CLAUDE, extras={"x": 1}), Reasoning("hm"), Reasoning("", signature=CLAUDE), RedactedReasoning(CLAUDE),
            Text("a", CLAUDE), Text("", CLAUDE),
        )],
        [HI, model({"text": "a"})],
        [
            ("reasoning_signature", "anthropic"), ("reasoning_history", ""), ("reasoning_history", ""),
            ("reasoning_signature", "anthropic"), ("reasoning_opaque", "anthropic"), ("reasoning_signature", "anthropic"),
            ("reasoning_signature", "anthropic"),
        ],
        {},
    ),
    "what Google signed": (
        [USER, by_model(
            Reasoning("hm", signature=GOOGLE), Text("a", GOOGLE), ToolCall(0, "a", "look", "{}", signature=GOOGLE),
            ToolCall(1, "b", "look", "{}", signature=CLAUDE),
        )],
        [HI, model(
            {"text": "hm", "thought": True, "thoughtSignature": "QUJD"}, {"text": "a", "thoughtSignature": "QUJD"},
            {**call(args={}, id="a"), "thoughtSignature": "QUJD"}, call(args={}, id="b"),
        )],
        [("reasoning_signature", "anthropic")], {},
    ),
    "arguments": (
        [USER, by_model(
            ToolCall(0, "a", "look", ""), ToolCall(1, "b", "look", '{"q": oops', cache="long", extras={"x": 1}),
            ToolCall(2, "c", "run", "1 + 1", "custom"),
        )],
        [HI, model(call(args={}, id="a"), call(args={"_raw_arguments": '{"q": oops'}, id="b"), call("run", {"input": "1 + 1"}, id="c"))],
        [("cache_mark", "long"), ("arguments_wrapped", "look"), ("metadata", "x"), ("custom_tool_wrapped", "run")], {},
    ),
    "a result": (with_result(Text("done")), of_result({"output": "done"}), [], {}),
    "a result that says nothing": (with_result(), of_result({"output": ""}), [], {}),
    "a result that is an object": (with_result(Text(' {"a": 1}')), of_result({"a": 1}), [], {}),
    "a result that is a list": (with_result(Text("[1]")), of_result({"output": "[1]"}), [], {}),
    "a result that is nearly an object": (with_result(Text('{"a": 1')), of_result({"output": '{"a": 1'}), [], {}),
    "an error": (with_result(Text('{"a": 1}'), is_error=True), of_result({"error": '{"a": 1}'}), [], {}),
    "a result of several texts": (with_result(Text("a"), Text("b")), of_result({"output": ["a", "b"]}), [], {}),
    "a result with more": (
        with_result(Text("done", cache="short", extras={"x": 1}), cache="long", extras={"y": 1}, native="content"),
        of_result({"output": "done"}), [("cache_mark", "long"), ("cache_mark", "short"), ("metadata", "x"), ("metadata", "y")], {},
    ),
    "media in a result": (
        with_result(
            Text("done"), Media("image", "image/png", PNG), Media("image", url="https://x/y.png"),
            Aside("anthropic", "unknown_event", "content.search_result", {}),
        ),
        [*of_result({"output": "done"})[:-1], user(
            {"functionResponse": {"id": "a", "name": "look", "response": {"output": "done"}}},
            {"inlineData": {"mimeType": "image/png", "data": PNG}},
        )],
        [("media", "image"), ("unknown_event", "content.search_result"), ("media", "moved after the result a")], {},
    ),
    "results behind text, and what follows": (
        [
            USER, by_model(ToolCall(0, "a", "look", "{}"), ToolCall(1, "b", "list", "{}")), by_user(ToolResult("b", [Text("2")])),
            by_user(Text("wait"), ToolResult("a", [Text("1")])),
        ],
        [HI, model(call(args={}, id="a"), call("list", {}, id="b")), user(
            answer({"output": "2"}, "list", id="b"), answer({"output": "1"}, id="a"), {"text": "wait"},
        )],
        [], {"result_moved": 1},
    ),
    "results and what follows in a turn of its own": (
        [*with_result(Text("done")), USER],
        [*of_result({"output": "done"})[:2], user(*of_result({"output": "done"})[2]["parts"], {"text": "Hi"})], [], {},
    ),
    "names": (
        [USER, by_model(ToolCall(0, "a", "my tool", "{}")), by_user(ToolResult("a", [Text("done")], "my tool"))],
        [HI, model(call("my_tool_XXExXLpG", {}, id="a")), user(answer(name="my_tool_XXExXLpG", id="a"))], [], {"name_rewritten": 1},
    ),
}  # fmt: skip

#: Options, the members they become, and the names of what is lost.
OPTIONS: dict[str, tuple[Options, dict[str, Any], list[str]]] = {
    "those with a field": (
        Options(9, 0.5, 1, 3, ("x",), 7, 0.1, 0.2, 2, logprobs=True, top_logprobs=2, native_max_tokens="max_tokens"),
        configured(
            maxOutputTokens=9, temperature=0.5, topP=1, topK=3, stopSequences=["x"], seed=7, presencePenalty=0.1, frequencyPenalty=0.2,
            candidateCount=2, responseLogprobs=True, logprobs=2,
        ),
        [],
    ),
    "the user": (Options(user="Bo"), {}, ["user"]),
    "a tier": (Options(service_tier="default"), {"serviceTier": "standard"}, []),
    "another tier": (Options(service_tier="auto"), {}, ["service_tier"]),
    "an effort": (Options(thinking=Thinking("low")), configured(thinkingConfig={"thinkingLevel": "LOW"}), []),
    "a greater effort": (Options(thinking=Thinking("max")), configured(thinkingConfig={"thinkingLevel": "HIGH"}), ["thinking.effort"]),
    "no effort": (Options(thinking=Thinking("none")), configured(thinkingConfig={"thinkingBudget": 0}), []),
    "no thinking": (Options(thinking=Thinking(enabled=False)), configured(thinkingConfig={"thinkingBudget": 0}), []),
    "thinking": (Options(thinking=Thinking(enabled=True)), configured(thinkingConfig={"thinkingBudget": -1}), []),
    "a budget": (
        Options(thinking=Thinking(budget_tokens=1024, enabled=True, summary="auto")),
        configured(thinkingConfig={"thinkingBudget": 1024, "includeThoughts": True}), [],
    ),
    "an effort and a budget": (
        Options(thinking=Thinking("high", 1024, summary="none")),
        configured(thinkingConfig={"thinkingLevel": "HIGH", "includeThoughts": False}), ["thinking.budget_tokens"],
    ),
    "a detailed summary": (
        Options(thinking=Thinking(summary="detailed")), configured(thinkingConfig={"includeThoughts": True}), ["thinking.summary"],
    ),
    "text": (Options(output=OutputFormat("text")), configured(responseMimeType="text/plain"), []),
    "JSON": (Options(output=OutputFormat("json")), configured(responseMimeType="application/json"), []),
    "a schema": (
        Options(output=OutputFormat("schema", SCHEMA, "n", "d", strict=False)),
        configured(responseMimeType="application/json", responseJsonSchema=SCHEMA), ["output.name", "output.description", "output.strict"],
    ),
    "a schema that is missing": (Options(output=OutputFormat("schema")), configured(responseMimeType="application/json"), []),
}  # fmt: skip

LOOK = Tool("look", "looks", SCHEMA)

TOOLS = [
    (LOOK, FUNCTION, []),
    (Tool("stop"), {"name": "stop"}, []),
    (Tool("stop", parameters={}), {"name": "stop"}, []),
    (Tool("stop", extras={"x": 1}, cache="short"), {"name": "stop"}, [("metadata", "x"), ("cache_mark", "stop")]),
    (
        Tool("run", kind="custom", format={"type": "text"}),
        {"name": "run", "parametersJsonSchema": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}},
        [("custom_tool_wrapped", "run")],
    ),
]  # fmt: skip

KEYWORDS = [
    ({**SCHEMA, "$schema": "x", "not": {}}, SCHEMA, ["$schema", "not"]),
    (
        {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "a", "default": "b"}}},
        {"type": "object", "properties": {"pattern": {"type": "string"}}}, ["properties.pattern.pattern", "properties.pattern.default"],
    ),
    ({"properties": {"a": {"const": "x"}, "b": {"const": None}}}, {"properties": {"a": {"enum": ["x"]}, "b": {}}}, ["properties.b.const"]),
    ({"$ref": "#/definitions/A"}, {"$ref": "#/$defs/A"}, ["type"]),
    (
        {"definitions": {"A": {"minLength": 1}}, "properties": {"a": {"$ref": "#/definitions/A", "title": "t"}}},
        {"$defs": {"A": {}}, "properties": {"a": {"$ref": "#/$defs/A"}}}, ["definitions.A.minLength", "properties.a.title"],
    ),
    (
        {"anyOf": [{"allOf": []}, True], "items": {"examples": []}, "additionalProperties": False},
        {"anyOf": [{}, True], "items": {}, "additionalProperties": False}, ["anyOf[0].allOf", "items.examples"],
    ),
]  # fmt: skip

STRICT = Tool("look", "looks", SCHEMA, strict=True)

CHOICES = [
    (None, [LOOK], None, []),
    (None, [Tool("stop"), STRICT], {"mode": "VALIDATED"}, []),
    (ToolChoice("auto"), [LOOK], {"mode": "AUTO"}, []),
    (ToolChoice("auto"), [STRICT], {"mode": "VALIDATED"}, []),
    (ToolChoice("auto", ("look",)), [LOOK], {"mode": "VALIDATED", "allowedFunctionNames": ["look"]}, []),
    (ToolChoice("none"), [STRICT], {"mode": "NONE"}, []),
    (ToolChoice("required", parallel=True), [STRICT], {"mode": "ANY"}, []),
    (ToolChoice("required", ("look",)), [LOOK], {"mode": "ANY", "allowedFunctionNames": ["look"]}, []),
    (ToolChoice("required", ("look", "my tool")), [LOOK], {"mode": "ANY", "allowedFunctionNames": ["look", "my_tool_XXExXLpG"]}, []),
    (ToolChoice("auto", parallel=False), [LOOK], {"mode": "AUTO"}, ["parallel"]),
    (ToolChoice("auto", extras={"x": 1}), [LOOK], {"mode": "AUTO"}, ["x"]),
    (ToolChoice("auto"), [], None, []),
    (ToolChoice("none"), [], None, []),
]  # fmt: skip


# -- asides ------------------------------------------------------------------------------------------------------------


ASIDES = [
    (Aside("google", "citation", "candidates.groundingMetadata", {}), "citation"),
    (Aside("google", "metadata", "part.x", 1), "metadata"),
    (Aside("google", "unknown_event", "field", 5), "unknown_event"),
    (Aside("anthropic", "server_tool", "part", {"text": "x"}), "server_tool"),
]  # fmt: skip


def test_what_was_said_goes_back_as_the_second_leg():
    """seeds.md S3: the parts of a response are the turn of the next request, each signature on its own part."""
    said = [
        {"text": "hm", "thought": True},
        {"text": "so", "thoughtSignature": "QUJD"},
        CODE,
        {**call(args={}), "thoughtSignature": "QUJE"},
        {**call("list", {}, id="b"), "partMetadata": {"x": 1}},
    ]
    candidate = {"content": {"role": "model", "parts": said}, "finishReason": "STOP", "avgLogprobs": -1.5}
    found = decode_response(orjson.dumps({"candidates": [candidate]}), "gemini")
    first, second = found.tool_calls
    request = request_with_results(GEMINI.read(), found, {first.id: "1", second.id: "2"})
    written, report = GEMINI.write(request)
    kept = [{name: value for name, value in part.items() if name != "partMetadata"} for part in said]
    assert written["contents"] == [
        HI, model(*kept), user(answer({"output": "1"}), answer({"output": "2"}, "list", id="b")),
    ]  # fmt: skip
    assert not report.losses
    assert not report.repairs


# -- the recordings, and the official client ---------------------------------------------------------------------------


def test_the_official_client_sends_it(client, replay):
    genai = client("google.genai")
    types = pytest.importorskip("google.genai.types")
    said = [Reasoning("hm", signature=GOOGLE), Text("wait"), ToolCall(0, "a", "look", '{"q":1}', signature=GOOGLE)]
    given = ToolResult("a", [Text("done"), Media("image", "image/png", "+/8=")])
    turns = [Turn("system", [Text("rules")]), USER, Turn("assistant", said), Turn("user", [given])]
    written, _ = GEMINI.write(
        Request(
            "openai-chat",
            "gemini-3-flash",
            turns,
            tools=[STRICT],
            tool_choice=ToolChoice("auto", ("look",)),
            options=Options(max_tokens=5, stop=("x",), thinking=Thinking("low", summary="auto")),
        )
    )
    name = replay.register(orjson.dumps({"candidates": []}), "application/json")
    config = {**written["generationConfig"], "systemInstruction": written["systemInstruction"]}
    config |= {"tools": written["tools"], "toolConfig": written["toolConfig"]}
    genai.models.generate_content(
        model=name,
        contents=[types.Content.model_validate(content) for content in written["contents"]],
        config=types.GenerateContentConfig.model_validate(config),
    )
    asked = replay.asked[name]
    assert b'"inline_data": {"mime_type": "image/png", "data": "-_8="}' in asked  # its names, its alphabet
    assert decode_request(asked, "gemini") == decode_request(orjson.dumps(written), "gemini")


# -- all rows ----------------------------------------------------------------------------------------------------------


def change_schemas(request: Request) -> None:
    request.tools[0].parameters = SCHEMA
    request.options.output.schema = SCHEMA


def keyword_row(schema: Any, expected: Any, lost: list[str]) -> Row:
    schema, expected = (
        {"type": "object", **schema},
        {"type": "object", **expected} if "$ref" not in expected else expected,
    )
    return GEMINI.of_another(
        {
            "model": "gemini-3-flash",
            "tools": [Tool("f", parameters=schema)],
            "options": Options(output=OutputFormat("schema", schema)),
        },
        {
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": expected}]}],
            **configured(responseMimeType="application/json", responseJsonSchema=expected),
        },
        [("schema_keyword", f"{place}.{what}") for what in lost for place in ("tools[0].parameters", "output.schema")],
    )


def choice_row(choice: Any, tools: list[Tool], config: Any, lost: list[str]) -> Row:
    declared = [{"functionDeclarations": [DECLARED[tool.name] for tool in tools]}] if tools else ...
    return GEMINI.of_another(
        {"tools": tools, "tool_choice": choice},
        {"tools": declared, **({} if config is None else calling(**config))},
        [("tool_choice", what) for what in lost],
        NONE if choice is None or "my tool" not in choice.names else {"name_rewritten": 1},
    )


DECLARED = {"look": FUNCTION, "stop": {"name": "stop"}}
CACHED = {"cachedContent": "cachedContents/x"}

ROWS = {
    **rows("contents", CONTENTS, lambda contents, turns: GEMINI.kept({"contents": contents}, turns=turns)),
    **rows("alike", ALIKE, lambda contents, written: GEMINI.alike({"contents": contents}, {"contents": written})),
    **rows("members", MEMBERS, lambda members, read: GEMINI.kept(members, **read)),
    **rows("members alike", ALIKE_MEMBERS, GEMINI.alike),
    **rows("older schemas", OLDER_SCHEMAS, lambda older, schema: GEMINI.kept(
        {"tools": [{"functionDeclarations": [{"name": "f", "parameters": older}]}]}, tools=[Tool("f", None, schema)], typed=False
    )),
    **rows("bad", BAD, GEMINI.refused),
    **rows("sealed", SEALED, lambda parts, said: GEMINI.means({"contents": [model(*parts), HI]}, turns=[by_model(*said), USER])),
    **rows("sealed last", SEALED, lambda parts, said: GEMINI.means({"contents": [model(*parts)]}, turns=[by_model(*said)])),
    **rows("turns", FOREIGN, lambda turns, contents, *counts: GEMINI.of_another({"turns": turns}, {"contents": contents}, *counts)),
    **rows("options", OPTIONS, lambda options, members, lost: GEMINI.of_another({"options": options}, members, parameters(*lost))),
    **rows("tools", TOOLS, lambda tool, function, lost: GEMINI.of_another(
        {"tools": [tool]}, {"tools": [{"functionDeclarations": [function]}]}, lost
    )),
    **rows("keywords", KEYWORDS, keyword_row),
    **rows("choices", CHOICES, choice_row),
    **rows("asides", ASIDES, lambda aside, kind: GEMINI.of_another({"dialect": "gemini", "turns": [by_user(aside, Text("Hi"))]}, {}, {kind: 1})),
    "ids: results in the order of their calls": GEMINI.alike(
        {"contents": [HI, model(call(), call("list")), user(answer(name="list"), {"text": "so"}, answer())]},
        {"contents": [HI, model(call(), call("list")), user(answer(), answer(name="list"), {"text": "so"})]}, repairs={"result_moved": 3},
    ),
    "ids: that of the result is its call's": GEMINI.alike(
        {"contents": [HI, model(call()), user(answer(id="a"))]}, {"contents": answered(answer(id="a"))}
    ),
    "ids: made for others": GEMINI.translated(
        "openai-chat", {"contents": [HI, model(call()), user(answer())]},
        {"messages[1].tool_calls[0].id": "call_1_0", "messages[2].tool_call_id": "call_1_0"},
    ),
    "results in two contents": GEMINI.alike(
        {"contents": [HI, model(call(id="a"), call(id="b")), user(answer(id="a")), user(answer(id="b"), {"text": "so"})]},
        {"contents": [*answered(answer(id="a"), answer(id="b")), user({"text": "so"})]}, repairs={"result_moved": 1},
    ),
    "results around text": GEMINI.alike(
        {"contents": [HI, model(call(id="a"), call(id="b")), user(answer(id="a"), {"text": "so"}, answer(id="b"))]},
        {"contents": [*answered(answer(id="a"), answer(id="b"))[:2], user(answer(id="a"), answer(id="b"), {"text": "so"})]},
        repairs={"result_moved": 1},
    ),
    "sealed: not for Google": GEMINI.alike(
        {"contents": [HI, model({"text": "hm", "thought": True}, sealed("reasoning"), {"text": "a"}), HI]},
        {"contents": [HI, model({"text": "a"}), HI]}, losses={"reasoning_signature": 1, "reasoning_history": 1},
    ),
    "sealed: for its vendor": GEMINI.translated(
        "anthropic", {"contents": [HI, model({"text": "hm", "thought": True}, sealed("reasoning"), {"text": "a"}), HI]},
        {"messages[1].content[0]": {"type": "thinking", "thinking": "hm", "signature": "S?>~?>~"}},
    ),
    "the model, which the URL names": GEMINI.means({"model": "models/m"}, model="models/m"),
    "schemas that were changed": GEMINI.alike(
        {"tools": [{"functionDeclarations": [{"name": "list", "parameters": OPENAPI}]}], **configured(responseSchema=OPENAPI)},
        {
            "tools": [{"functionDeclarations": [{"name": "list", "parametersJsonSchema": SCHEMA}]}],
            **configured(responseMimeType="application/json", responseJsonSchema=SCHEMA),
        },
        change=change_schemas,
    ),
    "one instruction": GEMINI.of_another(
        {"turns": [by_system(Text("a"), native_role="developer"), by_system(Text("b")), USER, by_model(Text("so")), by_system(Text("c"))]},
        {"systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}, "contents": [HI, model({"text": "so"})]},
        {"system_place": 1},
    ),
    "the system alone": GEMINI.unwritable({"turns": [by_system(Text("rules"))]}, "contents", "Gemini requires a user content in addition to the system's"),
    "the system alone, as the user": GEMINI.of_another(
        {"turns": [by_system(Text("rules"))]}, {"contents": [user({"text": "rules"})]}, {"system_place": 1}, target={"emulate": True}
    ),
    "nothing": GEMINI.unwritable({"turns": []}, "contents", "Gemini requires a user content in addition to the system's", emulate=True),
    "members of another dialect": GEMINI.of_another(
        {"extras": {"logit_bias": {"1": 2}, "store": None}, "stream": True, "stream_usage": True}, {}, parameters("logit_bias")
    ),
    "a tool of another provider": GEMINI.of_another(
        {"tools": [Tool("web_search", kind="server", raw={"type": "web_search"})]}, {}, [("tool_definition", "web_search")]
    ),
    "validated is auto for others": GEMINI.translated(
        "openai-chat", {"tools": [{"functionDeclarations": [FUNCTION]}], **calling(mode="VALIDATED")}, {"tool_choice": "auto"}, [("metadata", "mode")]
    ),
    "contents that only Google's cache has": GEMINI.refused(CACHED, "cachedContent", "send the cached contents in `contents`", to="openai-chat"),
    "they stay in its dialect": GEMINI.kept(CACHED, extras=CACHED),
}  # fmt: skip

#: Rows with something that Google's own client does not let its user write.
BEYOND = {
    "contents: an image", "contents: media in a result", "contents: an unknown part", "contents: a content with more",
    "members: the system in a role", "members: options", "members: a level of thinking", "members: members nobody knows",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    GEMINI.check(ROWS[name], beyond=name in BEYOND)


def test_a_schema_that_contains_itself_is_refused():
    schema: dict[str, Any] = {"type": "object"}
    schema["items"] = schema
    with pytest.raises(BadRequest, match="nested deeper than 200"):
        GEMINI.write(evolve(GEMINI.foreign, options=Options(output=OutputFormat("schema", schema))))


def test_calls_without_ids_are_paired_by_name_and_order_and_stay_without():
    contents = [
        HI, model(call(), call("list"), call()), user(answer(), answer(name="list"), answer()), model(call()), user(answer()),
    ]  # fmt: skip
    request = GEMINI.read(contents=contents)
    made = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
    answered = [part.call_id for turn in request.turns for part in turn.parts if isinstance(part, ToolResult)]
    assert answered == [part.id for part in made] == ["call_1_0", "call_1_1", "call_1_2", "call_3_0"]
    assert all(part.id_made for part in made)
    written, report = GEMINI.write(request)
    assert written["contents"] == contents
    assert not report.repairs
