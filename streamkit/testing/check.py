"""``check_stage``: check laws L1, L3 and L7 for a stage that a user wrote.

Source: design.md §1, §2.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from streamkit.errors import StreamError, UsageError
from streamkit.events import ResponseFinished, StreamEnded
from streamkit.pipeline import StageFunction, pipe
from streamkit.testing.cuts import cuts, sampled_cuts
from streamkit.testing.drive import adrive, joined
from streamkit.testing.recut import TEXTS, is_inserted, of_choice, recut, twice
from streamkit.testing.sources import FaultySource

PATIENCE_S = 2.0  #: the longest time that a cancelled stage may take to end, in seconds; a correct stage takes none
#: Up to this many places in a stream, every place is tried. If a stream has more, a sample of them is tried, so that a long
#: stream does not take quadratic time.
EACH_UP_TO = 100


def flat(items: Iterable[Any]) -> Any:
    """Join batches into one list, or bytes into one value."""
    items = list(items)
    if items and all(isinstance(item, bytes) for item in items):
        return b"".join(items)
    return [one for item in items for one in (item if isinstance(item, list) else [item])]


def same(one: Any, other: Any) -> bool:
    """The default of ``equal``: bytes are compared by value, events in the normal form of ``joined``."""
    if isinstance(one, bytes) or isinstance(other, bytes):
        return bool((one or b"") == (other or b""))
    return joined(one) == joined(other)


def says_success(flow: Any) -> bool:
    """The default of ``succeeds``: the flow has a clean ``StreamEnded``, and not only refusals. Bytes never succeed."""
    if isinstance(flow, bytes) or not any(isinstance(event, StreamEnded) and event.clean for event in flow):
        return False
    reasons = {event.reason for event in flow if isinstance(event, ResponseFinished)}
    return not reasons or not reasons <= {"refusal", "content_filter"}


async def check_stage(
    stage: StageFunction[Any, Any],
    items: Sequence[Any],
    *,
    equal: Callable[[Any, Any], bool] = same,
    succeeds: Callable[[Any], bool] = says_success,
    exhaustive: bool = False,
    seed: int = 0,
) -> None:
    """Check that ``stage`` keeps the laws on ``items``: its input, a list of batches of events or frames, or of bytes.

    * L1: however the input is split into batches (or reads), ``equal`` says that the output is the same.
    * L3: if the input is cut anywhere and does not report success, the output does not either. An exception of the input
      passes through. Both are checked only until the stage itself ends the response, as ``guard`` does.
    * L11: the output is the same wherever the text of deltas and fragments is split, also if usage, asides or deltas of
      another choice are between the pieces. Not checked if the output is bytes.
    * L7: if the consumer leaves early, is cancelled, or the input fails, the source is closed on the line after the ``async
      with``, in the consumer's task.

    ``equal`` and ``succeeds`` get a whole input or output: one list of events (all batches joined), or one ``bytes``. By
    default, L3 is checked only if the input has a ``StreamEnded``; for a stage that reads or writes bytes, pass
    ``succeeds``. ``exhaustive`` and ``seed`` are those of ``cuts``. Raises AssertionError that names the law and the cut, or
    says that the stage yields no batches or changed an event in place. Raises UsageError if an item of ``items`` is neither
    a list nor bytes, and ValueError if ``items`` is empty. Passes on any exception that ``stage`` raises on the whole input.
    """
    for item in items:
        if not isinstance(item, list | bytes):
            raise UsageError(
                f"check_stage takes a list of batches, or of bytes, not of {type(item).__qualname__}: write [[event, …], …]"
            )
    flow = flat(items)
    if not flow:
        raise ValueError("check_stage needs at least one item to cut")
    given = _shown_each(flow)
    try:
        await _check_cuts(stage, items, equal, exhaustive=exhaustive, seed=seed)
        await _check_texts(stage, items, equal, seed=seed)
        await _check_success(stage, items, succeeds)
        await _check_failure(stage, items, succeeds)
        await _check_early_exit(stage, items)
        await _check_cancellation(stage, items)
    finally:  # a changed input breaks other laws, too, and is why
        for before, after in zip(given, _shown_each(flow), strict=True):
            if before != after:
                raise AssertionError(
                    f"the stage changed an event that it was given; use attrs.evolve\n  {before}\nbecame\n  {after}"
                ) from None


def _shown_each(flow: Any) -> list[str]:
    return [] if isinstance(flow, bytes) else [repr(event) for event in flow]


def _regrouped(items: Sequence[Any], *, exhaustive: bool, seed: int) -> Iterator[list[Any]]:
    """Yield the same flow in other batches: one batch, one item each, every single cut (or a sample), random cuts."""
    flow = flat(items)
    if isinstance(flow, bytes):
        yield from cuts(flow, exhaustive=exhaustive, seed=seed)
        return
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    size = len(flow)
    singles = range(1, size) if exhaustive or size <= 40 else sampled_cuts(bytes(size), rng, 40)
    ways = [[], list(range(1, size)), *([place] for place in singles)]
    ways += [sorted({rng.randrange(1, size) for _ in range(rng.randint(1, 8))}) for _ in range(10 if size > 1 else 0)]
    for places in ways:
        yield [flow[a:b] for a, b in pairwise([0, *places, size])]


async def _check_cuts(
    stage: StageFunction[Any, Any],
    items: Sequence[Any],
    equal: Callable[[Any, Any], bool],
    *,
    exhaustive: bool,
    seed: int,
) -> None:
    outputs = await adrive(stage, [flat(items)])
    single = {type(output).__qualname__ for output in outputs if not isinstance(output, list | bytes)}
    if single:
        raise AssertionError(f"a stage must yield lists or bytes, not {', '.join(sorted(single))}: write yield [event]")
    whole = flat(outputs)
    if any(isinstance(one, list) for one in whole):
        raise AssertionError(
            "a stage must yield lists of events, not lists of lists: each item of its input is a list, "
            "so write for event in batch"
        )
    for batches in _regrouped(items, exhaustive=exhaustive, seed=seed):
        found = flat(await adrive(stage, batches))
        if not equal(found, whole):
            sizes = [len(batch) for batch in batches]
            raise AssertionError(
                f"L1, chunk invariance: if the input is cut into {_shown(sizes)}, the stage {_difference(found, whole)}"
            )


async def _check_texts(
    stage: StageFunction[Any, Any], items: Sequence[Any], equal: Callable[[Any, Any], bool], *, seed: int
) -> None:
    flow = flat(items)
    if isinstance(flow, bytes) or not any(type(event) in TEXTS for event in flow):
        return
    whole = flat(await adrive(stage, [flow]))
    if isinstance(whole, bytes):
        return  # nobody can tell which bytes the inserted events became
    for how, other in recut(flow, seed):
        found = [event for event in flat(await adrive(stage, [other])) if not is_inserted(event)]
        if not equal(found, whole):
            raise AssertionError(f"L11, text across deltas: if {how}, the stage {_difference(found, whole)}")
    doubled = twice(flow)
    if doubled is not None:
        both = flat(await adrive(stage, [doubled]))
        for choice in (0, 1):
            found, wanted = of_choice(both, choice), of_choice(whole, 0)
            if not equal(found, wanted):
                _, ended, _ = await _run(stage, FaultySource([[e for e in doubled if not isinstance(e, StreamEnded)]]))
                if ended:
                    return  # the stage ended the response for one choice, and dropped the rest of the other
                raise AssertionError(
                    f"L11, text across deltas: if two choices come in turn, the stage {_difference(found, wanted)} "
                    f"for choice {choice}"
                )


def _difference(found: Any, wanted: Any) -> str:
    """Return the first difference of two flows."""
    is_bytes = isinstance(found, bytes) or isinstance(wanted, bytes)
    one, other, how = found or b"", wanted or b"", ""
    if not is_bytes and joined(found) != joined(wanted):  # an ``equal`` of the caller may count how deltas are joined
        one, other, how = joined(found), joined(wanted), " (adjacent deltas joined)"
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if is_bytes:
        shown, where = [repr(each[max(place - 40, 0) : place + 40]) for each in (one, other)], f"around byte {place}"
    else:
        shown = [repr(each[place]) if place < len(each) else "nothing" for each in (one, other)]
        where = f"as item {place}{how}"
    return f"yields\n  {shown[0]}\ninstead of\n  {shown[1]}\n{where}"


async def _run(stage: StageFunction[Any, Any], source: FaultySource[Any]) -> tuple[Any, bool, Exception | None]:
    """Return the output, whether a ``StreamEnded`` came out before the source had ended, and the exception."""
    output: list[Any] = []
    ended = False
    try:
        async with pipe(source, stage) as stream:
            async for batch in stream:
                output.append(batch)
                ended = ended or (not source.ended and any(isinstance(one, StreamEnded) for one in batch))
    except Exception as error:  # noqa: BLE001 - the caller judges every exception
        return flat(output), ended, error
    return flat(output), ended, None


def _ends_itself(flow: Any, output: Any) -> bool:
    """Return whether the output, which has a ``StreamEnded``, ends a response that the input had not ended."""
    given = [*flow]  # of bytes, too
    return not any(isinstance(event, StreamEnded) for event in given) and any(
        isinstance(event, ResponseFinished) and event not in given for event in output
    )


async def _check_success(stage: StageFunction[Any, Any], items: Sequence[Any], succeeds: Callable[[Any], bool]) -> None:
    flow = flat(items)
    says_ends = not isinstance(flow, bytes) and any(isinstance(event, StreamEnded) for event in flow)
    if succeeds is says_success and not says_ends:
        return  # the check can't know which prefixes of the input this stage considers complete
    for end in _spread(len(flow)):
        cut = flow[:end]
        if succeeds(cut):
            continue
        for batch in [cut, [*cut, StreamEnded(clean=False)]] if says_ends else [cut]:
            output, ended, raised = await _run(stage, FaultySource([batch] if batch else []))
            if isinstance(raised, StreamError):
                continue  # the stage reported no success, which is right
            if raised is not None:
                raise raised
            if succeeds(output):
                if ended and _ends_itself(batch, output):
                    break  # the stage needs no more of the input, and how that ends does not matter
                raise AssertionError(
                    f"L3, success is never invented: the input is cut after {end} of {len(flow)} "
                    f"and the stage yields {output!r}"
                )


async def _check_failure(stage: StageFunction[Any, Any], items: Sequence[Any], succeeds: Callable[[Any], bool]) -> None:
    for count in _spread(len(items)):
        source = FaultySource(items, fail_after=count)
        try:
            output, ended, raised = await _run(stage, source)
        finally:
            _closed(source, f"the input failed after {count} items")
        if raised is not source.error and (raised is not None or not ended):
            raise AssertionError(
                f"L3, an exception of the input passes through: it failed after {count} items, "
                f"and of the stage came {raised!r}"
            )
        given = flat(items[:count])
        if not succeeds(given) and succeeds(output) and not (ended and _ends_itself(given, output)):
            raise AssertionError(
                f"L3, success is never invented: the input failed after {count} items and the stage yields {output!r}"
            )


async def _check_early_exit(stage: StageFunction[Any, Any], items: Sequence[Any]) -> None:
    outputs = len(await adrive(stage, items))
    for count in _spread(outputs):
        source = FaultySource(items)
        try:
            async with pipe(source, stage) as stream:
                for _ in range(count):
                    await anext(stream)
        except RuntimeError as error:
            raise AssertionError(f"L7, prompt close: left after {count} outputs, the stage gave {error!r}") from error
        finally:
            _closed(source, f"the consumer left after {count} outputs")


async def _check_cancellation(stage: StageFunction[Any, Any], items: Sequence[Any]) -> None:
    for count in _spread(len(items)):
        source = FaultySource(items, stall_after=count)
        where = f"the consumer was cancelled after {count} items"
        consumer = asyncio.ensure_future(_consume(source, stage, where))
        await asyncio.wait({consumer, asyncio.ensure_future(source.stalled.wait())}, return_when="FIRST_COMPLETED")
        source.stalled.set()
        if consumer.done():
            consumer.result()  # a stage need not read all of its input
            continue
        consumer.cancel()
        await asyncio.wait({consumer}, timeout=PATIENCE_S)
        if not consumer.done():
            raise AssertionError(f"L7, prompt close: {where} and still runs {PATIENCE_S} s later")
        if not consumer.cancelled():
            consumer.result()
            raise AssertionError(f"L7, prompt close: {where} and the stage swallowed it")


async def _consume(source: FaultySource[Any], stage: StageFunction[Any, Any], where: str) -> None:
    try:
        async with pipe(source, stage) as stream:
            async for _ in stream:
                pass
    finally:
        _closed(source, where)


def _spread(size: int) -> list[int]:
    """Return the numbers from 0 to ``size``, both included: all of them, or a sample if there are more than ``EACH_UP_TO``."""
    return sorted({*range(min(size, EACH_UP_TO)), *range(0, size, size // EACH_UP_TO + 1), size - 1, size} - {-1})


def _closed(source: FaultySource[Any], where: str) -> None:
    if source.open:
        raise AssertionError(f"L7, prompt close: {where} and the source is still open")
    if source.closed_in is not asyncio.current_task():
        raise AssertionError(
            f"L7, prompt close: {where} and the source was closed in another task, {source.closed_in!r}"
        )


def _shown(sizes: list[int]) -> str:
    return f"{sizes}" if len(sizes) <= 12 else f"{len(sizes)} batches, {sizes[:6]} …"
