"""Write the results of an examination: as an object for programs, in Markdown for an issue, and as lines for people.

No form contains the host. Each contains the model's name, and the model's output only where a rule quotes it. ``lint`` of a
kept stream reports the same violations and repairs.

Source: observe.md O33, O34.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import asdict

from streamkit import __version__
from streamkit.lab.doctor.findings import Finding
from streamkit.lab.doctor.judging import WORSE, Judged
from streamkit.lab.doctor.probes import Plan
from streamkit.lint import VERDICTS, Found, members_of, sentence
from streamkit.report import Status

#: The report's text if the server's reaction to a disconnect can't be seen: doctor left the stream at its first read.
NOT_OBSERVABLE: Final = "abandoned at its first read; whether the server then stops is visible only in its own metrics"
_NOT_THIS_DIALECT: Final = "not this dialect"


def status_of(judged: Sequence[Judged]) -> Status:
    """Return the worst status of all responses."""
    return max((each.status for each in judged), key=WORSE.index, default=Status.DONE)


def verdict_of(status: Status) -> str:
    """Return the name of a status."""
    return _NOT_THIS_DIALECT if status is Status.NOT_THIS_DIALECT else VERDICTS.get(status, "broken")


def as_object(dialect: str, model: str, plan: Plan, judged: Sequence[Judged]) -> dict[str, Any]:
    """Return all results as JSON values."""
    return {
        "streamkit": __version__,
        "dialect": dialect,
        "model": model,
        "verdict": verdict_of(status_of(judged)),
        "requests": len(judged),
        "most_tokens": plan.tokens,
        "left_out": dict(plan.left_out),
        "probes": [_probe_object(each) for each in judged],
    }


def _probe_object(judged: Judged) -> dict[str, Any]:
    recording, check, response = judged.recording, judged.check, judged.response
    answer: dict[str, Any] = {
        "probe": judged.probe.name,
        "verdict": verdict_of(judged.status),
        "status": None if recording.response is None else recording.response.status,
        "end": recording.ending,
        "bytes": len(recording.body),
        **asdict(judged.timing),
    }
    if response is not None:
        usage = response.usage
        answer |= {
            "stop_reason": response.choices[0].stop_reason if response.choices else None,
            "calls": [call.verdict.kind if call.verdict is not None else None for call in response.tool_calls],
            "input_tokens": None if usage is None else usage.input_total,
            "output_tokens": None if usage is None else usage.output_total,
        }
    if check is not None:
        answer |= members_of(check)
    return {**answer, "findings": [asdict(finding) for finding in judged.findings]}


def line_of(judged: Judged) -> str:
    """Return one line that summarises a response without listing its faults."""
    return f"{judged.probe.name:<9} {verdict_of(judged.status):<11} {_facts(judged)}"


def _facts(judged: Judged) -> str:
    recording, timing, response = judged.recording, judged.timing, judged.response
    if recording.response is None:
        return "no response"
    if recording.response.status != 200 or judged.probe.way == "spoiled":
        return f"status {recording.response.status}" + (f", {judged.failed.type}" if judged.failed is not None else "")
    if judged.probe.way == "left":
        return NOT_OBSERVABLE
    reads = _several(timing.reads, "read")
    facts = [f"{_several(timing.frames, 'event')} in {reads}" if judged.probe.streams else reads]
    if timing.first_s is not None:
        facts.append(f"first after {timing.first_s:.2f} s")
    if timing.greatest_gap_s is not None:
        facts.append(f"greatest gap {timing.greatest_gap_s:.2f} s")
    if response is not None:
        if response.tool_calls:
            facts.append(_several(len(response.tool_calls), "call"))
        if response.choices and response.choices[0].stop_reason:
            facts.append(f"stop reason {response.choices[0].stop_reason}")
        if response.usage is not None:
            facts.append(f"{_count(response.usage.input_total)} + {_count(response.usage.output_total)} tokens")
    return ", ".join(facts)


def _several(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else str(tokens)


def found_lines(judged: Sequence[Judged]) -> Iterator[tuple[str, str]]:
    """Yield each fault once: a line with the probes in which it was found, and its meaning or advice."""
    rules: dict[object, list[tuple[str, Found]]] = {}
    findings: dict[object, list[tuple[str, Finding]]] = {}
    for each in judged:
        for found in () if each.check is None else each.check.found:
            rules.setdefault(found.kind, []).append((each.probe.name, found))
        for finding in each.findings:
            key = finding.rule, finding.severity, finding.advice
            findings.setdefault(key, []).append((each.probe.name, finding))
    for group in rules.values():
        probe, first = group[0]
        place = f"{probe}, byte {first.offset}" + (f", frame {first.frame}" if first.frame >= 0 else "")
        yield f"{_names(group)}: {first.what} ({place}{_more(group)})", sentence(first.explanation)
    for others in findings.values():
        _, finding = others[0]
        yield f"{_names(others)}: {finding.severity} {finding.rule}: {finding.message}", finding.advice


def _names(group: Sequence[tuple[str, object]]) -> str:
    return ", ".join(dict.fromkeys(name for name, _ in group))


def _more(group: Sequence[object]) -> str:
    return f"; {len(group)} in all" if len(group) > 1 else ""


def as_lines(dialect: str, model: str, plan: Plan, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines after those of the responses: faults, omitted probes, and the verdict."""
    for what, meaning in found_lines(judged):
        yield f"  {what}"
        yield f"    {meaning}"
    for name, reason in plan.left_out.items():
        yield f"  {name}: left out: {reason}"
    yield f"{dialect}, {model}: {verdict_of(status_of(judged))}"


def as_markdown(dialect: str, model: str, plan: Plan, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of a report to paste into an issue. Text from the server is in code spans."""
    yield f"### {_code(dialect)}, model {_code(model)}: {verdict_of(status_of(judged))}"
    yield ""
    yield f"`streamkit doctor` {__version__}, {len(judged)} requests."
    yield ""
    yield "| request | verdict | answer |"
    yield "| --- | --- | --- |"
    for each in judged:
        yield f"| {each.probe.name}: {each.probe.title} | {verdict_of(each.status)} | {_facts(each)} |"
    for name, reason in plan.left_out.items():
        yield f"| {name} | left out | {_cell(reason)} |"
    yield ""
    for what, meaning in found_lines(judged):
        yield f"- {_code(what)}"
        yield f"  {_cell(meaning)}"


_ESCAPED: Final[Mapping[int, str]] = {ord(mark): f"\\{mark}" for mark in "\\`*_[]<>|#~"}


def _cell(text: str) -> str:
    return text.translate(_ESCAPED)


def _code(text: str) -> str:
    """Return a code span that contains ``text``. No backtick in the text may end the span early (CommonMark §6.1)."""
    return f"`` {text} ``" if "`" in text and "``" not in text else f"`{text.replace('`', chr(39))}`"
