"""Requests that are not what they say: members that name another host, and bytes that hide a second request in the first.

Source: limits.md T5, T7; RFC 9112 §6.3, §7.1, §11.2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.gateway.running import asking

#: Members by which other gateways let a client choose where its request goes, or with which key.
HOSTS = (
    "base_url",
    "baseUrl",
    "baseURL",
    "api_base",
    "apiBase",
    "url",
    "endpoint",
    "host",
    "upstream",
    "target",
    "azure_endpoint",
    "proxy",
    "proxies",
    "http_proxy",
    "webhook",
    "callback_url",
    "vertex_location",
    "api_url",
    "openai_api_base",
    "X-Forwarded-Host",
    "location",
    "redirect",
    "BASE_URL",
)
#: Where they are hidden.
NESTS = ("extra_body", "litellm_params", "metadata", "options", "generationConfig", "client", "provider", "__proto__")


def hidden(value: str) -> Iterator[dict[str, Any]]:
    """Members that lead to ``value``, at the top and below."""
    for name in HOSTS:
        yield {name: value}
    for name in HOSTS:
        yield {"extra_body": {name: value}, "litellm_params": {name: value}}
    for nest in NESTS:
        yield {nest: {"base_url": value, "api_base": value, "headers": {"host": value}}}
        yield {nest: {"litellm_params": {"extra_body": {"api_base": value}}}}
    for headers in ("headers", "extra_headers", "default_headers", "extraHeaders"):
        yield {headers: {"Host": value, "X-Forwarded-Host": value, "Authorization": "Bearer stolen", "Location": value}}
    yield {"fallbacks": [{"api_base": value, "model": "m"}], "model_list": [{"litellm_params": {"api_base": value}}]}
    yield {"api_key": "stolen", "api_version": value, "organization": value, "custom_llm_provider": value}
    yield {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"$ref": value}}}]}
    yield {"tools": [{"name": "f", "input_schema": {"$ref": f"{value}/schema.json", "$id": value, "$schema": value}}]}
    yield {"tools": [{"type": "mcp", "server_label": "s", "server_url": value}]}
    yield {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"$ref": value}}}}


def bodies(value: str) -> Iterator[tuple[str, bytes]]:
    """Path and body of requests of each client that try to have ``value`` asked: more than 200."""
    members = list(hidden(value))
    clients = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini")
    for number, member in enumerate(members):
        for client in {clients[number % 5], clients[(number + 2) % 5]}:
            path, body = asking(client, stream=False)
            yield path, json.dumps({**body, **member}).encode()
    for client in clients:
        path, body = asking(client, stream=False)
        text = json.dumps(body)[:-1]
        # the same name twice, spelled by escapes, in full width, with a blank, with a NUL
        for name in ("base_url", r"\u0062ase_url", "\uff42ase_url", " base_url", r"base_url\u0000"):
            yield path, f'{text}, "{name}": "{value}", "{name}": "{value}"}}'.encode()
        yield (
            f"{path}{'&' if '?' in path else '?'}base_url={value}&api_base={value}&url={value}",
            json.dumps(body).encode(),
        )
        for model in (
            value,
            f"openai/{value}",
            f"m@{value}",
            f"m?base_url={value}",
            f"{value}#",
            "../../admin",
            "m\r\nHost: x",
        ):
            if client == "gemini":
                yield f"/v1beta/models/{_encoded(model)}:generateContent", json.dumps(body).encode()
            else:
                yield path, json.dumps({**body, "model": model}).encode()
    for part in (
        {"type": "image_url", "image_url": {"url": f"{value}/a.png"}},
        {"type": "file", "file": {"file_id": value}},
        {"type": "input_audio", "input_audio": {"data": value, "format": "wav"}},
    ):
        path, body = asking("openai-chat", stream=False)
        yield path, json.dumps({**body, "messages": [{"role": "user", "content": [part]}]}).encode()
    for source in ({"type": "url", "url": f"{value}/a.png"}, {"type": "file", "file_id": value}):
        path, body = asking("anthropic", stream=False)
        yield (
            path,
            json.dumps(
                {**body, "messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}
            ).encode(),
        )
    path, body = asking("gemini", stream=False)
    body["contents"][0]["parts"].append({"fileData": {"fileUri": f"{value}/a.png", "mimeType": "image/png"}})
    yield path, json.dumps(body).encode()


def _encoded(model: str) -> str:
    return "".join(letter if letter.isalnum() else f"%{byte:02X}" for letter in model for byte in letter.encode())


# -- bytes -------------------------------------------------------------------------------------------------------------

PATH = "/v1/chat/completions"


def chat(model: str) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": False}).encode()


#: The request that is to be smuggled: whoever's it is, the gateway may never take it for one.
SMUGGLED = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (
    PATH.encode(),
    len(chat("smuggled")),
) + chat("smuggled")


def _request(*headers: bytes, body: bytes = b"", start: bytes = b"POST " + PATH.encode() + b" HTTP/1.1") -> bytes:
    return b"\r\n".join([start, b"host: localhost", b"content-type: application/json", *headers, b"", b""]) + body


def _chunked(data: bytes, *, size: bytes | None = None, line_end: bytes = b"\r\n", rest: bytes = b"0\r\n\r\n") -> bytes:
    return (size if size is not None else b"%x" % len(data)) + line_end + data + b"\r\n" + rest


FIRST = chat("first")
LENGTH = b"content-length: %d" % len(FIRST)
#: The first request's body by its length, and the other request inside what only another reading takes for a body.
BOTH = _chunked(FIRST) + SMUGGLED
CHUNKED = b"transfer-encoding: chunked"
BOTH_LENGTH = b"content-length: %d" % len(BOTH)

#: Each is one request at most. Names say where two readers of HTTP may differ.
CORPUS = {
    "CL.TE": _request(BOTH_LENGTH, CHUNKED, body=BOTH),
    "TE.CL": _request(CHUNKED, b"content-length: 4", body=BOTH),
    "TE.TE with an unknown one": _request(BOTH_LENGTH, CHUNKED, b"transfer-encoding: x", body=BOTH),
    "TE.TE with identity": _request(BOTH_LENGTH, b"transfer-encoding: chunked, identity", body=BOTH),
    "chunked is not the last": _request(BOTH_LENGTH, b"transfer-encoding: chunked, gzip", body=BOTH),
    "an unknown coding": _request(BOTH_LENGTH, b"transfer-encoding: xchunked", body=BOTH),
    "a coding in quotes": _request(BOTH_LENGTH, b'transfer-encoding: "chunked"', body=BOTH),
    "a tab before the coding": _request(BOTH_LENGTH, b"transfer-encoding:\tchunked", body=BOTH),
    "a vertical tab before the coding": _request(BOTH_LENGTH, b"transfer-encoding:\x0bchunked", body=BOTH),
    "a NUL behind the coding": _request(BOTH_LENGTH, b"transfer-encoding: chunked\x00", body=BOTH),
    "a blank before the colon": _request(BOTH_LENGTH, b"transfer-encoding : chunked", body=BOTH),
    "a blank before the name": _request(BOTH_LENGTH, b" transfer-encoding: chunked", body=BOTH),
    "an obs-fold": _request(BOTH_LENGTH, b"transfer-encoding:\r\n chunked", body=BOTH),
    "an obs-fold of another header": _request(BOTH_LENGTH, b"x: a\r\n\ttransfer-encoding: chunked", body=BOTH),
    "a bare LF ends a header": _request(BOTH_LENGTH, b"x: a\ntransfer-encoding: chunked", body=BOTH),
    "a bare CR in a header": _request(BOTH_LENGTH, b"x: a\rtransfer-encoding: chunked", body=BOTH),
    "an underscore in the name": _request(LENGTH, b"transfer_encoding: chunked", body=FIRST + SMUGGLED[:0]),
    "two lengths": _request(BOTH_LENGTH, LENGTH, body=FIRST + SMUGGLED),
    "two lengths, the other way": _request(LENGTH, b"content-length: 0", body=FIRST + SMUGGLED),
    "two lengths in one line": _request(b"content-length: %d, 0" % len(FIRST), body=FIRST + SMUGGLED),
    "a length with a sign": _request(b"content-length: +%d" % len(FIRST), body=FIRST + SMUGGLED),
    "a negative length": _request(b"content-length: -1", body=FIRST + SMUGGLED),
    "a length in hex": _request(b"content-length: 0x%x" % len(FIRST), body=FIRST + SMUGGLED),
    "a length with an underscore": _request(b"content-length: 1_0", body=FIRST + SMUGGLED),
    "a length with a blank inside": _request(b"content-length: 1 0", body=FIRST + SMUGGLED),
    "an empty length": _request(b"content-length:", body=FIRST + SMUGGLED),
    "a length beyond 64 bits": _request(b"content-length: 18446744073709551616", body=FIRST + SMUGGLED),
    "a length in other digits": _request("content-length: \u0661".encode(), body=FIRST + SMUGGLED),
    "a NUL in a length": _request(LENGTH + b"\x00", body=FIRST + SMUGGLED),
    "a chunk's size with a sign": _request(CHUNKED, body=_chunked(FIRST, size=b"+%x" % len(FIRST)) + SMUGGLED),
    "a chunk's size with 0x": _request(CHUNKED, body=_chunked(FIRST, size=b"0x%x" % len(FIRST)) + SMUGGLED),
    "a chunk's size with an underscore": _request(CHUNKED, body=_chunked(FIRST, size=b"_%x" % len(FIRST)) + SMUGGLED),
    "a chunk's size beyond 64 bits": _request(CHUNKED, body=_chunked(FIRST, size=b"f" * 17) + SMUGGLED),
    "a chunk's size that is negative": _request(CHUNKED, body=_chunked(FIRST, size=b"-1") + SMUGGLED),
    "a chunk's size that is missing": _request(CHUNKED, body=_chunked(FIRST, size=b"") + SMUGGLED),
    "a chunk that is longer than its size": _request(CHUNKED, body=_chunked(FIRST + SMUGGLED, size=b"%x" % len(FIRST))),
    "a bare LF behind a chunk's size": _request(CHUNKED, body=_chunked(FIRST, line_end=b"\n") + SMUGGLED),
    "a bare CR behind a chunk's size": _request(CHUNKED, body=_chunked(FIRST, line_end=b"\r") + SMUGGLED),
    "a bare LF in a chunk's extension": _request(CHUNKED, body=_chunked(FIRST, size=b"%x;\n" % len(FIRST)) + SMUGGLED),
    "an extension with a line end": _request(
        CHUNKED, body=_chunked(FIRST, size=b"%x;a\nxx\r\n0" % len(FIRST)) + SMUGGLED
    ),
    "an extension without end": _request(CHUNKED, body=_chunked(FIRST, size=b"%x;" % len(FIRST) + b"a" * 70_000)),
    "headers in the trailer": _request(
        CHUNKED,
        body=_chunked(FIRST, rest=b"0\r\ncontent-length: 9\r\nx-api-key: k\r\n\r\n"),
        start=b"POST /v1/chat/completions HTTP/1.1",
    ),
    "a trailer that is no header": _request(CHUNKED, body=_chunked(FIRST, rest=b"0\r\nPOST / HTTP/1.1\r\n") + SMUGGLED),
    "HTTP/1.0 with chunks": _request(BOTH_LENGTH, CHUNKED, body=BOTH, start=b"POST /v1/chat/completions HTTP/1.0"),
    "HTTP/1.2": _request(LENGTH, body=FIRST, start=b"POST /v1/chat/completions HTTP/1.2"),
    "HTTP/0.9": b"POST /v1/chat/completions\r\n" + SMUGGLED[:0],
    "two blanks in the first line": _request(LENGTH, body=FIRST, start=b"POST  /v1/chat/completions HTTP/1.1"),
    "a line end in the path": _request(LENGTH, body=FIRST, start=b"POST /v1/chat/completions\r HTTP/1.1"),
    "a NUL in a header": _request(LENGTH, b"x: a\x00b", body=FIRST),
    "another host in the path": _request(
        LENGTH, body=FIRST, start=b"POST http://127.0.0.1:9/v1/chat/completions HTTP/1.1"
    ),
    "two hosts": _request(LENGTH, b"host: y", body=FIRST),
    "an upgrade to HTTP/2": _request(
        LENGTH, b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAAQAAP__", body=FIRST
    ),
    "an upgrade to a socket": _request(
        LENGTH,
        b"connection: upgrade",
        b"upgrade: websocket",
        b"sec-websocket-version: 13",
        b"sec-websocket-key: AA==",
        body=FIRST,
    ),
    "a tunnel": b"CONNECT 127.0.0.1:9 HTTP/1.1\r\nhost: 127.0.0.1:9\r\n\r\n",
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
}
