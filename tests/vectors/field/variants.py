"""Cases 405 to 409, and 411: variants of the cases from 295 on, as other reporters could have sent them."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import gemini as gm
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Text, Thinking, Use
from tests.vectors.field.content import litellm
from tests.vectors.field.endings import OPEN
from tests.vectors.field.error_members import DETAIL, METADATA, NO, failing
from tests.vectors.field.shapes import anthropic, chat, gemini, messages, ollama_turn, responses_turn, written
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call

CUT = Call("f", '{"x":', "truncated", id="a")
HI = {"text": "Hi"}


def others(role: str) -> dict[str, object]:
    return chunk({"role": role, "content": "RAW"})


def reasoned(part: dict[str, object]) -> dict[str, object]:
    return chunk({"content": [{"type": "reasoning", **part}]})


LOOKED = {"text": "Hi", "reasoning": "Look.", "repairs": {"content_as_list": 1}}
LOOKED_TO = {"anthropic": messages(Thinking("Look."), Text("Hi"))}

CASES = (
    Case(
        number=405, refs="variants of cases 295 to 301: AWS, Tencent, iFlytek, Azure's queues, LangServe",
        cause="an error is in a member with another name (`exception`, `err`, `failure`, `Error`), in capitals, or inside `data`, `response` or `header`. Or only a `name` marks the error",
        does="streamkit reports an error with the provider's message, and ignores what follows.",
        forms=tuple(
            failing(name, error, STOP, DONE, losses=losses)
            for name, error, losses in (
                ("an exception", {"exception": NO}, {}),
                ("a short name", {"err": {"msg": NO, "code": 7}}, DETAIL),
                ("a failure", {"failure": {"message": NO}}, {}),
                ("capitals", {"Error": {"Code": "Throttling", "Message": NO}}, DETAIL),
                ("capitals, flat", {"Code": "Throttling", "Message": NO, "RequestId": "r"}, DETAIL),
                ("Tencent, inside", {"Response": {"Error": {"Code": "X", "Message": NO}, "RequestId": "r"}}, DETAIL),
                ("Tencent", {"ErrorMsg": {"Msg": NO, "Code": 4001}}, DETAIL),
                ("iFlytek", {"header": {"code": 10013, "message": NO, "sid": "s", "status": 2}}, DETAIL),
                ("an error in data", {"data": {"error": {"message": NO}}}, {}),
                ("an error in a response", {"response": {"error": {"message": NO}}}, {}),
                ("camel case", {"errCode": 17, "errMsg": NO}, DETAIL),
                ("snake case", {"err_code": 17, "err_msg": NO}, DETAIL),
                ("AWS's type", {"__type": "ThrottlingException", "message": NO}, {}),
                ("the name of a class", {"name": "APIError", "message": NO}, {}),
                ("a type of its own name", {"error_type": "overloaded", "message": NO}, {}),
                ("a status that fails", {"status": "fail", "msg": NO}, {}),
                ("a word next to a stop", chunk(finish="stop", code="InvalidParameter", message=NO), DETAIL | METADATA),
            )
        ) + (
            chat(
                chunk({"content": "Hi"}, code=0, message="Success", sid="s"), chunk(finish="stop", code=200, message="ok", exception=None, err="", failure={}), DONE, name="nothing of it", **HI,
                to={"anthropic": messages(Text("Hi"), losses={"response_fields": 1, "metadata": 1})},
            ),
        ),
    ),
    Case(
        number=406, refs="variant of cases 55 and 306: vllm#9053 with a client of Ollama, Gemini, Mistral or Cohere",
        cause="the only call of a response is truncated. Clients that get only complete calls do not get it, and see an empty response that ended normally",
        does="The response ends with the token limit as its stop reason.",
        forms=(
            chat(
                ROLE, calls(call(0, "a", "f", '{"x":')), CALLED, DONE, calls=(CUT,), stop="length", repairs={"stop_conflict": 1},
                to={
                    "ollama": written(stop="length", losses={"call_withheld": 1}, withheld=('{"x":',)),
                    "gemini": written(stop="MAX_TOKENS", losses={"call_withheld": 1}, withheld=('{"x":',)),
                    "mistral": written(stop="length", losses={"call_withheld": 1}, withheld=('{"x":',)),
                },
            ),
        ),
    ),
    Case(
        number=407, refs="variant of case 307: the roles of transformers (`ipython`, `observation`) and of LangChain (`tool_result`)",
        cause="tool results arrive under a role with an unusual name",
        does="streamkit does not read them as the model's text.",
        forms=(
            *(
                chat(ROLE, said("Hi"), others(role), STOP, DONE, name=role, **HI, to={"anthropic": messages(Text("Hi"), losses={"unknown_event": 1})})
                for role in ("ipython", "observation", "tool_result", "Tool")
            ),
            ollama_turn(ol.line("Hi"), {**ol.line(), "message": {"role": "environment", "content": "RAW"}}, name="Ollama", **HI, to={"openai-chat": written(Text("Hi"), losses={"unknown_event": 1})}),
        ),
    ),
    Case(
        number=408, refs="variants of cases 323 and 324: Databricks and LiteLLM with their members in another order",
        cause="a reasoning part has its text directly in one of its members or in a list `content`. Or several signed blocks at the end together repeat the earlier text",
        does="streamkit reads the text once, as reasoning. If a signature belongs to only a part of one text, streamkit drops this signature, because it does not match the whole text.",
        forms=(
            chat(reasoned({"text": "Look."}), said("Hi"), STOP, DONE, name="flat", **LOOKED, to=LOOKED_TO),
            chat(reasoned({"reasoning": "Look."}), said("Hi"), STOP, DONE, name="flat, by its type", **LOOKED, to=LOOKED_TO),
            chat(reasoned({"content": [{"type": "reasoning_text", "text": "Look."}]}), said("Hi"), STOP, DONE, name="in a content", **LOOKED, to=LOOKED_TO),
            chat(
                chunk({"reasoning_content": "A"}), chunk({"reasoning_content": "BC"}),
                chunk({"thinking_blocks": [{"type": "thinking", "thinking": "A", "signature": "c2ln"}, {"type": "thinking", "thinking": "BC", "signature": "c2lo"}]}),
                said("Hi"), STOP, DONE, name="two blocks at the end", **HI, reasoning="ABC", to={"anthropic": messages(Thinking("ABC"), Text("Hi"), losses={"metadata": 1})},
            ),
            chat(
                {**(one := litellm("ABC", "A", "c2ln")), "choices": [{**one["choices"][0], "delta": {"reasoning_content": "ABC", "thinking_blocks": [{"type": "thinking", "thinking": "A", "signature": "c2ln"}, {"type": "thinking", "thinking": "BC", "signature": "c2lo"}]}}]},
                said("Hi"), STOP, DONE, name="two blocks in one chunk", **HI, reasoning="ABC", to={"anthropic": messages(Thinking("A", "c2ln"), Thinking("BC", "c2lo"), Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=409, refs="majiayu000/litellm-rs#552 and api7/aisix#518, in Responses; BerriAI/litellm#34802, with a blank text",
        cause="code that the provider ran is next to a blank text. Or the words of an audio response are in `response.audio.transcript.delta`",
        does="streamkit writes the code if all other text is white space. streamkit writes the words of an audio response as text.",
        forms=(
            responses_turn(
                {"type": "response.audio.transcript.delta", "delta": "H", "response_id": "r"}, {"type": "response.audio.transcript.delta", "delta": "i", "response_id": "r"}, name="words of a sound", text="",
                to={"openai-chat": written(Text("Hi"))},
            ),
        ),
        beside="tests/translation/test_spoken.py::test_so_does_a_stream_and_one_that_says_anything_else_has_its_own_text_alone",
    ),
    Case(
        number=411, refs="variant of case 306: two calls of Gemini or Claude, one of them unfinished",
        cause="when the model stops by itself, one call is complete and another call has only a name",
        does="The response ends with the token limit as its stop reason. No client runs the unfinished call with `{}`. No client runs only the complete call as if it were all that the model wanted.",
        forms=(
            gemini(
                gm.chunk(gm.partial(name="f")), gm.chunk(gm.call("g", {"y": 1})), gm.STOP, name="the first", calls=(Call("f", "", "truncated", id="call_1"), Call("g", '{"y":1}', id="call_2")), stop="length", repairs=OPEN,
                to={"anthropic": messages(Use("call_1", "f", ""), Use("call_2", "g", '{"y":1}'), stop="max_tokens", usage=None)},
            ),
            gemini(
                gm.chunk(gm.call("g", {"y": 1})), gm.chunk(gm.partial(name="f")), gm.STOP, name="the second", calls=(Call("g", '{"y":1}', id="call_1"), Call("f", "", "truncated", id="call_2")), stop="length", repairs=OPEN,
                to={"anthropic": messages(Use("call_1", "g", '{"y":1}'), stop="max_tokens", usage=None, losses={"call_withheld": 1}, withheld=("",))},
            ),
            anthropic(
                am.START, *am.tool(0, "a", "f", '{"x":1}'), am.begin(1, "tool_use", id="b", name="g", input={}), am.finish("tool_use"), am.STOP, name="Claude",
                calls=(Call("f", '{"x":1}', id="a"), Call("g", "", "truncated", id="b")), stop="length", repairs=OPEN,
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="length", losses={"call_withheld": 1}, withheld=("",))},
            ),
        ),
    ),
)  # fmt: skip
