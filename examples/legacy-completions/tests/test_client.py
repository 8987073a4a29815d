"""The official client reads what the encoder writes."""

from typing import Any

import pytest
from machines import read, write
from vectors import HEALTHY, USAGE

openai: Any = pytest.importorskip("openai")
httpx: Any = pytest.importorskip("httpx")


def client(body: bytes) -> Any:
    def answer(_request: Any) -> Any:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    transport = httpx.Client(transport=httpx.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://localhost/v1", max_retries=0, http_client=transport)


@pytest.mark.parametrize("vector", [vector for vector in HEALTHY if vector.stop], ids=str)
def test_the_client_reads_the_text_the_reason_and_the_usage(vector):
    output, _ = write(read([vector.body]))
    text, reason, usage = "", None, None
    for chunk in client(output).completions.create(model="m-1", prompt="?", stream=True):
        assert (chunk.object, chunk.id) == ("text_completion", "cmpl-7")
        for choice in chunk.choices:
            if choice.index == 0:
                text, reason = text + choice.text, choice.finish_reason or reason
        usage = chunk.usage or usage
    assert (text, reason) == (vector.text, "stop" if vector.stop == "stop_sequence" else vector.stop)
    assert (usage is not None) == ("usage" in vector.name)
    if usage is not None:
        assert usage.model_dump(exclude_none=True) == USAGE["usage"]


def test_the_client_raises_what_the_error_frame_says():
    failed = next(vector for vector in HEALTHY if vector.name == "an error")
    output, _ = write(read([failed.body]))
    with pytest.raises(openai.APIError, match="over"):
        list(client(output).completions.create(model="m-1", prompt="?", stream=True))
