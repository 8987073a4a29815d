"""An MCP server on standard input and output with one tool, ``look_up``, which says the word that it was started with.

One line of JSON a message, as the protocol's stdio transport has it.

Source: Model Context Protocol, "Lifecycle", "Transports" and "Tools".
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

TOOL: Final = {
    "name": "look_up",
    "description": "Says the word that a name stands for.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def answer(method: str, params: dict[str, Any], word: str) -> dict[str, Any] | None:
    """What a request is answered with; None if the server does not know the method."""
    match method:
        case "initialize":
            about = {"name": "words", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{params['arguments']['name']} stands for {word}"}]}
        case "ping":
            return {}
    return None


def main(word: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue  # a notification
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(message["method"], message.get("params") or {}, word)
        if result is None:
            reply["error"] = {"code": -32601, "message": f"there is no {message['method']}"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
