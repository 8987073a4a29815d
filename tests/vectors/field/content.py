"""Cases 321 to 330: what was thought and said, and went missing or ran together on its way to another dialect."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Thinking
from tests.vectors.field.reasoning import thinking
from tests.vectors.field.shapes import bedrock, chat, cohere, gemini, message, messages, responses_turn, written
from tests.vectors.openai_chat import DONE, STOP, chunk, said

LOOK, THINK = "**Look**", "**Think**"
BOTH = LOOK + THINK
ONE = {"text": "Hi", "reasoning": BOTH}
HI = rs.message(1, "Hi")


def in_one(before: str = LOOK, behind: str = THINK, **losses: int) -> dict[str, object]:
    """Two blocks of reasoning, in dialects that have one string."""
    said_so = (Thinking(f"{before}\n\n{behind}"), Text("Hi"))
    return {name: written(*said_so, losses={"block_boundary": 1, **losses}) for name in ("openai-chat", "ollama")}


OF_RESPONSES = in_one() | {"ollama": in_one(usage_detail=1)["ollama"]}

CASES = (
    Case(
        number=321, refs="zendev-sh/goai#129; NousResearch/hermes-agent#81911; huggingface/tau#467; diegosouzapw/OmniRoute#9527",
        cause="two parts of a summary, or two blocks of thinking, become one string, and `**Look****Think**` is no heading any more",
        does="A blank line stands between two blocks where a dialect has one string, unless their own text has it; a signed block keeps its very text.",
        forms=(
            responses_turn(*rs.thought(0, LOOK, THINK), *HI, **ONE, name="two parts of a summary", to=OF_RESPONSES | {"gemini": written(Thinking(f"{LOOK}\n\n{THINK}"), Text("Hi"), stop="STOP", losses={"block_boundary": 1})}),
            responses_turn(
                *rs.thought(0, f"{LOOK}\n\n", THINK), *HI, text="Hi", reasoning=f"{LOOK}\n\n{THINK}", name="a blank line at the end of the first", to=OF_RESPONSES,
            ),
            responses_turn(
                *rs.thought(0, LOOK, f"\n{THINK}"), *HI, text="Hi", reasoning=f"{LOOK}\n{THINK}", name="a line end at the start of the second", to=OF_RESPONSES,
            ),
            message(
                *thinking(0, LOOK, "c2ln"), *thinking(1, THINK, "c2lo"), *am.block(2, "Hi"), name="two blocks of Claude's", **ONE,
                to={
                    "ollama": written(Thinking(f"{LOOK}\n\n{THINK}"), Text("Hi"), losses={"block_boundary": 1, "reasoning_signature": 2}),
                    "openai-chat": written(Thinking(f"{LOOK}\n\n{THINK}", "c2lnc2lo"), Text("Hi")),
                },
            ),
            bedrock(
                ("messageStart", {"role": "assistant"}), br.delta(0, **br.thought(text=LOOK)), br.stop(0), br.delta(1, **br.thought(text=THINK)), br.stop(1), *br.block(2, "Hi"), br.finish(), br.counts(),
                name="Bedrock", **ONE, to=in_one(metadata=1),
            ),
            cohere(*co.block(0, LOOK, "thinking"), *co.block(1, THINK, "thinking"), *co.block(2, "Hi"), name="Cohere", **ONE, to=in_one()),
            gemini(
                gm.chunk(gm.thought(LOOK)), gm.chunk(gm.text("Hi")), gm.chunk(gm.thought(THINK), finish="STOP"), name="a thought behind the text", **ONE,
                to={"openai-chat": written(Thinking(f"{LOOK}\n\n{THINK}"), Text("Hi"), losses={"block_boundary": 1, "block_order": 1})},
            ),
            chat(
                chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": LOOK, "index": 0}]}), chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": THINK, "index": 1}]}),
                said("Hi"), STOP, DONE, name="details with numbers", **ONE, to={"ollama": in_one()["ollama"]},
            ),
            chat(
                chunk({"reasoning_content": "Lo"}), chunk({"reasoning_content": "ok"}), said("Hi"), STOP, DONE, name="pieces of one block", text="Hi", reasoning="Look",
                to={"ollama": written(Thinking("Look"), Text("Hi")), "anthropic": messages(Thinking("Look"), Text("Hi"))},
            ),
        ),
        beside="tests/translation/test_bodies.py::test_blocks_of_reasoning_are_parted_by_a_blank_line_in_one_string",
    ),
)  # fmt: skip
