"""What boto3 makes of Bedrock's streams: its reader checks the checksums, the headers and the shapes of the events."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from tests.clients.shapes import Call, Choice, Reader, Reading, Usage, parsed

ASK: list[Any] = [{"role": "user", "content": [{"text": "?"}]}]


def fold_bedrock(client: Any, name: str) -> Reading:
    choice, usage, blocks = Choice(), None, Blocks()
    with closing(client.converse_stream(modelId=name, messages=ASK)["stream"]) as stream:
        for event in stream:
            ((kind, payload),) = event.items()
            match kind:
                case "contentBlockStart":
                    blocks.begin(payload["contentBlockIndex"])
                    if use := payload["start"].get("toolUse"):  # else an image
                        choice.calls.append(Call(use["name"], None, use["toolUseId"], ""))
                case "contentBlockDelta":
                    blocks.at(payload["contentBlockIndex"])
                    add_delta(choice, payload["delta"])
                case "contentBlockStop":
                    blocks.stop(payload["contentBlockIndex"])
                case "messageStop":
                    choice.stop = payload["stopReason"]
                case "metadata":
                    usage = bedrock_usage(payload["usage"])
                    assert payload["metrics"]["latencyMs"] >= 0
                case _:
                    assert kind == "messageStart"
    for call in choice.calls:
        call.arguments = parsed(call.text or "")
    return Reading({0: choice}, usage)


class Blocks:
    """Indices as a program may rely on them: dense from 0, one block open at a time."""

    def __init__(self) -> None:
        self.open: int | None = None
        self.next = 0

    def begin(self, index: int) -> None:
        assert self.open is None, f"block {index} begins while block {self.open} is open"
        assert index == self.next, f"block {index} begins after {self.next}"
        self.open = index

    def at(self, index: int) -> None:
        if self.open is None:  # a block of text or of reasoning has no start
            self.begin(index)
        assert index == self.open, f"a delta of block {index} while block {self.open} is open"

    def stop(self, index: int) -> None:
        assert index == self.open
        self.open, self.next = None, index + 1


def add_delta(choice: Choice, delta: dict[str, Any]) -> None:
    match delta:
        case {"text": text}:
            choice.text += text
        case {"toolUse": {"input": fragment}}:
            choice.calls[-1].text = (choice.calls[-1].text or "") + fragment
        case {"reasoningContent": {"text": text}}:
            choice.reasoning += text


def bedrock_usage(raw: dict[str, Any]) -> Usage:
    read, written = raw.get("cacheReadInputTokens"), raw.get("cacheWriteInputTokens")
    given = raw["inputTokens"] + (read or 0) + (written or 0)
    return Usage(given, raw["outputTokens"], raw["totalTokens"], read, written)


READERS = [Reader("boto3 fold", "bedrock", "boto3", fold_bedrock)]
