"""Cases 272 to 276: calls that nothing closes, in the text or on the wire, and what is held when an error comes."""

from __future__ import annotations

from attrs import evolve

from tests.vectors import anthropic as am
from tests.vectors.field.case import Case, Form, Said, Text, Thinking, Use
from tests.vectors.field.inside_text import ALL, ON, TOOLS, texts, written_calls
from tests.vectors.field.shapes import anthropic, calling, chat, failed, messages, written
from tests.vectors.openai_chat import DONE, ROLE, call, calls, chunk, said
from tests.vectors.vector import Call

SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
SIGNED_CALL = Call("f", '{"x":1}', id="a")
BOOM = {"error": {"message": "boom", "type": "server_error"}}
READ = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'


def unclosed(text: str, name: str, reason: str = "stop", *, rest: str = "", before: str = "") -> Form:
    """A Chat stream whose model ended inside a call, before any of its arguments."""
    after = (Text(before + rest),) if before + rest else ()
    return chat(
        *map(said, (before + text)),
        chunk({}, reason),
        DONE,
        name=name,
        policy=ALL,
        offered=TOOLS,
        text=before + rest,
        calls=(Call("read", "", "truncated", "call_1"),),
        stop="length",
        repairs={"call_in_text": 1, "stop_conflict": 1},
        to={
            "anthropic": messages(*after, stop="max_tokens", losses={"call_withheld": 1}, withheld=("",)),
            "openai-chat": written(*after, stop="length", losses={"call_withheld": 1}, withheld=("",)),
        },
    )


def broken(*fragments: str, name: str, held: tuple[Said, ...], policy=ALL, **expected: object) -> Form:
    """A Chat stream that an error ends while the end of its text is held."""
    return chat(
        ROLE,
        *map(said, fragments),
        BOOM,
        name=name,
        policy=policy,
        offered=TOOLS,
        stop=None,
        provider_error="boom",
        to={"anthropic": failed(*held, error="boom")},
        **expected,
    )


CASES = (
    Case(
        number=272, refs="vLLM; llama.cpp",
        cause="a call in the text ends before its arguments, although the model stopped by itself",
        does="streamkit does not read this as a call without arguments. The call is truncated and withheld. If no other call is left, the stop reason is `length`.",
        forms=(
            unclosed("<function=read>", "no parameter"),
            unclosed("<function=read>\n<par", "inside of a tag", "tool_calls"),
            unclosed("<function=read>many</function>", "no parameters but words", rest="many</function>"),
            unclosed('<tool_call>{"name": "read", "arguments": "{\\"pa', "inside of arguments as a string"),
            unclosed('<tool_call>{"name": "read", "arguments": <b>', "no JSON", rest="<b>"),
            unclosed('<invoke name="read">', "claude", before="Hm.\n"),
            unclosed("<tool_call>read\n<arg_key>path", "glm"),
            unclosed("[TOOL_CALLS]read[ARGS]", "mistral"),
            unclosed('<｜DSML｜invoke name="read">\n', "DSML"),
            chat(
                *texts("<function=read>\n", READ[:20], READ[20:]), name="another call behind it", policy=ALL, offered=TOOLS, calls=(Call("read", "", "truncated", "call_1"), Call("read", '{"path": "a"}', id="call_2")), stop="tool_calls",
                repairs={"call_in_text": 2, "stop_with_calls": 1},
                to={"anthropic": messages(Use("call_2", "read", '{"path": "a"}'), stop="tool_use", losses={"call_withheld": 1}, withheld=("",))},
            ),
        ),
        beside="tests/in_text/test_calls.py::test_l3_a_call_that_was_cut_is_none_without_arguments",
    ),
    Case(
        number=273, refs="vLLM; pydantic/pydantic#7019",
        cause='a call in the text has half a surrogate pair in a string argument (`"{\\"path\\": \\"\\ud83d\\"}"`)',
        does="The half becomes U+FFFD, as in all other places, and streamkit counts a repair. Before this case was handled, the encoder raised an exception.",
        forms=(
            evolve(
                written_calls('<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"\\ud83d\\"}"}</tool_call>', name="streamed", arguments=('{"path": "\ufffd"}',)),
                repairs={"call_in_text": 1, "stop_with_calls": 1, "lone_surrogate": 1},
            ),
        ),
    ),
    Case(
        number=274, refs="LiteLLM; vLLM",
        cause="an error arrives in the stream while the end of the text so far may be the start of a tag",
        does="streamkit holds such a text until more text arrives. If an error arrives first, streamkit emits the held text before the error: as text, as thinking or as a truncated call.",
        forms=(
            broken("Hi <", "tool", name="text", text="Hi <tool", held=(Text("Hi <tool"),)),
            broken("<think>Hm. </thi", name="thinking", policy=ON, reasoning="Hm. </thi", repairs={"thinking_in_text": 1}, held=(Thinking("Hm. </thi"),)),
            broken("<thi", name="the beginning of a tag", policy=ON, text="<thi", held=(Text("<thi"),)),
            broken('<tool_call>{"name": "re', name="an object without its name", text='<tool_call>{"name": "re', held=(Text('<tool_call>{"name": "re'),)),
            anthropic(
                am.START, am.begin(0, "text", text=""), am.delta(0, "text_delta", text="Hi <tool"), {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}, name="of Anthropic", policy=ALL, offered=TOOLS, text="Hi <tool",
                stop=None, provider_error="boom", to={"openai-chat": failed(Text("Hi <tool"), error="boom")},
            ),
        ),
    ),
    Case(
        number=275, refs="LiteLLM; Gemini's endpoint for OpenAI clients",
        cause="the signature of a call arrives together with a fragment of the arguments",
        does="If streamkit has not emitted anything of the call, the signature belongs to the call. Otherwise streamkit counts a loss. Before this case was handled, the signature was dropped without a report.",
        forms=(
            calling(
                calls(call(0, "a", "f")), calls({**call(0, arguments='{"x":'), **SIGNED}), calls(call(0, arguments="1}")), name="with the first", calls=(SIGNED_CALL,),
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", holds=(b'"thought_signature":"c2ln"',))},
            ),
            calling(
                calls(call(0, "a", "f", '{"x"')), calls(call(0, arguments=":")), calls({**call(0, arguments="1}"), **SIGNED}), name="with a later one", calls=(SIGNED_CALL,),
                to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", losses={"unknown_event": 1}), "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", losses={"unknown_event": 1})},
            ),
        ),
    ),
)  # fmt: skip
