"""The streams of the field failures through other software, judged by one function.

Run: ``python benchmarks/peers/field_failures.py`` (a few minutes: each peer gets a virtual environment of its own under
``benchmarks/peers/.venvs``, made with pip at the first run). Writes ``docs/benchmarks/field-failures.md``, which says what was
judged and what it does not say. ``--print`` writes nothing.

A peer that can't be installed or run is named with its error. The vectors are those of ``tests/vectors/field`` that come in as
openai-chat; what each peer is asked stands in its ``run_….py``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import field, frozen

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from streamkit.framing.sse import SSEParser  # noqa: E402 - behind the path to the tests, which no package installs
from tests.vectors.field import CASES  # noqa: E402
from tests.vectors.field.case import Case, Form  # noqa: E402
from tests.vectors.openai_chat import USAGE  # noqa: E402
from tests.vectors.vector import sse  # noqa: E402

VENVS = HERE / ".venvs"
PAGE = ROOT / "docs" / "benchmarks" / "field-failures.md"
DIALECT = "openai-chat"
DONE = re.compile(rb"data: ?\[DONE\]\s*\Z")
INSTALL_SECONDS, RUN_SECONDS = 900, 600


@frozen
class Peer:
    name: str
    script: str
    asked: str
    #: Tried in order; none: the interpreter that runs this script.
    requirements: tuple[str, ...] = ()
    usage: bool = False  #: streams get a usage chunk in front of ``[DONE]``


PEERS = (
    Peer("openai SDK", "run_openai_sdk.py", "`chat.completions.stream`, its final completion", ("openai==3.54.0",)),
    Peer(
        "LiteLLM",
        "run_litellm.py",
        "`completion(stream=True)`, then `stream_chunk_builder`",
        ("litellm==1.109.1", "litellm==1.106.2"),
    ),
    Peer("llm-rosetta", "run_llm_rosetta.py", "its gateway, to Anthropic", ("llm-rosetta==0.13.0",)),
    Peer(
        "llm-rosetta",
        "run_llm_rosetta.py",
        "the same, with a usage chunk in front of `[DONE]`",
        ("llm-rosetta==0.13.0",),
        usage=True,
    ),
    Peer("llm-babel", "run_llm_babel.py", "`translate_stream`, to Anthropic", ("llm-babel==0.3.0",)),
    Peer("streamkit", "run_streamkit.py", "`transcode`, to Anthropic"),
)


@frozen
class Run:
    """What came of one peer. ``wrong`` names for each failed case what was wrong with its streams."""

    peer: Peer
    version: str = ""
    wrong: dict[int, set[str]] = field(factory=dict)
    right_streams: int = 0
    errors: tuple[str, ...] = ()  #: of requirements that could not be installed, or of the run


# -- the streams and the judge -----------------------------------------------------------------------------------------


def vectors() -> list[tuple[Case, Form, str]]:
    return [
        (case, form, f"{case.number} {number}")
        for case in CASES
        for number, form in enumerate(case.forms)
        if form.dialect == DIALECT and form.open is None
    ]


def with_usage(body: bytes) -> bytes:
    """The stream of a server that was asked for usage and heeds it."""
    return body if b'"usage"' in body else DONE.sub(lambda done: sse(USAGE) + done[0], body)


def payloads(body: bytes) -> list[str]:
    parser = SSEParser(stray_errors=True)
    return [frame.text for frame in parser.feed(body) + parser.finish()]


def judge(form: Form, found: dict[str, Any]) -> str | None:
    """What is wrong with a peer's answer, in a word of ``WRONG``; None if nothing is."""
    if not form.clean:
        return "success" if found["success"] else None
    if found["error"] is not None:
        unfinished = form.stop == "length" and any(call.verdict == "truncated" for call in form.calls)
        return None if unfinished else "raised"
    expected = [(call.name, call.arguments) for call in form.calls if call.name]
    calls = [call for call in found["calls"] if call[0] or len(found["calls"]) > len(form.calls)]
    if len(expected) != len(calls) or not all(map(same_call, expected, calls)):
        return "calls"
    if found["text"] not in (form.text, form.text + form.refusal):
        return "text"
    left_out = bool(form.calls) and not calls  # a call that never got a name
    return None if found["stop"] in accepted(form.stop) or (left_out and found["stop"] == "stop") else "stop"


WRONG = {
    "calls": "calls lost, joined, made up or with other arguments",
    "text": "other text",
    "stop": "another stop reason, or none",
    "success": "success on a stream that was cut or that reported an error",
    "raised": "an exception or an error on a stream that can be read",
}


def same_call(expected: tuple[str, str], found: list[Any]) -> bool:
    name, arguments = found
    return name == expected[0] and isinstance(arguments, str) and meant(arguments) == meant(expected[1])


def meant(arguments: str) -> object:
    """Arguments as a value, numbers by their spelling; nothing and null are an empty object."""
    try:
        value = json.loads(arguments.strip() or "{}", parse_int=str, parse_float=str)
    except ValueError:
        return arguments
    return {} if value is None else value


def accepted(stop: str | None) -> tuple[str | None, ...]:
    """Not every dialect has a word for a refusal or for a stop sequence."""
    if stop == "refusal":
        return "refusal", "content_filter", "stop"
    return (stop, "stop") if stop == "stop_sequence" else (stop,)


# -- running a peer ----------------------------------------------------------------------------------------------------


def installed(requirement: str) -> Path:
    """The interpreter of an environment that has ``requirement``. Raises RuntimeError with pip's last word."""
    folder = VENVS / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        pip = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if pip.returncode:
            errors = [line for line in pip.stderr.splitlines() if line.startswith("ERROR")]
            raise RuntimeError(f"{requirement} could not be installed: {(errors or [pip.stderr])[-1]}")
        done.touch()
    return python


def run(peer: Peer, streams: list[tuple[Case, Form, str]]) -> Run:
    errors: list[str] = []
    python = None if peer.requirements else Path(sys.executable)
    for requirement in peer.requirements:
        try:
            python = installed(requirement)
            break
        except (RuntimeError, subprocess.SubprocessError) as error:
            errors.append(str(error))
    if python is None:
        return Run(peer, errors=tuple(errors))
    bodies = {name: with_usage(form.body) if peer.usage else form.body for _, form, name in streams}
    request = [
        {"name": name, "body": base64.b64encode(body).decode(), "payloads": payloads(body)}
        for name, body in bodies.items()
    ]
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(python), str(HERE / peer.script)], input=json.dumps(request), capture_output=True, text=True,
        timeout=RUN_SECONDS, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        return Run(peer, errors=(*errors, f"could not be run: {done.stderr.strip().splitlines()[-1]}"))
    answer = json.loads(done.stdout)
    wrong: dict[int, set[str]] = {}
    right = 0
    for case, form, name in streams:
        word = judge(form, answer["results"][name])
        right += word is None
        if word is not None:
            wrong.setdefault(case.number, set()).add(word)
    return Run(peer, answer["version"], wrong, right, tuple(errors))


# -- the page ----------------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# Field failures in other software

The streams of [field failures](../reference/field-failures.md) that come in as OpenAI Chat, through other software.
All that was run stands here, and nothing else does.
This page is written by the command, which makes an environment for each peer with pip:

```sh
python benchmarks/peers/field_failures.py
```
"""
JUDGED = """\
## What is judged

For a stream that can be read to a clean end: the calls in their order (names, and arguments: text, compared as JSON with
numbers by their spelling), the text, and the stop reason; an exception or an error is wrong.
Nothing, white space and null count as an empty object; a call that never gets a name may be left out, with the stop reason
`stop`; an error is right, too, where the token limit cut a call.
For a stream that was cut, or in which the provider reported an error: only that the peer does not end it as a success.
A case is right if all of its streams are.
Ids, reasoning, usage and the form of the output are not judged.

## What the table does not say

- How often a failure happens: each case counts once, rare or not.
- Which answer is the only right one.
  What a stream should come to where its server broke the rules is streamkit's choice, as the page of field failures tells it;
  others may have chosen otherwise, and a peer that reads a stream as its specification says may count as wrong here.
  That holds most of all for stop reasons: a client that hands on `stop` beside a call hands on what the server said.
- Which is better software.
  The streams were chosen because streamkit handles them, and the row of streamkit only shows that the judge lets a right
  answer pass.
- The same of all: the openai SDK and LiteLLM read the bytes and give a completion; llm-rosetta and streamkit read the bytes
  and write Anthropic's events; llm-babel translates JSON, so streamkit parsed the framing for it, and cases of framing test
  its host.
- How llm-rosetta does behind every server: it asks for usage and ends its output on the chunk that brings it, and most of our
  streams have none.
  So it stands in two rows, the second with that chunk added.
- Anything of other versions, of other settings, or of other dialects.
"""


def rows(runs: list[Run], cases: int, streams: int) -> Iterator[str]:
    yield f"| peer | version | asked | right of {cases} cases | right of {streams} streams |"
    yield "| --- | --- | --- | --- | --- |"
    for one in runs:
        right = (str(cases - len(one.wrong)), str(one.right_streams)) if one.version else ("not run", "not run")
        yield f"| {one.peer.name} | {one.version or '-'} | {one.peer.asked} | {right[0]} | {right[1]} |"


def wrongs(one: Run) -> Iterator[str]:
    """The cases that a peer got wrong, by what was wrong; a case of several streams may be in several lines."""
    for word, meaning in WRONG.items():
        if numbers := [str(number) for number, words in sorted(one.wrong.items()) if word in words]:
            yield f"- {meaning}: {', '.join(numbers)}"


def page(runs: list[Run], streams: list[tuple[Case, Form, str]]) -> str:
    parts = [INTRODUCTION, "\n".join(rows(runs, len({case.number for case, _, _ in streams}), len(streams))) + "\n"]
    parts.append(f"Python {platform.python_version()}.\n")
    parts += ["".join(f"{one.peer.name}: {error}.\n" for error in one.errors) for one in runs if one.errors]
    parts.append("## Cases that are wrong\n")
    parts += [
        f"{one.peer.name} {one.version}, {one.peer.asked}:\n\n" + ("\n".join(wrongs(one)) or "- none") + "\n"
        for one in runs
        if one.version
    ]
    return "\n".join([*parts, JUDGED])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--print", action="store_true", help="write no page")
    options = parser.parse_args()
    streams = vectors()
    runs = [run(peer, streams) for peer in PEERS]
    text = page(runs, streams)
    print(text)
    if not options.print:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
