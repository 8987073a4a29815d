"""Ids that tell nothing, cursors that are read by the letter, and owners."""

from __future__ import annotations

import pytest

from streamkit.resume import BadCursor, Cursor, LogGone, MemoryStore, cursor_in, offset_in, owner_of
from streamkit.resume.log import LARGEST_OFFSET, boot_in, checked_id, is_owner
from streamkit.resume.memory import new_boot

LOG = "st_" + "aB3" * 7 + "x"


@pytest.mark.parametrize("boot", ["", "boot_-0123AB"])
def test_an_id_names_the_process_that_has_it(boot):
    store = MemoryStore(boot=boot)
    made = {store.new_id() for _ in range(100)}
    assert len(made) == 100
    assert {boot_in(checked_id(log_id)) for log_id in made} == {boot}
    assert len(new_boot()) == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        LOG[:-1],
        LOG + "x",
        LOG + ".",
        LOG + ".short",
        LOG + "." + "b" * 13,
        f"{LOG}.../../../x",
        LOG + "\n",
        "ST" + LOG[2:],
    ],
)
def test_what_can_be_no_id_is_as_one_that_never_was(text):
    with pytest.raises(LogGone):
        checked_id(text)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "01", "1_0", " 1", "1 ", "1.5", "1e3", "\u0661", str(2**53 - 1), str(2**63), "9" * 5000]
)
def test_offsets_that_are_none(text):
    with pytest.raises(BadCursor, match="must be an integer from 0"):
        offset_in(text)


def test_offsets():
    assert (offset_in("0"), offset_in("17"), offset_in(str(LARGEST_OFFSET))) == (0, 17, 2**53 - 2)


@pytest.mark.parametrize("log_id", [LOG, LOG + ".boot_-0123AB"])
def test_a_cursor_comes_back_as_it_went(log_id):
    assert cursor_in(f" {Cursor(log_id, 412)} ") == Cursor(log_id, 412)


@pytest.mark.parametrize("text", ["", "17", LOG, LOG + ".", LOG + ".x", f"{LOG}.-1", f"{LOG}.{2**53}", f"{LOG}.1.2"])
def test_ids_of_events_that_are_no_cursors(text):
    with pytest.raises(BadCursor):
        cursor_in(text)


def test_an_owner_says_nothing_of_its_key_and_nothing_in_common():
    mine, other = owner_of("key", LOG), owner_of("key", LOG[:-1] + "y")
    assert "key" not in mine
    assert mine != other
    assert is_owner(mine, owner_of("key", LOG))
    assert not is_owner(mine, owner_of("kez", LOG))
    assert owner_of("", LOG) == ""
