"""Each thing that an upstream can do to the gateway is one documented result for each client (limits.md C12)."""

import asyncio
import random

import pytest

from streamkit.dialects import DIALECTS
from tests.gateway.fault_matrix import WITH_NEXT, departures, matrix, socket_matrix, suffered, with_next
from tests.web.faults import FAULTS
from tools.fault_matrix import PAGE, THEIRS, TITLES, cell, next_table, page

pytestmark = pytest.mark.usefixtures("no_leaks")
#: Faults in which the model has spoken already, and those of an upstream over a WebSocket.
SOCKET_WITHIN = {
    "sends an error during the response",
    "closes the connection during the response (code 1000)",
    "closes the connection during the response (code 1011)",
    "loses its connection during the response",
    "sends too long a message during the response",
    "stops sending during the response",
}
WITHIN = {
    "error mid-stream",
    "reset mid-line",
    "truncated chunked body",
    "silence mid-stream",
    "bad gzip",
    *SOCKET_WITHIN,
}


@pytest.mark.exhaustive
async def test_the_page_says_what_clients_get():
    found, over_sockets, left = await matrix(), await socket_matrix(), await departures()
    assert page(found, over_sockets, left) == PAGE.read_text("utf-8"), "run `make docs`"
    assert {*left.values()} == {"client_left", "client_stalled"}
    check(found, over_sockets)


async def test_of_each_fault_the_page_says_what_two_clients_get():
    def two(fault, cases):
        return random.Random(fault).sample(cases, 2)

    found, over_sockets = await matrix(two), await socket_matrix(two)
    check(found, over_sockets)
    of_streams, of_whole, of_sockets, whole_of_sockets = tables(PAGE.read_text("utf-8"))[:4]
    for results, streams, whole_answers in (
        (found, of_streams, of_whole),
        (over_sockets, of_sockets, whole_of_sockets),
    ):
        for fault, cases in results.items():
            for (client, stream), result in cases.items():
                row = (streams if stream else whole_answers)[TITLES.get(fault, fault)]
                assert row[client] == cell([result]), (fault, client, stream)


@pytest.mark.exhaustive
async def test_with_a_next_upstream_every_client_gets_what_the_page_says():
    check_with_next(await with_next())


async def test_with_a_next_upstream_two_clients_get_what_the_page_says():
    check_with_next(await with_next(lambda fault, cases: random.Random(fault).sample(cases, 2)))


def check_with_next(found):
    for fault, cases in found.items():
        for (client, stream), seen in cases.items():
            assert seen == WITH_NEXT[fault].seen, f"{fault}, {client}, {'stream' if stream else 'whole'}"


def test_the_page_has_the_table_of_two_upstreams():
    assert "\n".join(next_table()) in PAGE.read_text("utf-8"), "run `make docs`"


#: Clients that get no end of the body: not all programs that speak their dialect know its error frame.
OPEN = {"openai-chat", "ollama", "gemini"}


def tables(text):
    """Each table of the page: the cells of each fault by their column."""
    found = []
    for line in text.splitlines():
        cells = [one.strip() for one in line.strip("|").split("|")]
        if line.startswith(("| the upstream |", "| the client |", "| the first upstream |")):
            found.append({})
            head = cells
        elif line.startswith("| "):
            found[-1][cells[0]] = dict(zip(head, cells, strict=True))
    return found


def check(found, over_sockets):
    for fault, cases in [*found.items(), *over_sockets.items()]:
        for (client, stream), result in cases.items():
            where = f"{fault}, {client}, {'stream' if stream else 'whole'}"
            assert not result.clean, where
            assert result.message, where
            assert (result.status == 200) == (stream and fault in WITHIN), where
            assert result.begun == (stream and fault in WITHIN), where
            assert result.open == (result.begun and client in OPEN), where
            assert "127.0.0.1" not in result.message, where
            words = next(iter(cases.values())).message if stream else result.message
            assert result.message.startswith(THEIRS) == words.startswith(THEIRS), where


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != "openai-chat"])
async def test_no_upstreams_failure_looks_like_a_success(upstream):
    faults = [fault for fault in FAULTS if fault != "never connects"]
    results = await asyncio.gather(*(suffered(fault, "anthropic", upstream, stream=True) for fault in faults))
    for fault, result in zip(faults, results, strict=True):
        assert not result.clean, fault
        assert (result.status == 200) == (fault in WITHIN), f"{fault}: {result}"
        assert result.message, fault
