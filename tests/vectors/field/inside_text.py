"""Cases 227 to 236: thinking and calls that models write into their text."""

from __future__ import annotations

from attrs import evolve

from streamkit.conversation.messages import Tool
from streamkit.in_text.grammars import GRAMMARS
from streamkit.policy import TOLERANT
from tests.vectors import anthropic as am
from tests.vectors import gemini as gm
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Form, Said, Text, Thinking, Use
from tests.vectors.field.shapes import NO_REASON, chat, failed, gemini, message, messages, ollama_turn, written
from tests.vectors.openai_chat import CALLED, DONE, HEAD, STOP, call, calls, chunk, said
from tests.vectors.vector import Call

ON = evolve(TOLERANT, think_tags="on")
OPENED = evolve(TOLERANT, think_tags="opened")
ONCE = {"thinking_in_text": 1}
SPLIT = {"anthropic": messages(Thinking("Hm. <b>"), Text("Hi"))}


def texts(*fragments: str) -> list[object]:
    """A whole Chat stream of these deltas."""
    return [*map(said, fragments), STOP, DONE]


#: Every grammar at once: what is found must not depend on which others are looked for.
ALL = evolve(TOLERANT, text_calls=tuple(GRAMMARS))
TOOLS = (
    Tool(
        "read",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "lines": {"type": "integer"},
                "from": {"type": ["integer", "null"]},
                "all": {"type": "boolean"},
                "where": {"type": "object"},
            },
        },
    ),
    Tool("list_all"),
)
READ = '{"path": "a b.py", "lines": 10, "where": {"x": 1.0}}'
#: Ids that are made, as the drivers of the vectors make them.
IDS = ("call_1", "call_2")


def written_calls(
    *fragments: str,
    name: str,
    arguments: tuple[str, ...] = (READ,),
    names: tuple[str, ...] = ("read", "list_all"),
    ids: tuple[str, ...] = IDS,
    text: str = "",
    policy=ALL,
    verdicts: tuple[str, ...] = ("complete", "complete"),
    to: tuple[Said, ...] | None = None,
) -> Form:
    """A Chat stream that says ``stop`` behind the fragments, and the calls that stand in them."""
    found = tuple(
        Call(tool, text, verdict, id) for tool, text, verdict, id in zip(names, arguments, verdicts, ids, strict=False)
    )
    said_so = (Text(text),) if text else ()
    uses = tuple(Use(one.id, one.name, one.arguments) for one in found)
    return chat(
        *texts(*fragments),
        name=name,
        policy=policy,
        offered=TOOLS,
        text=text,
        calls=found,
        stop="tool_calls",
        repairs={"call_in_text": len(found), "stop_with_calls": 1},
        to={"anthropic": messages(*(said_so + uses if to is None else to), stop="tool_use")},
    )


def only_text(*fragments: str, name: str, policy=ALL, tools=TOOLS) -> Form:
    """A Chat stream in which there are no calls, whatever is looked for."""
    text = "".join(fragments)
    return chat(
        *texts(*fragments), name=name, policy=policy, offered=tools, text=text, to={"anthropic": messages(Text(text))}
    )


def cut_call(
    *fragments: str,
    name: str,
    arguments: str,
    stop: str | None = None,
    text: str = "",
    rest: str = "",
    ids: str = "call_1",
) -> Form:
    """A stream that ends inside a call, with or without a stop reason."""
    ending = () if stop is None else (chunk({}, stop), DONE)
    found = Call("read", arguments, "truncated", ids)
    said_so = (Text(text),) if text else ()
    repairs = {"call_in_text": 1, **({"stop_conflict": 1} if stop == "stop" else {})}
    uses = Use(ids, "read", arguments)
    after = (Text(rest),) if rest else ()
    to = (
        failed(*said_so, uses, error=NO_REASON) if stop is None else messages(*said_so, uses, *after, stop="max_tokens")
    )
    return chat(
        *map(said, fragments),
        *ending,
        name=name,
        policy=ALL,
        offered=TOOLS,
        text=text + rest,
        calls=(found,),
        stop=None if stop is None else "length",
        repairs=repairs,
        to={"anthropic": to},
    )


CUT_OBJECT = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}'
PROSE = 'To call a tool, write\n\n```xml\n<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>\n```\n\nor `<tool_call>{"name": "read", "arguments": {}}</tool_call>` in a line.'


CASES = (
    Case(
        number=227, refs="anomalyco/opencode#3555, #4033; decolua/9router#2231; RooCodeInc/Roo-Code#8989; QwenLM/qwen-code#10791",
        cause="the text contains thinking, between `<think>` and `</think>`",
        does="In any dialect, streamkit reads such thinking as reasoning if the provider is known to send such tags. For other providers, streamkit does this only if the policy says so.",
        forms=(
            chat(*texts("<think>\nHm. <b>", "</think>\n\n", "Hi"), name="of a provider known for it", provider="groq", text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("<think>\nHm. <b></think>\n\nHi"), name="by policy", policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to={**SPLIT, "openai-chat": written(Thinking("Hm. <b>"), Text("Hi"))}),
            chat(*texts("<think>", "\n\n", "</think>", "\n\n", "Hi"), name="no thoughts", policy=ON, text="Hi", repairs=ONCE, to={"anthropic": messages(Text("Hi"))}),
            chat(
                chunk({"content": "<think>a</think>b"}), chunk({"content": "Hi"}, index=1), chunk({}, "stop"), chunk({}, "stop", index=1), DONE,
                name="one choice of two", policy=ON, text="b", reasoning="a", repairs=ONCE, to={"anthropic": messages(Thinking("a"), Text("b"), losses={"extra_choice": 1})},
            ),
            ollama_turn(ol.line("<think>Hm. <b>"), ol.line("</think>\n\nHi"), policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to={"anthropic": messages(Thinking("Hm. <b>"), Text("Hi"))}),
            gemini(gm.chunk(gm.text("<thought>Hm. <b></thought>Hi"), finish="STOP"), policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to={"anthropic": messages(Thinking("Hm. <b>"), Text("Hi"))}),
            message(am.begin(0, "text", text=""), *(am.delta(0, "text_delta", text=one) for one in ("<thinking>", "Hm. <b>", "</thinking>", "\nHi")), am.stop(0), policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to={"openai-chat": written(Thinking("Hm. <b>"), Text("Hi"))}),
        ),
        beside="tests/in_text/test_thinking.py::test_a_whole_answer_is_read_as_its_stream",
    ),
    Case(
        number=228, refs="youssofal/MTPLX#149; bytedance/deer-flow#3217, #3218",
        cause="a thinking tag arrives in pieces, or has the form of another model",
        does="streamkit recognises these tags wherever they are split: `<think>`, `<thinking>`, `<thought>`, `<seed:think>`, `[THINK]`, `◁think▷`.",
        forms=(
            chat(*texts("\n", "<", "th", "ink", ">", "Hm. <b>", "<", "/thi", "nk>", "\n", "\n", "Hi"), name="in pieces", policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("[THI", "NK]Hm. <b>[/TH", "INK]Hi"), name="of Magistral", policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("◁think▷Hm. <b>", "◁/", "think▷Hi"), name="of Kimi", policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("<seed:think>Hm. <b></seed:think>Hi"), name="of Seed", policy=ON, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("<think>a</thinking>b</think>Hi"), name="closed as it was opened", policy=ON, text="Hi", reasoning="a</thinking>b", repairs=ONCE, to={"anthropic": messages(Thinking("a</thinking>b"), Text("Hi"))}),
        ),
    ),
    Case(
        number=229, refs="nbramia/LifeOS#568; QwenLM/qwen-code#8818",
        cause="a text contains a thinking tag, but is not thinking",
        does="Only a tag at the start of a choice counts. Tags in code and in later text stay text. If the reasoning has a member of its own, tags in the text after it stay text too.",
        forms=(
            chat(*texts("`<think>a</think>` is a tag."), name="in code", policy=ON, text="`<think>a</think>` is a tag.", to={"anthropic": messages(Text("`<think>a</think>` is a tag."))}),
            chat(*texts("```\n", "<think>a</think>\n```"), name="in a block of code", policy=ON, text="```\n<think>a</think>\n```", to={"anthropic": messages(Text("```\n<think>a</think>\n```"))}),
            chat(*texts("So ", "<think>", "a</think>"), name="later", policy=ON, text="So <think>a</think>", to={"anthropic": messages(Text("So <think>a</think>"))}),
            chat(*texts("<think>a</think>b <think>c</think>"), name="again", policy=ON, text="b <think>c</think>", reasoning="a", repairs=ONCE, to={"anthropic": messages(Thinking("a"), Text("b <think>c</think>"))}),
            chat(*texts("<thi", "s>"), name="another tag", policy=ON, text="<this>", to={"anthropic": messages(Text("<this>"))}),
            chat(chunk({"reasoning_content": "a"}), *texts("<think>b"), name="behind reasoning", policy=ON, text="<think>b", reasoning="a", to={"anthropic": messages(Thinking("a"), Text("<think>b"))}),
            chat(*texts("<think>a</think>b"), name="of a provider not known for it", text="<think>a</think>b", to={"anthropic": messages(Text("<think>a</think>b"))}),
        ),
    ),
    Case(
        number=230, refs="cubist38/mlx-openai-server#179; kekzl/imp#509; anomalyco/opencode#3555",
        cause="the text has only one of the two thinking tags, or neither",
        does='If the text ends before the closing tag, the thinking stays reasoning. A closing tag alone starts nothing. With the policy `think_tags="opened"`, the text before a closing tag is reasoning.',
        forms=(
            chat(*texts("<think>Hm. ", "</thi"), name="never closed", policy=ON, reasoning="Hm. </thi", repairs=ONCE, to={"anthropic": messages(Thinking("Hm. </thi"))}),
            chat(said("<think>Hm. "), said("</th"), name="cut", policy=ON, reasoning="Hm. </th", repairs=ONCE, stop=None, to={"anthropic": failed(Thinking("Hm. </th"), error=NO_REASON)}),
            chat(said("<thi"), name="cut inside the tag", policy=ON, text="<thi", stop=None, to={"anthropic": failed(Text("<thi"), error=NO_REASON)}),
            chat(chunk({"reasoning_content": "a"}), *texts("</think>", "\nHi"), name="a closing tag behind reasoning", policy=ON, text="Hi", reasoning="a", repairs=ONCE, to={"anthropic": messages(Thinking("a"), Text("Hi"))}),
            chat(*texts("Hm. ", "<b>", "</think>\n\nHi"), name="opened in the prompt", policy=OPENED, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("<think>Hm. ", "<b>", "</think>\n\nHi"), name="opened in both", policy=OPENED, text="Hi", reasoning="Hm. <b>", repairs=ONCE, to=SPLIT),
            chat(*texts("Hm. ", "</think>Hi"), name="opened and not said so", policy=ON, text="Hm. </think>Hi", to={"anthropic": messages(Text("Hm. </think>Hi"))}),
            chat({**HEAD, "choices": [{"index": 0, "delta": {"content": "<think>a"}, "finish_reason": None}]}, chunk({}, "length"), DONE, name="stopped by length", policy=ON, reasoning="a", stop="length", repairs=ONCE, to={"anthropic": messages(Thinking("a"), stop="max_tokens")}),
        ),
    ),
    Case(
        number=231, refs="NousResearch/hermes-agent#87900; vllm-project/vllm#40911; adolfousier/opencrabs#1260; BerriAI/litellm#12679",
        cause="a call is in the text, in the form of Hermes and Qwen (`<tool_call>{…}</tool_call>`), and the stop reason is `stop`",
        does="If the policy says so, streamkit turns the text into a call of a tool that the request offers. The arguments stay the same byte for byte, and the stop reason becomes `tool_calls`.",
        forms=(
            written_calls("Let me see.\n", "<tool", "_call>\n", '{"name": "re', 'ad", "argu', f'ments": {READ[:9]}', READ[9:], "}\n</tool", "_call>", name="hermes", text="Let me see.\n"),
            written_calls(f'<tool_call>\n{{"name": "read", "arguments": {READ}}}\n</tool_call>\n<tool_call>\n{{"name": "list_all", "arguments": {{}}}}\n</tool_call>', name="two", arguments=(READ, "{}")),
            written_calls('<tool_call>{"arguments": ', READ, ', "name": "read"}</tool_call>', name="arguments first"),
            written_calls('<tool_call>{"name": "list_all"}</tool_call>', name="no arguments", names=("list_all",), arguments=("",), verdicts=("empty",)),
            written_calls('<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a\\"}"}</tool_call>', name="arguments as a string", arguments=('{"path": "a"}',)),
            written_calls('<tool_call>{"name": "read", "arguments": {"path": "</tool_call>"}}</tool_call>\nDone.', name="the end in a string", arguments=('{"path": "</tool_call>"}',), text="\nDone.", to=(Use("call_1", "read", '{"path": "</tool_call>"}'), Text("\nDone."))),
            written_calls('<tool_call>\n{"name": "read", "arguments": {"path": "a"}\n</tool_call>', name="a bracket short", arguments=('{"path": "a"}',)),
            written_calls('<tool_call>\n{"name": "read", "arguments": {"path": "a"}}', name="no end, and the answer is over", arguments=('{"path": "a"}',)),
            chat(
                *texts('<think>I read.</think>\n\n<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'), name="behind thinking", policy=evolve(ALL, think_tags="on"), offered=TOOLS, reasoning="I read.",
                calls=(Call("read", '{"path": "a"}', id="call_1"),), stop="tool_calls", repairs={"call_in_text": 1, "stop_with_calls": 1, "thinking_in_text": 1},
                to={"anthropic": messages(Thinking("I read."), Use("call_1", "read", '{"path": "a"}'), stop="tool_use")},
            ),
            message(
                am.begin(0, "text", text=""), *(am.delta(0, "text_delta", text=one) for one in ("<tool_call>", '{"name":"list_all","arguments":{}}', "</tool_call>")), am.stop(0), policy=ALL, offered=TOOLS,
                calls=(Call("list_all", "{}", id="call_1"),), stop="tool_calls", repairs={"call_in_text": 1, "stop_with_calls": 1}, to={"openai-chat": written(Use("call_1", "list_all", "{}"), stop="tool_calls")},
            ),
        ),
        beside="tests/in_text/test_calls.py::test_a_whole_answer_is_read_as_its_stream",
    ),
    Case(
        number=232, refs="ollama/ollama#17742; ggml-org/llama.cpp#15012; antoinezambelli/forge#56; deadronos/nanogpt-provider-openclaw#83",
        cause="a call is in the text, in the form of Qwen3-Coder: from `<function=NAME>` to `</function>`, with or without `<tool_call>` around it",
        does="streamkit turns the parameters into JSON, with the types in the tool's schema. streamkit emits strings while they arrive.",
        forms=(
            written_calls(
                "<tool_call>\n<function=read>\n<para", "meter=path>\na ", "b.py\n", '</parameter>\n<parameter=lines>\n10\n</parameter>\n<parameter=where>\n{"x": 1.0}\n</parameter>\n</function>\n</tool', "_call>", name="qwen",
            ),
            written_calls('<function=read>\n<parameter=path>\na "b"\n\\\n</parameter>\n<parameter=all>True</parameter>\n<parameter=from>null</parameter>\n</function>\n</tool_call>', name="bare", arguments=('{"path": "a \\"b\\"\\n\\\\", "all": true, "from": null}',)),
            written_calls("<function=list_all>\n</function>", name="no parameters", names=("list_all",), arguments=("{}",)),
            written_calls("<function=read>\n<parameter=lines>\nmany\n</parameter>\n</function>", name="no number", arguments=('{"lines": "many"}',)),
            written_calls('<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a b.py</arg_value>\n<arg_key>lines</arg_key>\n<arg_value>10</arg_value>\n<arg_key>where</arg_key>\n<arg_value>{"x": 1.0}</arg_value>\n</tool_call>', name="glm"),
        ),
    ),
    Case(
        number=233, refs="NousResearch/hermes-agent#24534; BerriAI/litellm#12679; MoonshotAI's Kimi-K2",
        cause="a call is in the text, in the form of Kimi: from `<|tool_call_begin|>` to `<|tool_call_end|>`",
        does="streamkit turns the text into a call with the model's own id. The model requires this id in later requests.",
        forms=(
            written_calls(
                "I look.", "<|tool_calls_section_begin|><|tool_call_begin|>functions.re", "ad:0<|tool_call_argument_begin|>", READ, "<|tool_call_end|><|tool_call_begin|>functions.list_all:1<|tool_call_argument_begin|>{}<|tool_call_end|>", "<|tool_calls_section_end|>",
                name="kimi", text="I look.", arguments=(READ, "{}"), ids=("functions.read:0", "functions.list_all:1"),
            ),
            written_calls("<|tool_call_begin|>functions.list_all:0 <|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|tool_calls_section_end|>", name="without a section", names=("list_all",), arguments=("{}",), ids=("functions.list_all:0",)),
        ),
    ),
    Case(
        number=234, refs="sgl-project/sglang#40236; vllm-project/vllm#54686; cline/cline#14156; lsdefine/GenericAgent#804; TokenRhythm/opensquilla#985",
        cause="a call is in the text, in the form of DeepSeek: with DSML markers or with older markers",
        does="streamkit turns the text into a call. The model (with `string=\"true\"`) or the tool's schema says which parameters are strings and which are JSON.",
        forms=(
            written_calls(
                'I look.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="re', 'ad">\n<｜DSML｜parameter name="path" string="true">a b.py</｜DSML｜parameter>\n<｜DSML｜parameter name="lines" string="false">10</｜DSML｜para', "meter>\n"
                '<｜DSML｜parameter name="where" string="false">{"x": 1.0}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>', name="DSML", text="I look.\n\n",
            ),
            written_calls('<｜｜DSML｜｜invoke name="read">\n<｜｜DSML｜｜parameter name="path">10</｜｜DSML｜｜parameter>\n</｜｜DSML｜｜invoke>', name="DSML, bare and doubled", arguments=('{"path": "10"}',)),
            written_calls('<｜DSML｜function_calls>\n<｜DSML｜invoke name="list_all">{}</｜DSML｜invoke>\n</｜DSML｜function_calls>', name="DSML around an object", names=("list_all",), arguments=("{}",)),
            written_calls(f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{READ}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>list_all\n```json\n{{}}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", name="V3", arguments=(READ, "{}")),
            written_calls(f"Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{READ}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", name="V3.1", text="Hm."),
        ),
    ),
    Case(
        number=235, refs="anthropics/claude-code#77061; ggml-org/llama.cpp#16932; sgl-project/sglang#35565; NousResearch/hermes-agent#35129",
        cause="a call is in the text, in the form of another model: `<invoke name=…>`, `[TOOL_CALLS]`, `<|python_tag|>` or `<function=NAME>{…}</function>`",
        does="If the policy enables this form, streamkit turns the text into a call.",
        forms=(
            written_calls('Now.\n\ncount\n<invoke name="read">\n<parameter name="path">git status</parameter>\n</invoke>\n', name="claude", text="Now.\n\ncount\n", arguments=('{"path": "git status"}',)),
            written_calls('<function_calls>\n<invoke name="list_all">\n</invoke>\n</function_calls>', name="claude in a section", names=("list_all",), arguments=("{}",)),
            written_calls('<minimax:tool_call>\n<invoke name="read">\n<parameter name="lines">10</parameter>\n</invoke>\n</minimax:tool_call>', name="minimax", arguments=('{"lines": 10}',)),
            written_calls(f'[TOOL_CALLS][{{"name": "read", "arguments": {READ}}}, ', '{"name": "list_all", "arguments": {}}]', name="mistral, an array", arguments=(READ, "{}")),
            written_calls(f"[TOOL_CALLS]read[ARGS]{READ}[TOOL_CALLS]list_all[CALL_ID]abcdefghi[ARGS]{{}}", name="mistral, by name", arguments=(READ, "{}"), ids=("call_1", "abcdefghi")),
            written_calls(f"[TOOL_CALLS]read{READ}", name="mistral, name and object"),
            written_calls(f'<|python_tag|>{{"name": "read", "parameters": {READ}}}<|eom_id|>', name="llama"),
            written_calls(f"<function=read>{READ}</function>", name="llama, by name"),
        ),
    ),
    Case(
        number=236, refs="sgl-project/sglang#35565; jundot/omlx#3153; adolfousier/opencrabs#1260",
        cause="a text looks like a call but is not one, or a call in the text is truncated at the end",
        does="Tags in code or in a sentence stay text. Calls of tools that the request does not offer also stay text. A truncated call is never complete: its text is in the report.",
        forms=(
            only_text(PROSE, name="in code"),
            only_text('Write <tool_call>{"name": "read", "arguments": {}}</tool_call>.', name="in a sentence"),
            only_text('<tool_call>\n{"name": "write", "arguments": {}}\n</tool_call>', name="another tool"),
            only_text("<tool_call> opens a call, [TOOL_CALLS] too, and `", "<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "` as well.", name="talk of markers"),
            only_text('<tool_call>\n{"tool": "read"}\n</tool_call>', name="an object without a name"),
            only_text("<function=read", name="cut in a name"),
            only_text('    <tool_call>\n    {"name": "read", "arguments": {}}\n    </tool_call>', name="indented code"),
            only_text("Kimi writes:\n\n    <|tool_calls_section_begin|><|tool_call_begin|>functions.re", "ad:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>\n", name="indented code of Kimi's"),
            only_text("\tSay <|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{}<|tool_call_end|>", name="behind a word of indented code"),
            only_text("DeepSeek:\n\n    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>\n", name="indented code of DeepSeek's"),
            only_text('DSML:\n\n    <｜DSML｜tool_calls><｜DSML｜invoke name="read">{}</｜DSML｜invoke></｜DSML｜tool_calls>\n', name="indented DSML"),
            only_text('<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>', name="not asked for", policy=TOLERANT),
            cut_call(CUT_OBJECT, name="no reason", arguments='{"path": "a"'),
            cut_call(CUT_OBJECT, "}", name="length behind the object", arguments='{"path": "a"', stop="length"),
            cut_call(CUT_OBJECT, name="stop inside the object", arguments='{"path": "a"', stop="stop"),
            cut_call("Hm.\n<function=read>\n<parameter=path>\na", "</par", name="inside a parameter", arguments='{"path": "a</par', stop="length", text="Hm.\n"),
            cut_call("<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{}", name="no end of Kimi's", arguments="{", ids="functions.read:0"),
            cut_call('<tool_call>{"name": "read", "arguments": {"path": <b>}}</tool_call>', name="no JSON", arguments='{"path":', stop="stop", rest="<b>}}</tool_call>"),
            chat(
                calls(call(0, "a", "read", "{}")), said('<tool_call>{"name": "read", "arguments": {}}</tool_call>'), CALLED, DONE, name="beside a call of the wire's", policy=ALL, offered=TOOLS,
                text='<tool_call>{"name": "read", "arguments": {}}</tool_call>', calls=(Call("read", "{}", id="a"),), stop="tool_calls",
                to={"openai-chat": written(Text('<tool_call>{"name": "read", "arguments": {}}</tool_call>'), Use("a", "read", "{}"), stop="tool_calls")},
            ),
        ),
    ),
)  # fmt: skip
