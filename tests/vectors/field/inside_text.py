"""Cases 227 to 236: thinking and calls that models write into their text."""

from __future__ import annotations

from attrs import evolve

from streamkit.policy import TOLERANT
from tests.vectors import anthropic as am
from tests.vectors import gemini as gm
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Text, Thinking
from tests.vectors.field.shapes import NO_REASON, chat, failed, gemini, message, messages, ollama_turn, written
from tests.vectors.openai_chat import DONE, HEAD, STOP, chunk, said

ON = evolve(TOLERANT, think_tags="on")
OPENED = evolve(TOLERANT, think_tags="opened")
ONCE = {"thinking_in_text": 1}
SPLIT = {"anthropic": messages(Thinking("Hm. <b>"), Text("Hi"))}


def texts(*fragments: str) -> list[object]:
    """A whole Chat stream of these deltas."""
    return [*map(said, fragments), STOP, DONE]


CASES = (
    Case(
        number=227, refs="anomalyco/opencode#3555, #4033; decolua/9router#2231; RooCodeInc/Roo-Code#8989; QwenLM/qwen-code#10791",
        cause="thinking in the content, between `<think>` and `</think>`",
        does="It is reasoning: of providers that are known to send it so, of others by policy, in any dialect.",
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
        cause="a tag of thinking that comes in pieces, or is another model's",
        does="Tags are found wherever they were cut: `<think>`, `<thinking>`, `<thought>`, `<seed:think>`, `[THINK]`, `◁think▷`.",
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
        cause="text that has a tag of thinking in it, and is none",
        does="Only what begins a choice counts: code, later text and what stands behind reasoning of its own place stay text.",
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
        cause="only one of the two tags, or none",
        does="Thoughts that the end cuts off stay reasoning; a closing tag alone begins nothing, and with `opened` what stands in front of it is reasoning.",
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
)  # fmt: skip
