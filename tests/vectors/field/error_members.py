"""Cases 295 to 301: errors in members that are not the dialect's."""

from __future__ import annotations

from collections.abc import Mapping

from tests.framing.binary import exception
from tests.vectors import ag_ui as ag
from tests.vectors import ai_sdk as ui
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import gemini_interactions as ix
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Form, Text
from tests.vectors.field.shapes import anthropic, bedrock, chat, failed, form, gemini, messages, ollama, responses
from tests.vectors.openai_chat import DONE, HEAD, STOP, chunk, said

NO = "no"
DETAIL, METADATA, UNKNOWN = {"error_detail": 1}, {"metadata": 1}, {"unknown_event": 1}
SHAPE = {"error_shape": 1}
FAILED = {"text": "Hi", "stop": None, "provider_error": NO, "repairs": SHAPE}


def failing(name: str, *payloads: object, losses: Mapping[str, int] = {}) -> Form:
    """A Chat stream whose error is in no form of Chat's."""
    return chat(
        said("Hi"), *payloads, name=name, **FAILED,
        to={
            "anthropic": failed(Text("Hi"), error=NO, losses=dict(losses)),
            "openai-chat": failed(Text("Hi"), error=NO, lacks=(b"[DONE]", b'"stop"')),
        },
    )  # fmt: skip


CASES = (
    Case(
        number=295, refs="groq/groq-python (XGroq.error); UKGovernmentBEIS/inspect_ai#5218",
        cause="`x_groq.error` is next to `finish_reason: stop` and `[DONE]`",
        does="streamkit reports an error with the provider's message, whatever else the chunk contains. No success follows.",
        forms=(
            failing("with a stop", chunk(finish="stop", x_groq={"id": "r", "error": NO}), DONE, losses=METADATA),
            failing("alone", {**HEAD, "choices": [], "x_groq": {"error": NO}}, STOP, DONE, losses=METADATA),
            chat(
                said("Hi"), chunk(finish="stop", x_groq={"id": "r", "error": None}), DONE, name="null is none", text="Hi",
                to={"anthropic": messages(Text("Hi"), losses={"metadata": 1})},
            ),
        ),
        beside="tests/dialects/vocabulary/test_error_bodies.py::test_an_error_next_to_a_whole_response_is_an_error",
    ),
    Case(
        number=296, refs="nodetool-ai/nodetool#5755; genkit-ai/genkit#6259",
        cause="the error is inside a choice: in the choice itself, in its delta or in its message",
        does="streamkit reports an error with this error's own message and code, not with those of the finish reason.",
        forms=(
            failing("of a choice", {**HEAD, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": NO}}]}, DONE, losses=METADATA | DETAIL),
            failing("of a choice that stops", {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "error": {"code": 502, "message": NO}}]}, DONE, losses=METADATA | DETAIL),
            failing("of a delta", chunk({"error": {"message": NO}}, "stop"), DONE, losses=METADATA),
        ),
    ),
    Case(
        number=297, refs="openbkn-ai/bkn-foundry#620",
        cause="the message of an error is in a member with an unusual name, or is next to a code that is not an HTTP status. A success follows the error",
        does="streamkit reports each known form as an error with the provider's message, and ignores what follows.",
        forms=tuple(
            failing(name, error, STOP, DONE, losses=losses)
            for name, error, losses in (
                ("a description", {"code": "Factory.Model.Error", "description": NO, "detail": '{"code":50508}', "solution": ""}, DETAIL),
                ("a code and a text", {"error_code": 17, "error_msg": NO}, DETAIL),
                ("a list of errors", {"errors": [{"code": 10000, "message": NO}], "success": False, "messages": [], "result": None}, DETAIL),
                ("no success", {"code": 1302, "msg": NO, "success": False}, DETAIL),
                ("a fault", {"fault": {"faultstring": NO, "detail": {"errorcode": "policies.ratelimit.QuotaViolation"}}}, DETAIL),
                ("a message in a member of its own", {"error_message": NO}, {}),
                ("a word and the id of the request", {"code": "Throttling.RateQuota", "message": NO, "request_id": "r-1"}, DETAIL),
                ("the model's status", {"originalStatusCode": 500, "originalMessage": NO}, {}),
                ("a type", {"message": NO, "type": "invalid_request_error"}, {}),
                ("a status in words", {"status": "error", "message": NO}, {}),
                ("in the detail", {"detail": {"error": {"message": NO}}}, {}),
                ("a list", {"error": [{"message": NO}]}, {}),
                ("an error in an error", {"error": {"error": {"message": NO, "type": "overloaded_error"}}}, {}),
            )
        ),
        beside="tests/dialects/vocabulary/test_error_bodies.py::test_each_form_is_an_error_in_each_dialect",
    ),
    Case(
        number=298, refs="anomalyco/opencode#38712",
        cause="a Bedrock exception has an `originalMessage`, but no `message`",
        does="The client gets the model's own message. The status in the exception decides the kind of error.",
        forms=(
            bedrock(
                br.START, *br.block(0, "Hi"), exception("modelStreamErrorException", {"originalStatusCode": 500, "originalMessage": NO}),
                name="alone", text="Hi", stop=None, provider_error=NO,
                to={"openai-responses": failed(Text("Hi"), error=NO), "anthropic": failed(Text("Hi"), error=NO)},
            ),
            bedrock(
                br.START, *br.block(0, "Hi"), exception("modelStreamErrorException", {"message": "the model failed", "originalStatusCode": 429, "originalMessage": NO}),
                name="with a message", text="Hi", stop=None, provider_error="the model failed (no)",
                to={"openai-chat": failed(Text("Hi"), error="the model failed (no)", holds=(b'"rate_limit_exceeded"',))},
            ),
            bedrock(
                br.START, *br.block(0, "Hi"), ("throttlingException", {"message": NO}), br.finish(), br.counts(),
                name="as an event", **{**FAILED, "repairs": {**SHAPE, "after_error": 1}}, to={"anthropic": failed(Text("Hi"), error=NO)},
            ),
        ),
    ),
    Case(
        number=299, refs="MiniMax, which sends `base_resp` in every chunk",
        cause="each successful chunk has 0 in `base_resp.status_code`, and a failed chunk has another number",
        does="For streamkit, 0 is not an error, and any other number is one. MiniMax's documentation says which kind of error each number means.",
        forms=(
            failing("a rate limit", {**HEAD, "choices": None, "base_resp": {"status_code": 1002, "status_msg": NO}}, STOP, DONE, losses=METADATA | DETAIL),
            failing("with a stop", chunk(finish="stop", base_resp={"status_code": 1008, "status_msg": NO}), DONE, losses=METADATA | DETAIL),
            chat(
                chunk({"content": "Hi"}, base_resp={"status_code": 0, "status_msg": ""}),
                chunk(finish="stop", base_resp={"status_code": 0, "status_msg": "success"}), DONE, name="0", text="Hi",
                to={"anthropic": messages(Text("Hi"), losses={"response_fields": 1, "metadata": 1})},
            ),
        ),
        beside="tests/dialects/vocabulary/test_error_bodies.py::test_what_kind_of_error_it_is",
    ),
    Case(
        number=300, refs="UKGovernmentBEIS/inspect_ai#5218, in other dialects",
        cause="an error arrives together with the event that ends a response successfully",
        does="In every dialect, the response counts as failed. streamkit keeps its content, and writes no success.",
        forms=(
            anthropic(am.START, *am.block(0, "Hi"), {**am.finish("end_turn"), "error": {"type": "overloaded_error", "message": NO}}, am.STOP, name="Anthropic", **FAILED, to={"openai-chat": failed(Text("Hi"), error=NO, losses=METADATA)}),
            responses(rs.START, *rs.message(0, "Hi"), {**rs.last("completed"), "error": {"message": NO}}, name="Responses", **{**FAILED, "repairs": {**SHAPE, "stop_conflict": 1}}, to={"openai-chat": failed(Text("Hi"), error=NO)}),
            gemini(gm.chunk(gm.text("Hi")), {**gm.STOP, "error": {"code": 503, "message": NO, "status": "UNAVAILABLE"}}, name="Gemini", **FAILED, to={"openai-chat": failed(Text("Hi"), error=NO)}),
            gemini(gm.chunk(gm.text("Hi")), {**gm.STOP, "errors": [{"message": NO}]}, name="Gemini, in a list", **FAILED, to={"openai-chat": failed(Text("Hi"), error=NO, losses=METADATA)}),
            ollama(ol.line("Hi"), {**ol.end(), "error": NO}, name="Ollama", **{**FAILED, "repairs": {}}, to={"openai-chat": failed(Text("Hi"), error=NO)}),
            ollama(ol.line("Hi"), {**ol.end(), "base_resp": {"status_code": 1002, "status_msg": NO}}, name="Ollama, in another form", **FAILED, to={"openai-chat": failed(Text("Hi"), error=NO, losses=METADATA)}),
            form("cohere", co.vector("", co.START, *co.block(0, "Hi"), {**co.finish(), "error": {"message": NO}}).body, "Cohere", {"openai-chat": failed(Text("Hi"), error=NO, losses=UNKNOWN)}, FAILED),
            form("gemini-interactions", ix.vector("", ix.START, *ix.text(0, "Hi"), ix.finish(error={"code": 503, "message": NO})).body, "Interactions, in the interaction", {"openai-chat": failed(Text("Hi"), error=NO, losses=METADATA)}, FAILED),
            form("gemini-interactions", ix.vector("", ix.START, *ix.text(0, "Hi"), {**ix.finish(), "error": {"message": NO}}).body, "Interactions", {"openai-chat": failed(Text("Hi"), error=NO, losses=UNKNOWN)}, FAILED),
            form("ag-ui", ag.vector("", ag.START, *ag.text("m", "Hi"), ag.finish(error={"message": NO})).body, "AG-UI", {"openai-chat": failed(Text("Hi"), error=NO, losses={"response_fields": 1, "metadata": 1})}, FAILED),
            form("ag-ui", ag.vector("", ag.START, *ag.text("m", "Hi"), ag.finish(outcome={"type": "error", "message": NO})).body, "AG-UI, an outcome", {"openai-chat": failed(Text("Hi"), error=NO, losses={"response_fields": 1, "metadata": 1})}, FAILED),
            form("ai-sdk", ui.answer(ui.text("Hi"), end={**ui.finish(), "error": NO}), "AI SDK", {"openai-chat": failed(Text("Hi"), error=NO, losses=UNKNOWN)}, FAILED),
            form("ai-sdk", ui.answer(ui.text("Hi"), {"type": "error", "message": NO}), "AI SDK, in another member", {"openai-chat": failed(Text("Hi"), error=NO)}, {**FAILED, "repairs": {**SHAPE, "after_error": 1}}),
            bedrock(br.START, *br.block(0, "Hi"), br.finish(error={"message": NO}), br.counts(), name="Bedrock", **{**FAILED, "repairs": {**SHAPE, "after_error": 1}}, to={"openai-chat": failed(Text("Hi"), error=NO, losses=UNKNOWN)}),
        ),
    ),
    Case(
        number=301, refs="false positives of a general rule for errors",
        cause="error members are null, empty, false or 0. Or the text of the response contains JSON with such members",
        does="streamkit reads none of these as an error.",
        forms=(
            chat(
                chunk({"content": '{"error":"boom","base_resp":{"status_code":1},"success":false}'}, error=None, errors=[], error_code=0, error_msg="", fault={}, success=True),
                chunk(finish="stop", error={}, x_groq={"error": ""}), DONE, name="empty members",
                text='{"error":"boom","base_resp":{"status_code":1},"success":false}',
                to={"anthropic": messages(Text('{"error":"boom","base_resp":{"status_code":1},"success":false}'), losses={"response_fields": 1, "metadata": 1})},
            ),
        ),
    ),
)  # fmt: skip
