from __future__ import annotations

import copy
import json
import logging
import pickle

import orjson
import pytest

from streamkit.web.upstream import Secret

CANARY = "canary-0123456789"


def test_a_secret_shows_nothing_however_it_is_written(caplog: pytest.LogCaptureFixture):
    secret = Secret(CANARY)
    with caplog.at_level(logging.INFO):
        logging.getLogger("streamkit").info("%s %r", secret, [secret])
    shown = [str(secret), repr(secret), f"{secret}", f"{secret:>12}", f"{secret!r}", str({"key": secret}), caplog.text]
    assert all("[secret]" in text and CANARY not in text for text in shown)
    assert f"{secret:>12}" == "    [secret]"


def test_a_secret_is_no_text_that_could_be_joined_or_serialised():
    secret, several = Secret(CANARY), [Secret(CANARY)] * 2
    for write in (lambda: ", ".join(several), lambda: json.dumps(secret), lambda: orjson.dumps(secret)):
        with pytest.raises(TypeError):
            write()
    assert not hasattr(secret, "__dict__")


def test_two_secrets_are_equal_by_their_text_and_never_equal_a_text():
    assert Secret(CANARY) == Secret(CANARY)
    assert hash(Secret(CANARY)) == hash(Secret(CANARY))
    assert Secret(CANARY) != Secret("canary")
    assert Secret("schlüssel") == Secret("schlüssel")
    assert Secret(CANARY) != CANARY


def test_who_sends_it_can_read_it_also_after_a_copy_and_in_another_process():
    secret = Secret(CANARY)
    assert secret.reveal() == CANARY
    assert copy.deepcopy(secret).reveal() == CANARY
    assert pickle.loads(pickle.dumps(secret)).reveal() == CANARY
