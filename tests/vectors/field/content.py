"""Cases 321 to 330: what was thought and said, and went missing or ran together on its way to another dialect."""

from __future__ import annotations

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Form, Text, Thinking
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


def copilot(*deltas: dict[str, str], name: str) -> Form:
    """Reasoning of Copilot's, which nobody else can read."""
    thought = Thinking("Look first.", seal("reasoning", "copilot", "T1A="))
    return chat(
        *map(chunk, deltas), said("Hi"), STOP, DONE, name=name, text="Hi", reasoning="Look first.",
        to={"anthropic": messages(thought, Text("Hi")), "ollama": written(Thinking("Look first."), Text("Hi"), losses={"reasoning_signature": 1})},
    )  # fmt: skip


def databricks(text: str, signature: str = "") -> dict[str, object]:
    summary = [{"type": "summary_text", "text": text, "signature": signature}]
    return chunk({"content": [{"type": "reasoning", "summary": summary}]})


def litellm(plain: str | None, text: str, signature: str = "") -> dict[str, object]:
    """A delta with a block, next to the plain text."""
    beside = {} if plain is None else {"reasoning_content": plain}
    return chunk({**beside, "thinking_blocks": [{"type": "thinking", "thinking": text, "signature": signature}]})


SIGNED_ONCE = {"anthropic": messages(Thinking("Look first.", "c2ln"), Text("Hi"))}
OF_RESPONSES = in_one() | {"ollama": in_one(usage_detail=1)["ollama"]}

CASES = (
    Case(
        number=321, refs="zendev-sh/goai#129; NousResearch/hermes-agent#81911; huggingface/tau#467; diegosouzapw/OmniRoute#9527",
        cause="two parts of a summary, or two thinking blocks, become one string. Then `**Look****Think**` is no longer a heading",
        does="If a dialect has one string for all reasoning, streamkit writes a blank line between two blocks, unless their text already has one. A signed block keeps its exact text.",
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
    Case(
        number=322, refs="BerriAI/litellm#35021; caozhiyuan/copilot-api#111",
        cause="software does not read the members of Copilot's reasoning (`reasoning_text`, `cot_summary`), or the members that must be sent back with the reasoning (`reasoning_opaque`, `cot_id`)",
        does="streamkit reads all these members. The part that only Copilot can read becomes a Copilot signature, which is sealed for clients of other vendors.",
        forms=(
            copilot({"reasoning_text": "Look "}, {"reasoning_text": "first."}, {"reasoning_opaque": "T1A="}, name="text, then the opaque"),
            copilot({"reasoning_text": "Look first.", "reasoning_opaque": "T1A="}, name="both at once"),
            copilot({"cot_summary": "Look ", "cot_id": "T1A="}, {"cot_summary": "first.", "cot_id": "T1A="}, name="an id with each delta"),
            copilot({"reasoning_opaque": "T1A="}, {"reasoning_text": "Look "}, {"reasoning_text": "first."}, name="the opaque in front"),
        ),
        beside="tests/requests/test_openai_chat.py::test_reasoning_under_every_name_goes_back_as_it_came",
    ),
    Case(
        number=323, refs="mozilla-ai/any-llm#281; Databricks' documentation (query-reason-models)",
        cause="reasoning is a part of the content: `{type: reasoning, summary: [{type: summary_text, text, signature}]}`",
        does="streamkit reads the texts in this part as reasoning. The signature belongs to the vendor of the model.",
        forms=(
            chat(
                databricks("Look "), databricks("first."), databricks("", "c2ln"), said("Hi"), STOP, DONE, text="Hi", reasoning="Look first.", repairs={"content_as_list": 3},
                to={"anthropic": messages(Thinking("Look first.", "c2ln"), Text("Hi")), "ollama": written(Thinking("Look first."), Text("Hi"), losses={"reasoning_signature": 1})},
            ),
        ),
    ),
    Case(
        number=324, refs="open-webui/open-webui#29860; BerriAI/litellm's `thinking_blocks`",
        cause="reasoning is in `reasoning_content` and also in LiteLLM's `thinking_blocks`. The last block has the signature, and repeats all the text",
        does="streamkit reads the text once, with its signature. In a whole message, streamkit takes the boundaries between blocks from `thinking_blocks`, because `reasoning_content` has none.",
        forms=(
            chat(
                litellm("Look ", "Look "), litellm("first.", "first."), litellm("", "Look first.", "c2ln"), said("Hi"), STOP, DONE, name="next to reasoning_content", text="Hi", reasoning="Look first.", to=SIGNED_ONCE,
            ),
            chat(
                litellm("Look ", "Look "), litellm("first.", "Look first.", "c2ln"), said("Hi"), STOP, DONE, name="with the last piece", text="Hi", reasoning="Look first.", to=SIGNED_ONCE,
            ),
            chat(
                chunk({"reasoning_content": "Look first."}), litellm("", "Look first.", "c2ln"), said("Hi"), STOP, DONE, name="a block at the end alone", text="Hi", reasoning="Look first.", to=SIGNED_ONCE,
            ),
            chat(
                litellm(None, "Look "), litellm(None, "first.", "c2ln"), said("Hi"), STOP, DONE, name="blocks alone", text="Hi", reasoning="Look first.", to=SIGNED_ONCE,
            ),
            chat(
                chunk({"reasoning_content": "Look first.", "provider_specific_fields": {"thinking_blocks": [{"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}]}}), said("Hi"), STOP, DONE,
                name="in provider_specific_fields", text="Hi", reasoning="Look first.", to=SIGNED_ONCE,
            ),
            chat(
                litellm("A", "A"), litellm("", "A", "c2ln"), litellm("BC", "BC"), litellm("", "BC", "c2lo"), said("Hi"), STOP, DONE, name="two blocks", text="Hi", reasoning="ABC",
                to={"anthropic": messages(Thinking("A", "c2ln"), Thinking("BC", "c2lo"), Text("Hi"))},
            ),
        ),
        beside="tests/responses/test_openai_chat.py::test_a_response",
    ),
)  # fmt: skip
