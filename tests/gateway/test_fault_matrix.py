"""Each thing that an upstream can do to the gateway is one documented result for each client (limits.md C12)."""

import asyncio

import pytest

from streamkit.dialects import DIALECTS
from tests.gateway.fault_matrix import CLIENTS, departures, matrix, socket_matrix, suffered
from tests.web.evil import EvilUpstream
from tests.web.faults import FAULTS, redirect, whole
from tools.fault_matrix import PAGE, THEIRS, page

pytestmark = pytest.mark.usefixtures("no_leaks")
#: Faults in which the model has spoken already, and those of an upstream over a WebSocket.
SOCKET_WITHIN = {
    "an error mid-stream",
    "closes mid-stream (1000)",
    "closes mid-stream (1011)",
    "its connection breaks mid-stream",
    "a message that is too long mid-stream",
}
WITHIN = {
    "error mid-stream",
    "reset mid-line",
    "truncated chunked body",
    "silence mid-stream",
    "bad gzip",
    *SOCKET_WITHIN,
}


async def test_the_page_says_what_clients_get():
    found, over_sockets, left = await matrix(), await socket_matrix(), await departures()
    assert page(found, over_sockets, left) == PAGE.read_text("utf-8"), "run `make docs`"
    assert {*left.values()} == {"client_left", "client_stalled"}
    for fault, cases in [*found.items(), *over_sockets.items()]:
        for (client, stream), result in cases.items():
            where = f"{fault}, {client}, {'stream' if stream else 'whole'}"
            assert not result.clean, where
            assert result.message, where
            assert (result.status == 200) == (stream and fault in WITHIN), where
            assert result.begun == (stream and fault in WITHIN), where
            assert "127.0.0.1" not in result.message, where
            words = cases[CLIENTS[0], True].message if stream else result.message
            assert result.message.startswith(THEIRS) == words.startswith(THEIRS), where


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != "openai-chat"])
async def test_no_upstreams_failure_looks_like_a_success(upstream):
    faults = [fault for fault in FAULTS if fault != "never connects"]
    results = await asyncio.gather(*(suffered(fault, "anthropic", upstream, stream=True) for fault in faults))
    for fault, result in zip(faults, results, strict=True):
        assert not result.clean, fault
        assert (result.status == 200) == (fault in WITHIN), f"{fault}: {result}"
        assert result.message, fault


async def test_a_redirect_is_not_followed():
    async with EvilUpstream(whole("openai-chat")) as elsewhere:
        faults = {**FAULTS, "redirect": lambda _dialect, **_: redirect(elsewhere.url)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.gateway.fault_matrix.FAULTS", faults)
            result = await suffered("redirect", "anthropic", stream=True)
    assert "redirects are not followed" in result.message
    assert not elsewhere.requests
