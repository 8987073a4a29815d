"""Check the laws of streamkit with streams that were written by hand."""

from streamkit.testing import check_dialect
from workers_ai import DIALECT

TEXT = (
    b'data: {"response":"Let me ","p":"abc"}\n\ndata: {"response":"look.","p":"ab"}\n\n'
)
CALLS = b'data: {"tool_calls":[{"name":"f","arguments":{"x":1.0}},{"name":"g","arguments":{}}]}\n\n'
USAGE = b'data: {"response":"","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}\n\n'
DONE = b"data: [DONE]\n\n"
STREAMS = {
    "text": TEXT + USAGE + DONE,
    "calls": TEXT + CALLS + USAGE + DONE,
    "cut": TEXT + CALLS,
    "arguments as a text": b'data: {"tool_calls":[{"name":"f","arguments":"{}"}]}\n\n'
    + DONE,
    "an error": TEXT + b'data: {"errors":[{"message":"overloaded","code":3040}]}\n\n',
    "more behind the end": TEXT + DONE + TEXT,
    "no JSON": TEXT + b"data: {oops}\n\n" + DONE,
}


def test_it_keeps_the_laws() -> None:
    check_dialect(DIALECT, STREAMS, exhaustive=True)
