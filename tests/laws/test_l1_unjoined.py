"""L1: what is written without joining says what is written with it, in every dialect."""

from __future__ import annotations

import pytest

from streamkit.dialects import DIALECTS
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import StreamReport
from tests.laws.running import CLOCK, maker, read
from tests.sampling import part_of, parts
from tests.vectors import VECTORS, cohere
from tests.vectors.vector import named

#: Deltas of one kind that come in one read are written at once; a stream has to have many for that.
PLAN = named(
    cohere.START,
    *(cohere.plan(f"{number} ") for number in range(20)),
    *cohere.tool(0, "f_1", "f", "{}"),
    *cohere.block(0, "a text"),
    cohere.finish("TOOL_CALL"),
)


async def written(dialect: str, body: bytes, target: str, *, join: bool) -> tuple[bytes, StreamReport]:
    async def source():
        yield body

    report = StreamReport()
    pieces = transcode(
        source(), dialect, target, ReadOptions(make_id=maker()), report=report, reencode=True, clock=CLOCK, join=join
    )
    output = b""
    async with pieces as stream:
        try:
            output = b"".join([piece async for piece in stream])
        except Exception as error:  # noqa: BLE001 - compared, whatever it is
            output = repr(error).encode()
    return output, report


async def compared(dialect: str, body: bytes, target: str) -> None:
    joined, report = await written(dialect, body, target, join=True)
    single, same = await written(dialect, body, target, join=False)
    assert read(target, [single]).events == read(target, [joined]).events
    assert (same.losses, same.repairs, same.clean) == (report.losses, report.repairs, report.clean)
    assert str(same.error) == str(report.error)


@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize("target", DIALECTS)
async def test_without_joining_the_same_is_said(target, part):
    for vector in part_of(VECTORS, part, turn=list(DIALECTS).index(target)):
        await compared(vector.dialect, vector.body, target)


@pytest.mark.parametrize("target", DIALECTS)
async def test_a_plan_of_many_deltas_is_a_plan_without_joining(target):
    await compared("cohere", PLAN, target)
    if target == "cohere":
        single, _ = await written("cohere", PLAN, target, join=False)
        assert single.count(b'"tool_plan":"') == 21
        assert b'"thinking"' not in single
