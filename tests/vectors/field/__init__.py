"""The catalogue of field failures: reports of other software, and what streamkit does with each cause.

A module for each section. The wire bytes are our own and as few as show the cause; references name the reports.
"""

from __future__ import annotations

from tests.vectors.field import (
    anthropic_blocks,
    arguments,
    chat_answers,
    compaction,
    content,
    elsewhere,
    ending,
    endings,
    error_members,
    errors,
    failed_turns,
    framing,
    heldout,
    ids,
    index,
    inside_text,
    later,
    names,
    newest,
    other,
    reasoning,
    responses_items,
    reuse,
    shapes_2026,
    starts,
    unclosed,
    usage,
    variants,
    waiting,
    wholes,
)
from tests.vectors.field.case import Case, Elsewhere

SECTIONS = (
    index, reuse, ids, names, arguments, ending, usage, anthropic_blocks, reasoning, framing, errors, other,
    wholes, shapes_2026, failed_turns,
    compaction, inside_text, responses_items, later, chat_answers, starts, unclosed,
    heldout, error_members, endings, content, waiting, newest, variants,
)  # fmt: skip
CASES: tuple[Case, ...] = tuple(case for section in SECTIONS for case in section.CASES)
ELSEWHERE: tuple[Elsewhere, ...] = elsewhere.CASES
#: Every number of the first catalogue. Later sections have numbers of their own (``tools/field_failures.py``).
FIRST_NUMBERS = range(1, 137)
