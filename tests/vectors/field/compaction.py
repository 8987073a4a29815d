"""Case 220: summaries of what was said before, in answers."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors.field.case import Block, Case, Text
from tests.vectors.field.shapes import anthropic, written

SUMMARY = "They like pelicans."
BLOCK = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": SUMMARY, "encrypted_content": "E"}},
    {"type": "content_block_stop", "index": 0},
)  # fmt: skip
LOST = {"compaction": 1}
JOINED = {**LOST, "block_boundary": 1}

CASES: tuple[Case, ...] = (
    Case(
        number=220, refs="BerriAI/litellm#41456; otari#512",
        cause="the summary in Anthropic's `compaction` block arrives in a delta of its own type. Clients of other dialects do not get the summary",
        does="streamkit writes the summary as text, with and without streaming, and counts a loss for its form. streamkit drops the part that only Anthropic can read. Clients of Responses get an item with the whole block.",
        forms=(
            anthropic(
                am.START, *BLOCK, *am.block(1, "So?"), am.finish("end_turn"), am.STOP, text="So?", stop="stop",
                to={
                    "openai-chat": written(Text(SUMMARY + "So?"), losses=JOINED),
                    "openai-responses": written(Block("compaction"), Text("So?"), stop="completed", losses={"usage_unknown": 1}),
                    "gemini": written(Text(SUMMARY + "So?"), stop="STOP", losses=JOINED),
                },
            ),
        ),
        beside="tests/responses/test_compaction.py::test_a_summary_is_text_in_whole_answers_of_other_dialects",
    ),
)  # fmt: skip
