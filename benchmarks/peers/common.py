"""What the runners of all peers share: streams in on standard input, results out on standard output. Standard library only.

A runner is a script that a peer's own interpreter runs. It gets ``[{"name", "body", "payloads"}]``: the bytes of a stream in
base64, and the texts of its ``data:`` events for peers that have no framing of their own. It prints
``{"version", "results": {name: result}}``, where a result is::

    {"calls": [[name, arguments]], "text": str, "stop": str | null, "success": bool, "error": str | null}

``stop`` is in the words of OpenAI Chat. ``success``: the peer ended as a client ends on success, with one of ``REASONS`` (and,
where its output is a stream, the terminator), without an error and without an exception.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

Result = dict[str, Any]
#: Reasons that say how an answer ended; any other word tells a client that something is odd.
REASONS = {"stop", "tool_calls", "function_call", "length", "content_filter", "refusal", "stop_sequence"}
STOPS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


def result(
    calls: Iterable[tuple[Any, Any]], text: str | None, stop: str | None, *, success: bool, error: str | None = None
) -> Result:
    return {
        "calls": [[name or "", arguments or ""] for name, arguments in calls],
        "text": text or "",
        "stop": stop,
        "success": success and stop in REASONS and error is None,
        "error": error,
    }


def main(distribution: str, answer: Callable[[str, dict[str, Any]], Result]) -> None:
    """Ask ``answer`` for the result of each stream; it gets a base URL that replays the bytes, and the stream."""
    streams = json.load(sys.stdin)
    server = replay([base64.b64decode(stream["body"]) for stream in streams])
    results = {}
    for number, stream in enumerate(streams):
        try:
            results[stream["name"]] = answer(f"http://127.0.0.1:{server.server_port}/{number}", stream)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
            results[stream["name"]] = result([], "", None, success=False, error=f"{type(error).__name__}: {error}")
    server.shutdown()
    json.dump({"version": version(distribution), "results": results}, sys.stdout)


def replay(bodies: list[bytes]) -> ThreadingHTTPServer:
    """A server on the loopback whose path ``/3/…`` answers with the third body, in one chunk, and ends by the book."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = bodies[int(self.path.split("/")[1])]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if body:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(body), body))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing: standard error is for the peer."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def events_of(output: str) -> list[dict[str, Any]]:
    """The payloads of an event stream as our peers write it: one ``data:`` line an event."""
    lines = (line.removeprefix("data: ") for line in output.split("\n") if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def read_messages(events: Iterable[dict[str, Any]], error: str | None = None) -> Result:
    """What a stream of Anthropic Messages says, read leniently: blocks by their latest start at an index."""
    blocks: dict[Any, dict[str, Any]] = {}
    calls: list[dict[str, Any]] = []
    text, stop, ended = "", None, False
    for event in events:
        kind = event["type"]
        if kind == "content_block_start":
            block = blocks[event["index"]] = {**event["content_block"], "pieces": ""}
            text += block.get("text") or ""
            if block["type"] == "tool_use":
                calls.append(block)
        elif kind == "content_block_delta":
            text += event["delta"].get("text") or ""
            blocks.get(event["index"], {"pieces": ""})["pieces"] += event["delta"].get("partial_json") or ""
        elif kind == "message_delta":
            stop = event["delta"].get("stop_reason") or stop
        elif kind == "error":
            error = str(event["error"].get("message"))
        ended = ended or kind == "message_stop"
    said = [(call.get("name"), call["pieces"] or json.dumps(call.get("input") or {})) for call in calls]
    return result(said, text, STOPS.get(str(stop), stop), success=ended, error=error)


def read_completion(completion: Any) -> Result:
    """What an object shaped as a chat completion of the OpenAI SDK says in its first choice."""
    choice = completion.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    return result(calls, choice.message.content, choice.finish_reason, success=True)
